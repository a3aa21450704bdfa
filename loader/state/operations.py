"""Defines operations on a store as values, and the functions that execute these operations. A
generator (`Steps`) decides what to do: it yields operations and receives the store's answers. So
the generator itself needs no store."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar

from skidway.loader.store import OutcomeUnclear, Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Length:
    """Asks for the length of a file in bytes; the answer is None if there is no such file."""

    path: str


@dataclass(frozen=True, slots=True)
class Read:
    """Asks for the content of a file; the answer is None if there is no such file."""

    path: str


@dataclass(frozen=True, slots=True)
class Names:
    """Asks for the names in a directory. The answer is a list, which is empty if the directory does
    not exist."""

    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Moves a file, but never overwrites an existing target. The answer is True if the file was
    moved."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Moves a file, and overwrites an existing target. The answer is False if the source does not
    exist. Otherwise the answer is True."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a file, or a directory with all its files."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """Makes the names of the files in the given directories durable, as fsync of a directory
    does."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Create:
    """Creates a file if it does not exist. The answer is a `Created`. scratch: a directory for
    temporary files."""

    path: str
    data: bytes
    scratch: str


class Created(Enum):
    """The result of `Create`."""

    YES = auto()
    EXISTS = auto()
    UNCLEAR = auto()


Operation = Length | Read | Names | Rename | Replace | Delete | Sync | Create
Steps = Generator[Operation, Any, T]


def run(steps: Steps[T], store: Store) -> T:
    """Runs the generator `steps`, and performs on `store` each operation that it yields. Returns
    the generator's result."""
    answer: Any = None
    while True:
        try:
            operation = steps.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        answer = perform(operation, store)


def perform(operation: Operation, store: Store) -> Any:
    """Performs one operation on a store, and returns the store's answer. The docstring of the
    operation's class says what the answer is."""
    match operation:
        case Length(path):
            return store.length(path)
        case Read(path):
            return store.read(path)
        case Names(path):
            return store.names(path)
        case Rename(source, target):
            return store.rename(source, target)
        case Replace(source, target):
            return store.replace(source, target)
        case Delete(path):
            return store.delete(path)
        case Sync(paths):
            return store.sync(paths)
        case Create(path, data, scratch):
            try:
                created = store.create_if_absent(path, data, scratch)
            except OutcomeUnclear:
                return Created.UNCLEAR
            return Created.YES if created else Created.EXISTS
