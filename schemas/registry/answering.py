"""Defines the interface of the two objects that answer requests: the store, which reads and writes
the log, and the store's memory, which never waits for the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from skidway.schemas.registry.decisions import Decision
from skidway.schemas.registry.state import RegistryState

Answer = TypeVar("Answer")


class MustWait(Exception):
    """The registry cannot answer the request from memory alone, and has to read the log."""


class Registry(Protocol):
    """An object that answers requests: the store, or the store's memory."""

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Returns the answer to `question`. Raises refusals."""

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """Makes the decision, and writes its change into the log. Then returns the answer of the
        decision. Raises refusals.

        `ahead` does slow work before the decision, so that other writers need not wait for this
        work.
        """


class Memory:
    """Answers requests from the memory of a store. Never waits for the network, but raises
    `NotFound` or `MustWait` instead."""

    def __init__(self, ask: Callable[[Callable[[RegistryState], Any]], Any]) -> None:
        self._ask = ask

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Answers `question` from the entries of the log that were read so far."""
        answer: Answer = self._ask(question)
        return answer

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """Raises `MustWait`, because every write needs the log."""
        raise MustWait
