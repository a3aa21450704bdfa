"""Defines the interface of the two objects that answer requests: the store, which reads and writes
the log in ZooKeeper, and the store's memory, which never waits for the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from skidway.schemas.registry.decisions import Decision
from skidway.schemas.registry.state import RegistryState

Answer = TypeVar("Answer")


class MustWait(Exception):
    """Raised if the registry cannot answer the request from memory alone, but needs its log in
    ZooKeeper."""


class Registry(Protocol):
    """An object that answers requests: the store, or the store's memory."""

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Calls `question` with the registry's present state, and returns its result. Raises the
        refusals that `question` raises."""

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """First calls `ahead`, which does slow work while other requests can still write to the
        log. Then calls `decide` with the present state, and writes the change in the resulting
        decision into the log. Returns the answer in the decision. Raises a refusal if the request
        is not allowed.
        """


class Memory:
    """Answers requests from the memory of a store, and never waits for the network. If the memory
    does not have the answer, raises `NotFound` or `MustWait`."""

    def __init__(self, ask: Callable[[Callable[[RegistryState], Any]], Any]) -> None:
        self._ask = ask

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Calls `question` with the registry's state and returns its result. The state contains the
        log entries that this process has read so far."""
        answer: Answer = self._ask(question)
        return answer

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """Raises `MustWait`, because every write needs the registry's log in ZooKeeper."""
        raise MustWait
