"""Checks whether rules fit the fields of the records, before the first record is read.

Each rule is applied to the fields that the rules above it have left. For example, below `rename msg
to message` there is a field `message` and no field `msg`. A condition compares text with text, a
number with a number, and a boolean with true or false. For a field of another type, the only
condition is `is null` (or `is not null`). A rule may also rename or remove such a field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.rules import Condition, Field, Literal, Place, Rule
from skidway.agent.shaping.texts import has_texts
from skidway.agent.shaping.words import ShapeRefused, refusal

_NAMES_SHOWN = 30
_INT_64 = 1 << 63
_PROBES = ("", "ab", "xy", "09", "--", ". ,")


def check(text: str, rules: Sequence[Rule], schema: pa.Schema) -> pa.Schema:
    """Checks whether the rules fit the fields of the records. (`check_patterns` checks the patterns
    of `mask`.) Returns the schema of the records after the rules. text: the text of the rules.
    schema: the schema of the records before the rules. Raises ShapeRefused if a rule does not fit,
    or if the rules leave no field.
    """
    check = _Check(text.split("\n"), schema)
    for rule in rules:
        check.rule(rule)
    if not check.fields:
        raise ShapeRefused("shape: the rules leave no field in the records")
    return pa.schema(check.fields.values())


def check_patterns(text: str, rules: Iterable[Rule]) -> None:
    """Raises ShapeRefused if RE2 refuses a pattern of the rules, or if a pattern of `mask` matches
    an empty text.
    """
    check = _Check(text.split("\n"), pa.schema([]))
    for rule in rules:
        if isinstance(rule, r.MaskMatching):
            check.mask_pattern(rule)
        elif isinstance(rule, r.Drop | r.Keep | r.Sample) and rule.where is not None:
            for each in _comparisons(rule.where):
                if each.how == r.MATCHES:
                    check.pattern(str(each.value), each.place)


class _Check:
    """Checks one rule after the other. Owns the fields that a record has after the rules that were
    checked so far.
    """

    def __init__(self, lines: list[str], schema: pa.Schema) -> None:
        self._lines = lines
        self.fields: dict[str, pa.Field] = {field.name: field for field in schema}

    def rule(self, rule: Rule) -> None:
        match rule:
            case r.Drop(where) | r.Keep(where) | r.Sample(_, _, where):
                if where is not None:
                    self._condition(where)
            case r.Mask(field) | r.MaskMatching(field) if field.name == r.ALL_FIELDS:
                if not any(has_texts(each.type) for each in self.fields.values()):
                    raise self._refused(field.place, "no field here is a text")
            case r.Mask(field) | r.MaskMatching(field):
                self._text([field], "mask")
            case r.Hash(fields):
                self._text(fields, "hash")
            case r.Rename(field, to):
                self._rename(field, to)
            case r.Remove(fields):
                self._remove(fields)

    def pattern(self, pattern: str, place: Place) -> None:
        try:
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            raise self._refused(place, str(error)) from error

    def mask_pattern(self, rule: r.MaskMatching) -> None:
        self.pattern(rule.pattern, rule.place)
        if _finds_nothing(rule.pattern):
            said = "this pattern also finds an empty text, so there would be nothing to mask"
            raise self._refused(rule.place, said)

    def _remove(self, fields: Sequence[Field]) -> None:
        for field in fields:
            self._known(field)
            del self.fields[field.name]

    def _rename(self, field: Field, to: Field) -> None:
        known = self._known(field)
        if to.name in self.fields:
            raise self._refused(to.place, f"there is a field {to.name} already")
        self.fields = {
            to.name if name == field.name else name: each for name, each in self.fields.items()
        }
        self.fields[to.name] = known.with_name(to.name)

    def _condition(self, condition: Condition) -> None:
        match condition:
            case r.Comparison():
                self._comparison(condition)
            case r.Membership(field, values, place):
                kind = self._known(field).type
                for value in values:
                    self._value(field, kind, value, place)
            case r.IsNull(field):
                self._known(field)
            case r.Not(part):
                self._condition(part)
            case r.AllOf(parts) | r.AnyOf(parts):
                for part in parts:
                    self._condition(part)

    def _comparison(self, comparison: r.Comparison) -> None:
        field, how = comparison.field, comparison.how
        kind = self._known(field).type
        if how == r.MATCHES:
            self.pattern(str(comparison.value), comparison.place)
        if how in r.SEARCHES and not is_text(kind):
            said = f"{field.name} is {_kind(kind)}, and `{how}` searches a text"
            raise self._refused(field.place, said)
        self._value(field, kind, comparison.value, comparison.place)
        if types.is_boolean(kind) and how not in (r.EQUALS, r.NOT_EQUALS):
            raise self._refused(field.place, "true is neither more nor less than false")

    def _value(self, field: Field, kind: pa.DataType, value: Literal, place: Place) -> None:
        if is_text(kind):
            fits = isinstance(value, str)
        elif types.is_boolean(kind):
            fits = isinstance(value, bool)
        elif types.is_integer(kind):
            fits = type(value) is int and -_INT_64 <= value < _INT_64
        elif types.is_floating(kind):
            fits = type(value) in (int, float)
        else:
            said = f"{field.name} is {_kind(kind)}; of such a field only `is null` can be asked"
            raise self._refused(field.place, said)
        if not fits:
            said = f"{field.name} is {_kind(kind)}, and {r.literal_text(value)} is none"
            raise self._refused(place, said)

    def _text(self, fields: Sequence[Field], verb: str) -> None:
        for field in fields:
            kind = self._known(field).type
            if not types.is_string(kind):
                said = f"{field.name} is {_kind(kind)}, and `{verb}` changes texts only"
                raise self._refused(field.place, said)

    def _known(self, field: Field) -> pa.Field:
        found = self.fields.get(field.name)
        if found is not None:
            return found
        near = get_close_matches(field.name, self.fields, 1)
        meant = f"; did you mean {near[0]}?" if near else ";"
        names = ", ".join(list(self.fields)[:_NAMES_SHOWN])
        more = ", ..." if len(self.fields) > _NAMES_SHOWN else ""
        said = f"there is no field {field.name} here{meant} the fields are {names}{more}"
        raise self._refused(field.place, said)

    def _refused(self, place: Place, reason: str) -> ShapeRefused:
        return refusal(self._lines, place, reason)


def _finds_nothing(pattern: str) -> bool:
    """Whether a pattern matches an empty text, such as the beginning of a word (`\\b`), somewhere
    in one of _PROBES."""
    probes = pa.array(_PROBES)
    found = pc.match_substring_regex(probes, pattern)
    rest = pc.replace_substring_regex(probes, pattern, "")
    return any(
        finds and left == probe
        for finds, left, probe in zip(found.to_pylist(), rest.to_pylist(), _PROBES, strict=True)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether values of the type are texts: strings, or the symbols of an enum."""
    return bool(types.is_string(kind) or types.is_dictionary(kind))


def _comparisons(condition: Condition) -> Iterable[r.Comparison]:
    match condition:
        case r.Comparison():
            yield condition
        case r.Not(part):
            yield from _comparisons(part)
        case r.AllOf(parts) | r.AnyOf(parts):
            for part in parts:
                yield from _comparisons(part)


def _kind(kind: pa.DataType) -> str:
    if is_text(kind):
        return "a text"
    if types.is_boolean(kind):
        return "a boolean"
    if types.is_integer(kind):
        return "a whole number"
    if types.is_floating(kind):
        return "a number"
    return f"of the type {kind}"
