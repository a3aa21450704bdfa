"""Judges hosts or topics repeatedly (each time is called a look), until every host is proven
complete or every topic is complete, or until a timeout. A host is called short while it is not
proven complete, and a topic while it is not complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from skidway.cli.output import Progress
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.errors import KafkaError

POLL_S = 1.0
POLL_SHARE = 2
"""After each look, `patiently` pauses at least this many times as long as the look took, but not
beyond the timeout. So the looks take about a third of the time at most."""

NAMES_MAX = 3
"""The progress line names at most this many of the hosts that are not proven, or of the topics that
are not complete, and gives the number of the others."""


class Awaited(Protocol):
    """What one look found out about a host or a topic for which a command waits."""

    @property
    def name(self) -> str:
        """The name of the host or topic, for the progress line."""

    @property
    def is_short(self) -> bool:
        """Whether the wait must continue: a host is not proven yet, or a topic is not complete
        yet."""


T = TypeVar("T", bound=Awaited)


def patiently(
    look: Callable[[], list[T]],
    clock: Clock,
    pause: Callable[[float], object],
    timeout_s: float,
    progress: Progress,
    poll_s: float = POLL_S,
) -> list[T]:
    """Calls `look` repeatedly until none of its results is short, or until `timeout_s` is over.
    Returns the results of the last call. If the first call raises Unreachable, KafkaError or
    CorruptBatch, raises the error at once. If a later call raises one of them, raises the error
    only when the time is over, because the brokers may just be restarting. poll_s: the shortest
    pause between two looks; only the pause before the timeout may be shorter."""
    deadline = clock.monotonic() + timeout_s
    found: list[T] | None = None
    while True:
        begun = clock.monotonic()
        failure: Exception | None = None
        try:
            found = look()
        except (Unreachable, KafkaError, CorruptBatch) as error:
            if found is None:
                raise
            failure = error
        now = clock.monotonic()
        if failure is None and not any(each.is_short for each in found):
            return found
        if now >= deadline:
            if failure is not None:
                raise failure
            return found
        progress.show(sum(not each.is_short for each in found), _waiting_for(found))
        pause(min(max(poll_s, POLL_SHARE * (now - begun)), deadline - now))


def _waiting_for(found: Sequence[Awaited]) -> str:
    names = sorted({each.name for each in found if each.is_short})
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"waiting for {', '.join(names[:NAMES_MAX])}{more}" if names else ""
