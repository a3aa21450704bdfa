"""Applies a recipe's rules to parsed records, before they are encoded. Also leaves out headers of
CSV.

    parsed records -> fields with their defaults -> rules -> records that are kept
                                                         `-> records that a rule left out

A record with a text field that is not UTF-8 is rejected before the rules are applied, so no rule
leaves it out. If a mask makes a text too long, the record is rejected at this rule, and the rules
after it do not see the record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.batches.program_versions import key_of
from skidway.agent.parsers import escapings, kind_of
from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing.aliases import aliases_of
from skidway.agent.parsing.byte_order import UTF_8
from skidway.agent.parsing.containers import unwrap
from skidway.agent.parsing.left_out import LEFT_OUT
from skidway.agent.parsing.parser import (
    ENCODING,
    EXTRA,
    NO_TIME,
    TOO_LONG,
    Parsed,
    Reject,
)
from skidway.agent.parsing.regex import anchored
from skidway.agent.recipe import Recipe, Schema, of_source
from skidway.agent.shaping.checking import check
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.growth import GROWTH_MAX
from skidway.agent.shaping.rejected_text import WITHHELD, RejectedText
from skidway.agent.shaping.rules import Remove, Rule
from skidway.agent.shaping.shaped_schemas import private_rules, unshaped
from skidway.agent.shaping.shaper import Shaper
from skidway.agent.values.terminals import plain_text
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.kafka.columns import Origins
from skidway.schemas.codec import Codec, ColumnsRefused

Int64s = npt.NDArray[np.int64]

_GROWN = "masks make the field {} more than {} times as long; mask each text with one rule only"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that rules or the parser left out. rows: for each record, the index of its
    line, in rising order. event_ms: for each record, its event time (ms), or NO_TIME if it has
    none. rule: for each record, the index in `filters_of` of the rule that left it out.
    """

    rows: Int64s
    event_ms: Int64s
    rule: Int64s

    def joined(self, other: LeftOut) -> LeftOut:
        """Returns the records of this object and of `other`, in the order of their lines."""
        if not len(self.rows):
            return other
        rows = np.concatenate((self.rows, other.rows))
        order = np.argsort(rows, kind="stable")
        event_ms = np.concatenate((self.event_ms, other.event_ms))
        rule = np.concatenate((self.rule, other.rule))
        return LeftOut(rows[order], event_ms[order], rule[order])


def filters_of(recipe: Recipe, shape: RecordShape | None) -> tuple[str, ...]:
    """Returns the names of all those rules of a recipe that leave records out, including those of
    LEFT_OUT by which the recipe's parser leaves lines out."""
    rules = () if shape is None else tuple(shape.filters)
    own = kind_of(recipe.parser, recipe.json_field).leaves_out
    return (*rules, *(name for name in own if name not in rules))


def without_left_out(parsed: Parsed, filters: Sequence[str]) -> tuple[Parsed, LeftOut]:
    """Takes those lines out of the rejects of `parsed` that the parser leaves out. Returns `parsed`
    without these rejects, and these lines as records. filters: what `filters_of` returns."""
    out = sorted((each.row, each.reason) for each in parsed.rejects if each.reason in LEFT_OUT)
    if out:
        others = [each for each in parsed.rejects if each.reason not in LEFT_OUT]
        parsed = replace(parsed, rejects=others)
    rows = np.array([row for row, _ in out], np.int64)
    rule = np.array([filters.index(reason) for _, reason in out], np.int64)
    return parsed, LeftOut(rows, np.full(len(rows), NO_TIME), rule)


def shape_of(recipe: Recipe, codec: Codec) -> RecordShape | None:
    """Returns the object that applies the recipe's rules; None if the recipe has no rules. Raises
    ConfigurationRefused."""
    if not recipe.shape:
        return None
    try:
        return RecordShape(recipe, codec)
    except ConfigurationRefused as error:
        raise of_source(recipe, error) from error


