"""What answers requests: the store with its log, or memory alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from skidway.schemas.registry.decisions import Decision
from skidway.schemas.registry.state import RegistryState

Answer = TypeVar("Answer")


class MustWait(Exception):
    """Memory alone cannot answer: the log has to be asked."""


class Registry(Protocol):
    """What answers requests: the store, or its memory."""

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """The answer. Raises refusals."""

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """The decision's answer, once its change is in the log. Raises refusals.

        `ahead` runs before the decision: slow work that would make other writers wait.
        """


class Memory:
    """What a store remembers. Never waits for the network: raises `NotFound` or `MustWait`."""

    def __init__(self, ask: Callable[[Callable[[RegistryState], Any]], Any]) -> None:
        self._ask = ask

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """The answer as far as the log was read."""
        answer: Answer = self._ask(question)
        return answer

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """Only the log knows."""
        raise MustWait
