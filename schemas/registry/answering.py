"""Defines the interface of the two objects that answer requests: the store, which reads and writes
the log in ZooKeeper, and the store's memory, which never waits for the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from skidway.schemas.registry.decisions import Decision
from skidway.schemas.registry.state import RegistryState

Answer = TypeVar("Answer")


class MustWait(Exception):
    """Raised if the registry cannot answer the request from memory alone, but has to read the
    log."""


class Registry(Protocol):
    """An object that answers requests: the store, or the store's memory."""

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Returns the result of `question`, which gets the present state. Raises the refusals that
        `question` raises."""

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """Calls `decide` with the present state, writes the change of the resulting decision into
        the log, and then returns the answer of this decision. Raises a refusal if the request is
        not allowed.

        Before this, calls `ahead`, which does slow work. Meanwhile other requests can still write
        to the log.
        """


class Memory:
    """Answers requests from the memory of a store. Never waits for the network, but raises
    `NotFound` or `MustWait` instead."""

    def __init__(self, ask: Callable[[Callable[[RegistryState], Any]], Any]) -> None:
        self._ask = ask

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Returns the result of `question`, which gets the state after the log entries that were
        read so far."""
        answer: Answer = self._ask(question)
        return answer

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """Raises `MustWait`, because every write needs the log."""
        raise MustWait
