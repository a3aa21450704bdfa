"""The schema of records before the rules and after them, as Avro documents.

If a source names no schema, its schema is derived for the parser's records. Then the rules are
applied to this schema: fields get their new names, and removed fields are left out. If a source
names a schema, this schema is for the records after the rules. But the parser makes records before
the rules are applied. So the parser gets the named schema with the rules undone: a renamed field
has its old name again, and a removed field that the schema lacks is added as a string that may be
null.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.rules import Condition, Rule
from skidway.errors import ConfigurationRefused


def changes_fields(rules: Sequence[Rule]) -> bool:
    """Whether the rules rename or remove fields: records then have other fields after the rules."""
    return any(isinstance(rule, r.Rename | r.Remove) for rule in rules)


def shaped(text: str, rules: Sequence[Rule]) -> str:
    """Returns the schema that records have after the rules. text: the schema that they have before
    the rules; it has all fields that the rules name.
    """
    document = json.loads(text)
    for rule in rules:
        if isinstance(rule, r.Rename):
            for each in document["fields"]:
                if each["name"] == rule.field.name:
                    each["name"] = rule.to.name
        elif isinstance(rule, r.Remove):
            gone = {field.name for field in rule.fields}
            document["fields"] = [x for x in document["fields"] if x["name"] not in gone]
    return json.dumps(document)


def unshaped(text: str, rules: Sequence[Rule]) -> str:
    """Returns the schema that records have before the rules. text: the schema that they have after
    the rules. Raises ConfigurationRefused if the schema lacks the new name of a renamed field, or
    has its old name. Returns `text` unchanged if it is no schema of a record.
    """
    document = json.loads(text)
    if type(document) is not dict or "fields" not in document:
        return text  # no schema of a record: the parser refuses it later
    fields: dict[str, dict[str, Any]] = {each["name"]: each for each in document["fields"]}
    for rule in reversed(rules):
        if isinstance(rule, r.Remove):
            for field in rule.fields:
                added = {"name": field.name, "type": ["null", "string"], "default": None}
                fields.setdefault(field.name, added)
        elif isinstance(rule, r.Rename):
            old, new = rule.field.name, rule.to.name
            if new not in fields:
                raise ConfigurationRefused(
                    f"shape, line {rule.to.place.line}: the schema has no field {new}, which the "
                    f"field {old} is renamed to"
                )
            if old in fields:
                raise ConfigurationRefused(
                    f"shape, line {rule.field.place.line}: the schema has a field {old}, which no "
                    f"record has, because it is renamed to {new}"
                )
            fields = {old if name == new else name: each for name, each in fields.items()}
            fields[old] = {**fields[old], "name": old}
    document["fields"] = list(fields.values())
    return json.dumps(document)


def without_unused(text: str, rules: Sequence[Rule], schema: str, needed: Collection[str]) -> str:
    """Returns the schema that records have before the rules, without the fields that nobody needs.
    Nobody needs a field if the rules remove it, no rule reads its values, and neither the named
    schema nor `needed` has it. A JSON parser leaves out members with the names of these fields, so
    such members may have any type. text: the schema before the rules. schema: the schema that the
    source names. needed: the fields that something other than the record's members fills, such as
    the groups of `path.pattern`.
    """
    given = {each["name"] for each in json.loads(schema)["fields"]}
    seen = set().union(*map(_seen, rules))
    document = json.loads(text)
    unused = removed_names(rules) - given - seen - set(needed)
    document["fields"] = [each for each in document["fields"] if each["name"] not in unused]
    return json.dumps(document)


def removed_names(rules: Sequence[Rule]) -> set[str]:
    """Returns the names of the fields that rules remove, and, if rules rename such a field before,
    all its names."""
    return {
        name
        for name, own in private_rules(rules).items()
        if any(isinstance(rule, r.Remove) for rule in own)
    }


def private_rules(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """Returns the rules that mask, hash or remove a field, by the names of their fields. If rules
    rename such a field, all of its names are there. A member of a JSON object with one of these
    names may contain the secret that the rule hides.
    """
    names_of: dict[str, set[str]] = {}
    found: list[tuple[set[str], Rule]] = []
    for rule in rules:
        names: Sequence[r.Field] = ()
        match rule:
            case r.Rename(field, to):
                own = names_of.pop(field.name, {field.name})
                own.add(to.name)
                names_of[to.name] = own
            case r.Mask(field) | r.MaskMatching(field):
                names = (field,)
            case r.Hash(fields) | r.Remove(fields):
                names = fields
        found += [(names_of.setdefault(each.name, {each.name}), rule) for each in names]
    by_name: dict[str, list[Rule]] = {}
    for known, rule in found:
        for name in known:
            by_name.setdefault(name, []).append(rule)
    return by_name


def _seen(rule: Rule) -> set[str]:
    match rule:
        case r.Drop(where) | r.Keep(where):
            return _fields(where)
        case r.Sample(_, _, where):
            return set() if where is None else _fields(where)
        case r.Mask(field) | r.MaskMatching(field) | r.Rename(field):
            return {field.name}
        case r.Hash(fields):
            return {field.name for field in fields}
    return set()


def _fields(condition: Condition) -> set[str]:
    match condition:
        case r.Comparison(field) | r.Membership(field) | r.IsNull(field):
            return {field.name}
        case r.Not(part):
            return _fields(part)
        case r.AllOf(parts) | r.AnyOf(parts):
            return set().union(*map(_fields, parts))
