"""Fields of a record that do not come from its bytes: from the path of its file, from settings,
and from the labels of its file's pod.

The patterns of the setting `path.pattern` (RE2) are searched in the path, and their named groups
become fields. If the file is renamed, the fields stay the same, because this module still uses the
path under which the agent announced the file to the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.parsing.framing import Int64s
from skidway.errors import ConfigurationRefused

ADDED_BYTES_MAX: Final = 2_048


def path_groups(patterns: Sequence[str]) -> list[str]:
    """Returns the names of the groups that all patterns have, sorted. Raises ConfigurationRefused
    if RE2 refuses a pattern, if a pattern has no named group, or if the patterns have different
    groups.
    """
    found: list[list[str]] = []
    for pattern in patterns:
        try:
            extracted = pc.extract_regex(pa.array([], pa.string()), pattern)
        except pa.ArrowInvalid as error:
            raise ConfigurationRefused(f"path.pattern {pattern!r}: {error}") from error
        found.append(sorted(field.name for field in extracted.type))
    if any(each != found[0] or not each for each in found):
        raise ConfigurationRefused("path.pattern has no named group such as (?P<app>[^/]+)")
    return found[0] if found else []


class AddedFields:
    """Adds fields that do not come from the bytes of a record."""

    def __init__(
        self,
        patterns: Sequence[str],
        constants: Sequence[tuple[str, str]],
        schema: pa.Schema,
        labels: Sequence[tuple[str, str]] = (),
    ) -> None:
        """patterns: the patterns in `path.pattern`. constants: the name and text of each field that
        has the same text in all records. labels: the name of each field that takes a label, and the
        name of the label. Raises ConfigurationRefused if a field is missing in the schema or is no
        string, if two of these settings fill the same field, or if `path_groups` refuses the
        patterns.
        """
        self._patterns, self._constants, self._labels = patterns, constants, labels
        self._groups = path_groups(patterns)
        self.names = [*self._groups, *(name for name, _ in (*constants, *labels))]
        twice = next((name for name, n in Counter(self.names).items() if n > 1), None)
        if twice is not None:
            raise ConfigurationRefused(
                f"two of path.pattern, fields and labels both fill the field {twice!r}"
            )
        for name in self.names:
            at = schema.get_field_index(name)
            if at < 0 or not types.is_string(schema.field(at).type):
                raise ConfigurationRefused(
                    f"{name!r} of path.pattern, fields or labels needs a string field of that name "
                    "in the schema"
                )

    def excess(
        self, paths: Sequence[str], labels: Sequence[Sequence[tuple[str, str]]]
    ) -> list[int]:
        """Returns the indexes of the paths for which the fields of `path.pattern` and of labels may
        have more than ADDED_BYTES_MAX bytes."""
        if not self._groups and not self._labels:
            return []
        known = [dict(each) for each in labels] or [{} for _ in paths]
        wanted = [label for _, label in self._labels]
        return [
            at
            for at, (path, texts) in enumerate(zip(paths, known, strict=True))
            if len(path) * len(self._groups) + sum(len(texts.get(each, "")) for each in wanted)
            > ADDED_BYTES_MAX
        ]

    def add(
        self,
        batch: pa.RecordBatch,
        paths: Sequence[str],
        owner: Int64s,
        labels: Sequence[Sequence[tuple[str, str]]] = (),
    ) -> pa.RecordBatch:
        """Adds the fields to rows. owner: for each row the index in `paths` of the path of the
        row's file. If a path matches no pattern, the fields of the patterns are empty strings.
        labels: for each path the names and texts of labels. The field of a missing label is an
        empty string.
        """
        if not self.names:
            return batch
        values = pa.array(paths, pa.string())
        found = [pc.extract_regex(values, pattern) for pattern in self._patterns]
        for name in self._groups:
            column = pc.coalesce(*(pc.struct_field(each, name) for each in found), pa.scalar(""))
            batch = batch.append_column(name, column.take(pa.array(owner)))
        for name, text in self._constants:
            batch = batch.append_column(name, pa.repeat(text, len(owner)))
        known = [dict(each) for each in labels] or [{} for _ in paths]
        for name, label in self._labels:
            texts = pa.array([each.get(label, "") for each in known], pa.string())
            batch = batch.append_column(name, texts.take(pa.array(owner)))
        return batch
