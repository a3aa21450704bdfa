"""Applies rules to columns of records, in the order of the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.agent.shaping import rules as r
from skidway.agent.shaping import sampling, texts
from skidway.agent.shaping.conditions import holds
from skidway.agent.shaping.growth import Growth
from skidway.agent.shaping.masks import mask_kinds, mask_matching
from skidway.agent.shaping.pseudonyms import HashKey
from skidway.agent.shaping.rules import Rule
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.kafka.columns import Origins

Int64s = npt.NDArray[np.int64]

KEPT = -1
GROWN = -2


@dataclass(frozen=True, slots=True)
class Shaped:
    """What the rules of a source have made of a batch. kept: the indexes of the rows that are kept,
    in rising order. batch: these rows. by: for each row of the original batch, the index in
    `Shaper.filters` of the rule that left the row out; KEPT if the row is kept, GROWN if masks made
    a text of the row too long. grown: for each row that is GROWN, the field with the text that is
    too long.
    """

    kept: Int64s
    batch: pa.RecordBatch
    by: Int64s
    grown: dict[int, str] = field(default_factory=dict)


class Shaper:
    """The rules of a source. filters: the names of the rules that leave records out, in order.
    Raises ConfigurationRefused if the rules need a key and there is none.
    """

    def __init__(self, rules: Sequence[Rule], key: HashKey | None) -> None:
        self._rules, self._key = rules, key
        self.filters = r.filters_of(rules)
        if key is None and r.needs_key(rules):
            raise ConfigurationRefused("shape: a rule `hash` needs the setting hash.key.location")

    def apply(self, batch: pa.RecordBatch, origins: Origins) -> Shaped:
        """Applies all rules. origins: the origins of the rows."""
        kept = np.arange(batch.num_rows)
        by = np.full(batch.num_rows, KEPT)
        number = 0
        growth, grown = Growth(), dict[int, str]()
        for rule in self._rules:
            for each in _by_fields(rule, batch.schema):
                if isinstance(each, r.Drop | r.Keep | r.Sample):
                    stays, outcome = self._stays(each, batch, origins, kept), number
                    number += 1
                else:
                    batch, stays = self._changed_within(batch, each, growth)
                    outcome = GROWN
                if not stays.all():
                    gone = kept[~stays]
                    by[gone] = outcome
                    if isinstance(each, r.Mask | r.MaskMatching):
                        grown |= dict.fromkeys(gone.tolist(), each.field.name)
                    kept = kept[stays]
                    batch = batch.filter(pa.array(stays))
                    growth.keep(stays)
        return Shaped(kept, batch, by, grown)

    def _changed_within(
        self, batch: pa.RecordBatch, rule: Rule, growth: Growth
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.bool_]]:
        """Applies a rule that changes fields. Returns the changed batch, and which of its rows may
        stay: a mask may make a text too long (see the module `growth`)."""
        if not isinstance(rule, r.Mask | r.MaskMatching):
            if isinstance(rule, r.Rename):
                growth.rename(rule.field.name, rule.to.name)
            return self._changed(batch, rule), np.ones(batch.num_rows, np.bool_)
        name = rule.field.name
        growth.before(name, batch.column(name))
        batch = self._changed(batch, rule)
        return batch, growth.fits(name, batch.column(name))

    def _stays(
        self, rule: r.Filter, batch: pa.RecordBatch, origins: Origins, kept: Int64s
    ) -> npt.NDArray[np.bool_]:
        """Returns which rows of the batch a rule keeps. kept: for each row of the batch, its index
        in `origins`."""
        if rule.where is None:
            meant = np.ones(batch.num_rows, np.bool_)
        else:
            meant = np.asarray(holds(rule.where, batch))
        if isinstance(rule, r.Drop):
            return ~meant
        if isinstance(rule, r.Keep):
            return meant
        mine = Origins(
            origins.agent[kept], origins.file[kept], origins.first[kept], origins.length[kept]
        )
        return ~meant | sampling.chosen(mine, rule.name, rule.kept, rule.of)

    def _changed(self, batch: pa.RecordBatch, rule: Rule) -> pa.RecordBatch:
        match rule:
            case r.Mask(field, kinds):
                masked = texts.changed(
                    batch.column(field.name), lambda column: mask_kinds(column, kinds)
                )
                return _with(batch, field.name, masked)
            case r.MaskMatching(field, pattern):
                masked = texts.changed(
                    batch.column(field.name), lambda column: mask_matching(column, pattern)
                )
                return _with(batch, field.name, masked)
            case r.Hash(fields):
                assert self._key is not None
                for field in fields:
                    batch = _with(batch, field.name, self._key.hash(batch.column(field.name)))
            case r.Rename(field, to):
                names = [to.name if x == field.name else x for x in batch.schema.names]
                return batch.rename_columns(names)
            case r.Remove(fields):
                # Not all of the rule's fields are in the batch: a JSON parser itself leaves out a
                # member that is to be removed and that no rule reads.
                gone = {field.name for field in fields} & set(batch.schema.names)
                return batch.drop_columns(sorted(gone))
        return batch


def _by_fields(rule: Rule, schema: pa.Schema) -> list[Rule]:
    if not isinstance(rule, r.Mask | r.MaskMatching) or rule.field.name != r.ALL_FIELDS:
        return [rule]
    named = [each.name for each in schema if texts.has_texts(each.type)]
    return [replace(rule, field=r.Field(name)) for name in named]


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, column)
