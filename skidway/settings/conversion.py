"""Makes an instance of a settings class from a table of keys: converts scalars to the types of the
settings, and checks their bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypeVar

from skidway.errors import ConfigurationRefused
from skidway.settings.gathering import Tree, gather
from skidway.settings.source import Items, Node, Scalar, Section
from skidway.settings.spec import REQUIRED, Kind, Shape, Spec, specs

TRUE = frozenset({"true", "yes", "on"})
FALSE = frozenset({"false", "no", "off"})
INTEGER_MAX = (1 << 63) - 1
"""What Avro, SQLite and Kafka take."""

T = TypeVar("T")


def build(cls: type[T], tree: Tree, *, where: str, path: str = "") -> T:
    """Makes an instance of `cls` from the values in `tree`. For error messages, `where` is the name
    of the file, and `path` is the key of the section in the file. Raises ConfigurationRefused."""
    values: dict[str, Any] = {}
    for key, spec in specs(cls).items():
        if key in tree:
            value = _value(spec, spec.shape, tree[key], where, path + key)
            _bounded(spec, value, tree[key], where, path + key)
            values[spec.name] = value
        elif spec.default is REQUIRED:
            values[spec.name] = _missing(spec, where, path + key)
    instance = cls(**values)
    check = getattr(instance, "check", None)
    if check is not None:
        try:
            check()
        except ConfigurationRefused as error:
            raise ConfigurationRefused(f"{where}: {error}") from error
    return instance


def _missing(spec: Spec, where: str, path: str) -> Any:
    # A section that is missing in the file gets the defaults of its settings. `build` raises an
    # error if one of these settings has no default.
    if spec.shape.kind is Kind.SECTION:
        return build(spec.shape.type, {}, where=where, path=f"{path}.")
    raise ConfigurationRefused(f"{where}: the key '{path}' is missing: {_inline(spec.help)}")


def _inline(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith("...") else line.removesuffix(".")


def _value(spec: Spec, shape: Shape, given: Node | Tree, where: str, path: str) -> Any:
    if isinstance(given, Scalar) and given.is_null:
        if shape.optional:
            return None
        raise ConfigurationRefused(f"{given.at}: {path} needs a value: {_inline(spec.help)}")
    match shape.kind:
        case Kind.SCALAR:
            return _scalar(shape, given, path)
        case Kind.LIST:
            return _list(spec, shape, given, where, path)
        case Kind.TEXTS:
            return _texts(given, path)
        case Kind.SECTION:
            return _section(shape, given, where, path)


def _section(shape: Shape, given: Node | Tree, where: str, path: str) -> Any:
    if isinstance(given, dict):
        return build(shape.type, given, where=where, path=f"{path}.")
    if isinstance(given, Section):  # an item of a list: its keys are still spelled as in the file
        tree = gather(shape.type, given, f"{path}.")
        return build(shape.type, tree, where=given.at, path=f"{path}.")
    known = ", ".join(list(specs(shape.type))[:4])
    raise ConfigurationRefused(f"{given.at}: {path} must be a section with keys such as {known}")


def _list(spec: Spec, shape: Shape, given: Node | Tree, where: str, path: str) -> Any:
    item = shape.item
    assert item is not None
    nodes: tuple[Node, ...]
    if isinstance(given, Items):
        nodes = given.nodes
    elif isinstance(given, Scalar) and item.kind is Kind.SCALAR:
        parts = [given.text] if given.quoted else given.text.split(",")
        nodes = tuple(Scalar(part.strip(), given.quoted, given.at) for part in parts)
    else:
        raise ConfigurationRefused(f"{_at(given, where)}: {path} must be a list")
    _bounded(spec, nodes, given, where, path)
    values = [
        _value(spec, item, node, where, f"{path}[{index}]") for index, node in enumerate(nodes)
    ]
    return tuple(values) if shape.type is tuple else values


def _texts(given: Node | Tree, path: str) -> dict[str, str]:
    if not isinstance(given, dict):
        raise ConfigurationRefused(f"{given.at}: {path} must be a section of `key: value` lines")
    for key, node in given.items():
        if not isinstance(node, Scalar):
            raise ConfigurationRefused(f"{node.at}: {path}.{key} must be one value")
    return {key: node.text for key, node in given.items()}


def _scalar(shape: Shape, given: Node | Tree, path: str) -> Any:
    if not isinstance(given, Scalar):
        at = _at(given, "the settings")
        raise ConfigurationRefused(f"{at}: {path} must be {_noun(shape)}")
    value = _parsed(shape.type, given.text)
    if shape.type is Path and not given.quoted and _parsed(float, given.text) is not None:
        value = None  # an unquoted number is refused; the path 5 can be written as "5" or ./5
    if value is None or (shape.choices and value not in shape.choices):
        raise ConfigurationRefused(
            f"{given.at}: {path} must be {_noun(shape)}, not {given.text[:100]!r}"
        )
    return value


def _parsed(kind: type[Any], text: str) -> Any:
    """Returns the text as a value of the type `kind`, or None if the text is no such value."""
    try:
        if kind is bool:
            low = text.lower()
            return True if low in TRUE else False if low in FALSE else None
        if kind is float:
            number = float(text)
            return number if math.isfinite(number) else None
        if kind is Path and "\0" in text:
            return None
        return int(text) if kind is int else Path(text) if kind is Path else text
    except ValueError:
        return None


def _noun(shape: Shape) -> str:
    if shape.choices:
        return "one of " + ", ".join(str(choice) for choice in shape.choices)
    return {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        Path: "a path",
    }.get(shape.type, "one value")


def _bounded(spec: Spec, value: Any, given: Node | Tree, where: str, path: str) -> None:
    size: float
    if isinstance(value, list | tuple | dict):
        size, unit = len(value), " entries"
    elif isinstance(value, str):
        size, unit = len(value), " characters"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        size, unit = value, ""
    else:
        return
    least, most = spec.at_least, spec.at_most
    if isinstance(value, int):
        least = -INTEGER_MAX if least is None else least
        most = INTEGER_MAX if most is None else most
    if least is not None and size < least:
        bound = f"at least {least}{' entry' if least == 1 and unit == ' entries' else unit}"
    elif most is not None and size > most:
        bound = f"at most {most}{unit}"
    else:
        return
    raise ConfigurationRefused(
        f"{_at(given, where)}: {path} must be {bound}, not {str(size)[:100]}"
    )


def _at(given: Node | Tree, where: str) -> str:
    return where if isinstance(given, dict) else given.at
