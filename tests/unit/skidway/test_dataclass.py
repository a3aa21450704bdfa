"""The dataclasses of `skidway.dataclass` behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from skidway.dataclass import dataclass

KINDS = [
    {"frozen": True, "slots": True},
    {"slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True, "eq": False},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "order": True},
    {"frozen": True},
]


def point(decorator: Callable[..., Any], **kind: bool) -> Any:
    """Returns a dataclass, made by `decorator`, that has fields with each kind of default and a
    field without a default."""

    class Point:
        """A point of the plane, with further fields."""

        x: int
        y: int = 2
        names: list[str] = field(default_factory=list)
        hidden: str = field(default="h", repr=False)
        unseen: int = field(default=0, compare=False)
        later: int = field(default=5, init=False)

        @property
        def sum(self) -> int:
            """The sum of the coordinates."""
            return self.x + self.y

    return decorator(**kind)(Point)


def outcome(act: Callable[[], object]) -> object:
    """Returns the result of an action, or the type of the error that the action raises."""
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_do_the_same(kind: dict[str, bool]) -> None:
    """An object has the same repr, comparisons, hash and copies as an object of the same class made
    by the standard library's `dataclass`. Changes that the one object refuses, the other object
    refuses, too."""
    own, theirs = point(dataclass, **kind), point(dataclasses.dataclass, **kind)

    def facts(cls: Any) -> list[object]:
        first = cls(x=1, names=["a"], unseen=3)
        return [
            repr(first),
            first == cls(x=1, names=["a"], unseen=4),
            first == cls(x=2, names=["a"]),
            first == 1,
            first.sum,
            first.later,
            cls(x=1).names is cls(x=1).names,
            outcome(lambda: cls(1, 3).y),
            outcome(cls),
            outcome(lambda: cls(x=1, z=1)),
            outcome(lambda: hash(cls(x=1, names=()))) if kind.get("eq", True) else None,
            outcome(lambda: setattr(first, "x", 7)),
            outcome(lambda: delattr(first, "y")),
            repr(dataclasses.replace(first, y=9)),
            dataclasses.asdict(cls(x=1)),
            [each.name for each in dataclasses.fields(cls)],
            cls.__match_args__,
            cls.__doc__,
            cls.__dataclass_params__.frozen,
            repr(copy.deepcopy(cls(x=4, names=["b"]))),
            hasattr(first, "__dict__"),
        ]

    assert facts(own) == facts(theirs)


@dataclass(frozen=True, slots=True)
class Single:
    """One value."""

    value: float

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Own:
    """A class with methods of its own."""

    value: int

    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "own"


@dataclass(frozen=True, slots=True)
class Empty:
    """A class without fields."""


def test_an_object_survives_pickle() -> None:
    """A frozen object with slots can be pickled. The object that is read back equals the
    original."""
    assert pickle.loads(pickle.dumps(Single(1.5))) == Single(1.5)
    assert hash(Single(1.5)) == hash((1.5,))


def test_the_class_is_finished_by_its_own_methods() -> None:
    """`__post_init__` runs for each new object, also for the first object of a class. Methods that
    the class defines itself are not replaced."""
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            Single(-1.0)
    assert (repr(Own(1)), Own(1) == Own(2)) == ("own", True)
    assert (repr(Empty()), Empty() == Empty(), hash(Empty())) == ("Empty()", True, hash(()))


def test_a_class_may_inherit() -> None:
    """A dataclass that inherits from another dataclass has the fields of both classes."""

    @dataclass(frozen=True, slots=True)
    class More(Single):
        """A `Single` with a second value."""

        other: int = 1

    assert (More(1.0, 2).value, More(1.0).other) == (1.0, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        More(1.0).other = 3  # type: ignore[misc]