class RecordShape:
    """Applies a recipe's rules. parsing: the same recipe, but with the schema that records have
    before the rules. before: the codec of that schema. filters: the names of the rules that leave
    records out. rejected: the object that applies the rules to rejected lines. Raises
    ConfigurationRefused if the rules do not fit the records.
    """

    def __init__(self, recipe: Recipe, codec: Codec) -> None:
        rules = parse(recipe.shape)
        self.parsing, self.before = recipe, codec
        if recipe.parsed_schema:
            self.parsing = replace(recipe, schema=Schema(0, recipe.parsed_schema))
            self.before = Codec(recipe.parsed_schema)
            whole = unshaped(recipe.schema.text, rules)
        self._shaper = Shaper(rules, key_of(recipe))
        self.filters = self._shaper.filters
        self.rejected = RejectedText(rules, recipe.encoding, escapings())
        self._private = _private_members(rules, self.parsing.schema.text)
        before = self.before.arrow_schema
        if recipe.parsed_schema and kind_of(recipe.parser, recipe.json_field).fills_by_name:
            before = Codec(whole).arrow_schema  # also has fields that no parser fills
        self._after = check(recipe.shape, rules, before)
        _check_schema(self._after, codec)

    def apply(self, parsed: Parsed, origins: Origins) -> tuple[Parsed, LeftOut, list[Reject]]:
        """Returns the records that are kept, the records that rules left out, and rejects. origins:
        the origins of the rows of `parsed`.
        """
        fit, rejects = _valid(parsed)
        if rejects:
            chosen = np.flatnonzero(fit)
            parsed = _chosen(parsed, chosen)
            origins = Origins(
                origins.agent[chosen], origins.file[chosen], origins.first[chosen],
                origins.length[chosen],
            )  # fmt: skip
        found = self._shaper.apply(self._completed(parsed.batch), origins)
        out = np.flatnonzero(found.by >= 0)
        left_out = LeftOut(parsed.rows[out], parsed.event_ms[out], found.by[out])
        kept = found.kept
        rejects += [
            Reject(int(parsed.rows[row]), TOO_LONG, _GROWN.format(name, GROWTH_MAX))
            for row, name in sorted(found.grown.items())
        ]
        shaped = replace(
            parsed, rows=parsed.rows[kept], batch=found.batch, event_ms=parsed.event_ms[kept]
        )
        return shaped, left_out, rejects

    def shown(self, line: bytes, *, is_head: bool) -> bytes:
        """Returns what may be sent of a rejected line in the encoding of its source. is_head: as in
        `RejectedText.line`."""
        recipe, text = self.parsing, line
        if recipe.container is not None and not self.rejected.is_whole:
            found = unwrap(recipe.container, pa.array(line.split(b"\n"), pa.binary()))
            if (found.is_part & found.is_good).any():
                return WITHHELD  # the runtime may have divided a private text
            text = b"\n".join(found.texts.to_pylist())
        return self.rejected.line(line, is_head=is_head, groups=self._groups(text))

    def _groups(self, text: bytes) -> list[str]:
        """Returns the texts of the pattern's groups; none if the text does not match."""
        recipe = self.parsing
        if recipe.pattern is None or self.rejected.is_whole:
            return []
        plain = plain_text(text.decode(recipe.encoding, "replace"))
        is_multiline = recipe.multiline is not None
        pattern = anchored(f"(?s){recipe.pattern}" if is_multiline else recipe.pattern)
        found = pc.extract_regex(pa.array([plain.encode("utf-8", "replace").decode()]), pattern)
        return [] if found[0].as_py() is None else [x for x in found[0].as_py().values() if x]

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Adds the fields that the parser left out because they get their default. Hides private
        members (those that rules mask, hash or remove) in the maps of `_extra`.
        """
        for field in self.before.arrow_schema:
            if batch.schema.get_field_index(field.name) < 0:
                column = self.before.default_column(field.name, batch.num_rows)
                batch = batch.append_column(field.name, column)
        if self._private and EXTRA in batch.schema.names:
            at = batch.schema.get_field_index(EXTRA)
            batch = batch.set_column(at, EXTRA, self._hidden(batch.column(at)))
        return batch

    def _hidden(self, extra: pa.Array) -> pa.Array:
        """Returns the maps of `_extra`, without the members that rules remove, and with the texts
        that may be sent of those that rules mask or hash. Although these members have a field of
        their own, the parser puts a member into `_extra` if its value does not have the type of the
        field, or if a group fills the field. Like a rejected line, such a value fits no field, and
        its JSON has escapes, so it is treated in the same way.
        """
        removed = {name for name, hiding in self._private.items() if hiding is None}
        maps: list[Any] = [
            None if each is None else [(name, x) for name, x in each if name not in removed]
            for each in extra.to_pylist()
        ]
        places: dict[str, list[tuple[int, int]]] = {}
        for row, members in enumerate(maps):
            for at, (name, _) in enumerate(members or ()):
                if name in self._private:
                    places.setdefault(name, []).append((row, at))
        for name, found in places.items():
            hiding = self._private[name]
            assert hiding is not None
            texts = hiding.members(pa.array([maps[row][at][1] for row, at in found], pa.string()))
            for (row, at), text in zip(found, texts.to_pylist(), strict=True):
                maps[row][at] = (name, text)
        return pa.array(maps, extra.type)


def _private_members(rules: Sequence[Rule], schema: str) -> dict[str, RejectedText | None]:
    """Returns what hides the values of private members in `_extra`, by the names and aliases of the
    members; None for members that rules remove."""
    found = {
        name: None
        if any(isinstance(rule, Remove) for rule in own)
        else RejectedText(own, UTF_8, escapings())
        for name, own in private_rules(rules).items()
    }
    aliases = aliases_of(json.loads(schema))
    others = {} if aliases is None else aliases.names
    return found | {other: found[name] for other, name in others.items() if name in found}


def _valid(parsed: Parsed) -> tuple[npt.NDArray[np.bool_], list[Reject]]:
    """Returns, for each row, whether all its texts are UTF-8, and a reject for each row that has a
    text that is not UTF-8."""
    fit = np.ones(len(parsed.rows), np.bool_)
    rejects: list[Reject] = []
    for field, column in zip(parsed.batch.schema, parsed.batch.columns, strict=True):
        if not types.is_string(column.type):
            continue
        try:
            column.validate(full=True)
            continue
        except pa.ArrowInvalid:
            _, bad = line_columns.text(column.view(pa.binary()).fill_null(b""))
        for row in bad.tolist():
            if fit[row]:
                detail = f"field {field.name} is not UTF-8"
                rejects.append(Reject(int(parsed.rows[row]), ENCODING, detail))
            fit[row] = False
    return fit, rejects


def _chosen(parsed: Parsed, rows: Int64s) -> Parsed:
    batch = parsed.batch.take(pa.array(rows))
    return replace(parsed, rows=parsed.rows[rows], batch=batch, event_ms=parsed.event_ms[rows])


def _check_schema(after: pa.Schema, codec: Codec) -> None:
    for field in codec.arrow_schema:
        if after.get_field_index(field.name) < 0:
            try:
                codec.default_column(field.name, 0)
            except ColumnsRefused as error:
                raise ConfigurationRefused(
                    f"shape: the rules remove the schema's field {field.name}, which has no default"
                ) from error
