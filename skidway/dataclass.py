"""Makes dataclasses faster than the standard library does. Use `dataclass` of this module like
`dataclasses.dataclass`.

A starting agent makes about 250 dataclasses. The standard library compiles up to nine methods for
each dataclass. This took a quarter of the time of the agent's start. This module compiles only
`__init__`, and only when the first object of the class is made. All classes share the compiled code
of the other methods. The objects behave like the objects of the standard library's dataclasses.

Most modules that a starting agent imports use this module. This module leaves some dataclasses to
the standard library: those without slots, those with an order, and those that inherit from another
dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        order: bool = False,
        kw_only: bool = False,
    ) -> Any:
        """Does the same as `dataclasses.dataclass`: turns a class with annotated fields into a
        dataclass."""

        def make(made: type) -> type:
            inherits = any(hasattr(base, "__dataclass_fields__") for base in made.__bases__)
            if order or inherits or not slots:
                return dataclasses.dataclass(
                    frozen=frozen, slots=slots, eq=eq, order=order, kw_only=kw_only
                )(made)
            return _made(made, frozen=frozen, eq=eq, kw_only=kw_only)

        return make if cls is None else make(cls)


def _made(cls: type, *, frozen: bool, eq: bool, kw_only: bool) -> type:
    own = set(cls.__dict__)
    if "__eq__" in own and cls.__dict__.get("__hash__", 0) is None:
        own.remove("__hash__")  # Python sets `__hash__` to None because of `__eq__`
    made: Any = dataclasses.dataclass(
        slots=True, kw_only=kw_only, init=False, repr=False, eq=False
    )(cls)
    made.__dataclass_params__.frozen = frozen
    methods: dict[str, Any] = {"__init__": _initializer(made), "__repr__": _text}
    if eq:
        values = _values(made)
        methods["__eq__"] = _equality(values)
        methods["__hash__"] = _hash_of(values) if frozen else None
    if frozen:
        methods |= _FROZEN
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _initializer(cls: Any) -> Callable[..., None]:
    """Returns a preliminary `__init__`. When called for the first time, the preliminary `__init__`
    compiles the final `__init__`, and the class gets the final one instead.
    """

    def initialize(self: Any, *args: Any, **named: Any) -> None:
        compiled = _compiled(cls)
        if cls.__init__ is initialize:
            cls.__init__ = compiled
        compiled(self, *args, **named)

    return initialize


def _compiled(cls: type) -> Callable[..., None]:
    """Returns the final `__init__`. The final `__init__` sets each field through the descriptor of
    the field's slot, which is faster than `setattr` with the field's name."""
    names: dict[str, Any] = {"_missing": _MISSING}
    body: list[str] = []
    positional: list[str] = []
    named: list[str] = []
    for field in dataclasses.fields(cls):
        name, value = field.name, field.name
        arguments = named if field.kw_only else positional
        names[f"_set_{name}"] = getattr(cls, name).__set__
        if field.default_factory is not dataclasses.MISSING:
            names[f"_new_{name}"] = field.default_factory
            value = f"_new_{name}()"
            if field.init:
                arguments.append(f"{name}=_missing")
                value += f" if {name} is _missing else {name}"
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            value = name if field.init else f"_default_{name}"
            arguments += [f"{name}=_default_{name}"] if field.init else []
        elif field.init:
            arguments.append(name)
        else:
            continue
        body.append(f"_set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    text = "\n ".join(body) or "pass"
    exec(f"def __init__({parameters}):\n {text}", names)  # noqa: S102 - our own text
    initializer: Callable[..., None] = names["__init__"]
    initializer.__qualname__ = f"{cls.__qualname__}.__init__"
    return initializer


def _values(cls: type) -> Callable[[Any], Any]:
    """Returns a function that gets an object and returns a tuple of the values that `==`
    compares."""
    names = [x.name for x in dataclasses.fields(cls) if x.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _equality(values: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def is_equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return is_equal


def _hash_of(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


@recursive_repr()
def _text(self: Any) -> str:
    names = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{self.__class__.__qualname__}({values})"


def _refuse_change(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_MISSING: Final = object()
_FROZEN: Final = {
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_deletion,
    # Without `__getstate__` and `__setstate__`, pickle and copy would assign to fields, which
    # `__setattr__` refuses.
    "__getstate__": _state,
    "__setstate__": _set_state,
}
