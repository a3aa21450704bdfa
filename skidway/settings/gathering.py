"""Makes a table of keys from the tree of a file. A key may be flat (`log.dirs`) or nested in the
file; in the table it has the spelling of the settings class."""

from __future__ import annotations

import difflib
from typing import Any

from skidway.errors import ConfigurationRefused
from skidway.settings.source import Node, Scalar, Section
from skidway.settings.spec import Kind, Spec, specs

Tree = dict[str, Any]
"""Maps each key of the file to its value: a Node, or another Tree if the value is a section or a
dict[str, str]."""


def gather(cls: type[Any], section: Section, path: str = "") -> Tree:
    """Returns the values in a section of the file, by the keys of the settings class `cls`. Raises
    ConfigurationRefused for unknown keys, and for keys that are given twice.

    `path` is the key of the section in the whole file (for example "sources[0]."), for the error
    message.
    """
    tree: Tree = {}
    for key, node in section.entries:
        _place(cls, key.text, key.at, node, tree, path)
    return tree


def merge(tree: Tree, over: Tree) -> None:
    """Puts the settings of `over` into `tree`. A section is merged key by key; any other value
    replaces the earlier value."""
    for key, value in over.items():
        below = tree.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merge(below, value)
        else:
            tree[key] = value


def keys(cls: type[Any]) -> list[str]:
    """Returns every key that may be written. The key of a section is followed by the dotted keys of
    the section's settings (`section.key`)."""
    found: list[str] = []
    for key, spec in specs(cls).items():
        found.append(key)
        if spec.shape.kind is Kind.SECTION:
            found += [f"{key}.{below}" for below in keys(spec.shape.type)]
    return found


def _place(cls: type[Any], name: str, at: str, node: Node, tree: Tree, path: str) -> None:
    table = specs(cls)
    spec = table.get(name)
    is_group = any(key.startswith(f"{name}.") for key in table)
    if spec is not None and is_group and spec.shape.kind is Kind.TEXTS:
        _place_texts(cls, spec, at, node, tree, path)
    elif spec is not None and not (is_group and _is_group_of(spec, node)):
        _set(spec, at, node, tree, path)
    elif is_group and isinstance(node, Section):
        for key, below in node.entries:
            _place(cls, f"{name}.{key.text}", key.at, below, tree, path)
    elif is_group and isinstance(node, Scalar) and node.is_null:
        return
    elif (owner := _owner(table, name)) is not None:
        rest = Scalar(name[len(owner.key) + 1 :], quoted=False, at=at)
        _set(owner, at, Section(((rest, node),), at), tree, path)
    else:
        raise ConfigurationRefused(_unknown(cls, name, at, path))


def _place_texts(cls: type[Any], spec: Spec, at: str, node: Node, tree: Tree, path: str) -> None:
    """Puts the value of a setting of type dict[str, str] into `tree`. In the file, an entry of the
    dict may belong to another setting. For example, if `roster` is the dict and `roster.file` is
    another setting, the entry `file` is stored under the key `roster.file`, and not in the dict."""
    if not isinstance(node, Section):
        _set(spec, at, node, tree, path)
        return
    table = specs(cls)
    for key, below in node.entries:
        owned = table.get(f"{spec.key}.{key.text}")
        if owned is not None:
            _set(owned, key.at, below, tree, path)
    texts = tuple(x for x in node.entries if f"{spec.key}.{x[0].text}" not in table)
    _set(spec, at, Section(texts, node.at), tree, path)


def _is_group_of(spec: Spec, node: Node) -> bool:
    return isinstance(node, Section) and spec.shape.kind not in (Kind.SECTION, Kind.TEXTS)


def _owner(table: dict[str, Spec], name: str) -> Spec | None:
    for key, spec in table.items():
        if spec.shape.kind in (Kind.SECTION, Kind.TEXTS) and name.startswith(f"{key}."):
            return spec
    return None


def _set(spec: Spec, at: str, node: Node, tree: Tree, path: str) -> None:
    if not isinstance(node, Section) or spec.shape.kind not in (Kind.SECTION, Kind.TEXTS):
        if spec.key in tree:
            raise ConfigurationRefused(f"{at}: the key '{path}{spec.key}' is given twice")
        tree[spec.key] = node
        return
    below = tree.setdefault(spec.key, {})
    if not isinstance(below, dict):
        raise ConfigurationRefused(f"{at}: the key '{path}{spec.key}' is given twice")
    if spec.shape.kind is Kind.SECTION:
        more = gather(spec.shape.type, node, f"{path}{spec.key}.")
    else:
        more = _texts(node, "")
    if clash := _clash(below, more):
        raise ConfigurationRefused(f"{at}: the key '{path}{spec.key}.{clash}' is given twice")
    merge(below, more)


def _texts(section: Section, prefix: str) -> Tree:
    """Returns the values of a setting that is a dict[str, str]. The keys of nested sections are
    joined by dots, as in the flat spelling."""
    tree: Tree = {}
    for key, node in section.entries:
        name = prefix + key.text
        more = _texts(node, f"{name}.") if isinstance(node, Section) else {name: node}
        if clash := _clash(tree, more):
            raise ConfigurationRefused(f"{key.at}: the key '{clash}' is given twice")
        tree |= more
    return tree


def _clash(tree: Tree, more: Tree) -> str | None:
    for key, value in more.items():
        below = tree.get(key)
        if below is None:
            continue
        if not (isinstance(value, dict) and isinstance(below, dict)):
            return key
        if (deeper := _clash(below, value)) is not None:
            return f"{key}.{deeper}"
    return None


def _unknown(cls: type[Any], name: str, at: str, path: str) -> str:
    known = {key.lower(): key for key in keys(cls)}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)
    hint = f"; the nearest known one is '{path}{known[near[0]]}'" if near else ""
    return f"{at}: unknown key '{path}{name}'{hint}"
