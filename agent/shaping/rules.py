"""The rules of `shape` as values, and the text of each rule.

`grammar.parse` makes these values from a text; `text_of` makes the text from the values. For all
rules, parse(text_of(rules)) == rules. If a rule that leaves records out has no name, it gets its
own text as its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skidway.dataclass import dataclass

SHAPE_VERSION: Final = 4
"""Increase this version if a change to Skidway's own code makes the same rules give another result
for the same record. tests/unit/agent/shaping/test_shaper.py finds such changes: it fails if the
results for known records differ.
"""

EQUALS, NOT_EQUALS, LESS, AT_MOST, MORE, AT_LEAST = "=", "!=", "<", "<=", ">", ">="
ORDERS: Final = (EQUALS, NOT_EQUALS, LESS, AT_MOST, MORE, AT_LEAST)
MATCHES, CONTAINS, STARTS_WITH, ENDS_WITH = "matches", "contains", "starts with", "ends with"
SEARCHES: Final = (MATCHES, CONTAINS, STARTS_WITH, ENDS_WITH)

DROP, KEEP, SAMPLE, MASK, HASH, RENAME, REMOVE = (
    "drop", "keep", "sample", "mask", "hash", "rename", "remove",
)  # fmt: skip
VERBS: Final = (DROP, KEEP, SAMPLE, MASK, HASH, RENAME, REMOVE)
KEYWORDS: Final = frozenset(
    {*VERBS, "and", "as", "contains", "ends", "false", "for", "in", "is", "matches", "matching",
     "not", "null", "or", "starts", "to", "true", "where", "with"}
)  # fmt: skip

NAME_CHARACTERS_MAX: Final = 60

ALL_FIELDS: Final = "*"
"""In a rule `mask`, this stands for all fields that are texts or contain texts."""

Literal = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word is in the text: line and column, both from 1. All values of this class compare
    as equal, so that two rules are equal if they differ only in where they are in the text.
    """

    line: int
    column: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place)

    def __hash__(self) -> int:
        return 0


NOWHERE: Final = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Field:
    """The name of a field in a rule."""

    name: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition that compares a field with a given value; it is false if the field is null. how:
    the comparison, one of ORDERS (such as `<`) or SEARCHES (such as `contains`)."""

    field: Field
    how: str
    value: Literal
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Membership:
    """A condition that is true if a field has one of these values; it is false if the field is
    null."""

    field: Field
    values: tuple[Literal, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class IsNull:
    """A condition that is true if a field is null."""

    field: Field


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that is true if another condition is false."""

    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """A condition that is true if all of its parts (at least two) are true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that is true if at least one of its parts (at least two) is true."""

    parts: tuple[Condition, ...]


Condition = Comparison | Membership | IsNull | Not | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Drop:
    """A rule that leaves out the records for which its condition is true."""

    where: Condition
    name: str


@dataclass(frozen=True, slots=True)
class Keep:
    """A rule that keeps only the records for which its condition is true."""

    where: Condition
    name: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Of the records for which the condition `where` is true, keeps on average `kept` of every `of`
    records. Keeps all other records. where: None if the rule is for all records.
    """

    kept: int
    of: int
    where: Condition | None
    name: str


@dataclass(frozen=True, slots=True)
class Mask:
    """Replaces secrets of these kinds (such as `cards`) in a text field, or in ALL_FIELDS, by a
    fixed text."""

    field: Field
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaskMatching:
    """Puts a fixed text in place of everything that a pattern (RE2) matches in a text field, or in
    ALL_FIELDS."""

    field: Field
    pattern: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Hash:
    """Replaces the text of each of these fields by a hash, which is computed from the text and a
    secret key."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """Gives a field another name."""

    field: Field
    to: Field


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes fields."""

    fields: tuple[Field, ...]


Rule = Drop | Keep | Sample | Mask | MaskMatching | Hash | Rename | Remove
Filter = Drop | Keep | Sample


def text_of(rules: Iterable[Rule]) -> str:
    """Returns the rules as text, one rule in each line. In the text, every rule that leaves records
    out has its name after `as`.
    """
    return "".join(f"{_rule(rule)}\n" for rule in rules)


def needs_key(rules: Iterable[Rule]) -> bool:
    """Whether a rule hashes fields."""
    return any(isinstance(rule, Hash) for rule in rules)


def filters_of(rules: Iterable[Rule]) -> list[str]:
    """Returns the names of the rules that leave records out, in order."""
    return [rule.name for rule in rules if isinstance(rule, Drop | Keep | Sample)]


def default_name(where: Condition | None, verb: str) -> str:
    """Returns the name of a rule that has no name in the text: the rule's own text, cut to
    NAME_CHARACTERS_MAX characters. Unlike a number, this name stays the same if other rules are
    added.
    """
    text = verb if where is None else f"{verb}{_before(verb)}{condition_text(where)}"
    if len(text) <= NAME_CHARACTERS_MAX:
        return text
    return f"{text[: NAME_CHARACTERS_MAX - 3]}..."


def condition_text(condition: Condition) -> str:
    """Returns a condition as text."""
    match condition:
        case Comparison(field, how, value):
            return f"{_field(field)} {how} {literal_text(value)}"
        case Membership(field, values):
            return f"{_field(field)} in ({', '.join(map(literal_text, values))})"
        case IsNull(field):
            return f"{_field(field)} is null"
        case Not(part):
            return f"not {_inside(part)}"
        case AllOf(parts):
            return " and ".join(map(_inside, parts))
        case AnyOf(parts):
            return " or ".join(map(_inside, parts))


def literal_text(value: Literal) -> str:
    """Returns a value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def _rule(rule: Rule) -> str:
    match rule:
        case Drop(where, name):
            return f"drop {condition_text(where)} as {literal_text(name)}"
        case Keep(where, name):
            return f"keep {condition_text(where)} as {literal_text(name)}"
        case Sample(kept, of, where, name):
            limit = "" if where is None else f" where {condition_text(where)}"
            return f"sample {kept}/{of}{limit} as {literal_text(name)}"
        case Mask(field, kinds):
            return f"mask {_field(field)} for {', '.join(kinds)}"
        case MaskMatching(field, pattern):
            return f"mask {_field(field)} matching {literal_text(pattern)}"
        case Hash(fields):
            return f"hash {', '.join(map(_field, fields))}"
        case Rename(field, to):
            return f"rename {_field(field)} to {_field(to)}"
        case Remove(fields):
            return f"remove {', '.join(map(_field, fields))}"


def _before(verb: str) -> str:
    return " where " if verb.startswith(SAMPLE) else " "


def _inside(condition: Condition) -> str:
    text = condition_text(condition)
    return f"({text})" if isinstance(condition, AllOf | AnyOf) else text


def _field(field: Field) -> str:
    return f"`{field.name}`" if field.name in KEYWORDS else field.name
