"""Makes a table of the keys of a settings class, with their types and bounds."""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
import typing
from collections.abc import Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, Literal

from skidway.dataclass import dataclass


class Required(Enum):
    """Marks a setting that has no default."""

    REQUIRED = auto()

    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = Required.REQUIRED

_METADATA = "skidway.setting"


class Kind(Enum):
    """How a setting is written in the file."""

    SCALAR = auto()
    LIST = auto()
    TEXTS = auto()  # dict[str, str]
    SECTION = auto()  # a nested settings class


@dataclass(frozen=True, slots=True)
class Shape:
    """A setting's type hint, taken apart. `type` is the class of a scalar or section. `item`
    describes the items of a list. `optional` says whether None is allowed. `choices` are the
    allowed values; if `choices` is empty, all values of the type are allowed."""

    kind: Kind
    type: Any = str
    item: Shape | None = None
    optional: bool = False
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """One setting of a settings class."""

    name: str
    key: str
    shape: Shape
    default: Any
    help: str
    at_least: float | None
    at_most: float | None
    example: Any


# `setting` needs seven parameters, one for each property of a setting.
def setting(
    key: str,
    default: Any = REQUIRED,
    *,
    help: str,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: Sequence[Any] | None = None,
    example: Any = None,
) -> Any:
    """Declares a field of a settings class. `key` is the setting's name in the file. If Kafka,
    ZooKeeper or Confluent has the same setting, `key` is its name there.

    Bounds are inclusive. The bounds of a text, a list or a dict limit its length. `choices` are the
    allowed values; they are ignored if the type is a Literal, because a Literal itself lists the
    allowed values.
    `example` is the value that the example file shows if the setting has no default, or if its
    default is None.
    """
    metadata = {
        _METADATA: {
            "key": key,
            "help": help,
            "at_least": at_least,
            "at_most": at_most,
            "choices": tuple(choices or ()),
            "example": example,
        }
    }
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, list | dict | set):
        return dataclasses.field(
            default_factory=functools.partial(copy.deepcopy, default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


def beside(default: Any, *, compare: bool = True) -> Any:
    """Declares a field that is no setting: the program finds the value out when it reads the
    settings."""
    return dataclasses.field(
        default=default, compare=compare, repr=False, metadata={_METADATA: None}
    )


_tables: dict[type[Any], dict[str, Spec]] = {}


def specs(cls: type[Any]) -> dict[str, Spec]:
    """Returns the settings of a class by key, in the order in which the class declares them."""
    if cls not in _tables:
        _tables[cls] = _table(cls)
    return _tables[cls]


def _table(cls: type[Any]) -> dict[str, Spec]:
    hints = typing.get_type_hints(cls)
    table: dict[str, Spec] = {}
    for field in dataclasses.fields(cls):
        if _METADATA not in field.metadata:
            raise TypeError(f"{cls.__name__}.{field.name} is not a setting(...)")
        if field.metadata[_METADATA] is None:
            continue
        meta = dict(field.metadata[_METADATA])
        shape = shape_of(hints[field.name], meta.pop("choices"))
        spec = Spec(name=field.name, shape=shape, default=_default(field), **meta)
        if spec.key in table:
            raise TypeError(f"{cls.__name__} has the key {spec.key} twice")
        table[spec.key] = spec
    return table


def shape_of(hint: Any, choices: tuple[Any, ...] = ()) -> Shape:
    """Returns the `Shape` for the type hint of a setting. If the hint is no Literal, `choices` are
    the allowed values; if `choices` is empty, all values of the type are allowed. Raises TypeError
    for a type whose values cannot be written in a file."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) != 1 or len(arguments) != 2:
            raise TypeError(f"a setting is of one type, or of one and None, not {hint}")
        return dataclasses.replace(shape_of(inner[0], choices), optional=True)
    if origin is Literal:
        return Shape(Kind.SCALAR, type(arguments[0]), choices=arguments)
    if origin in (list, tuple, Sequence):
        return Shape(Kind.LIST, origin, item=shape_of(arguments[0], choices))
    if origin is dict and arguments == (str, str):
        return Shape(Kind.TEXTS, dict)
    if hint in (bool, int, float, str, Path):
        return Shape(Kind.SCALAR, hint, choices=choices)
    if dataclasses.is_dataclass(hint):
        return Shape(Kind.SECTION, hint)
    raise TypeError(f"a setting cannot be of type {hint}")


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return REQUIRED
