"""Checks hosts again and again until they are proven, or the time is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skidway.audit.judgement.host_proofs import Proof
from skidway.cli.output import Progress
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.errors import KafkaError

POLL_S = 1.0
POLL_SHARE = 2
"""After each look, `patiently` pauses at least this many times as long as the look took. So looking
takes at most a third of the time."""

NAMES_MAX = 3
"""The progress names at most this many hosts; the other hosts are only counted."""


def patiently(
    look: Callable[[], list[Proof]],
    clock: Clock,
    pause: Callable[[float], object],
    timeout_s: float,
    progress: Progress,
) -> list[Proof]:
    """Looks until every host is proven, or the time is over. If the cluster is unreachable at the
    first look, raises the error at once. If it becomes unreachable later, raises the error only
    when the time is over, because the brokers may just be restarting."""
    deadline = clock.monotonic() + timeout_s
    found: list[Proof] | None = None
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
        if failure is None and not any(proof.is_short for proof in found):
            return found
        if now >= deadline:
            if failure is not None:
                raise failure
            return found
        progress.show(sum(not proof.is_short for proof in found), _waiting_for(found))
        pause(min(max(POLL_S, POLL_SHARE * (now - begun)), deadline - now))


def _waiting_for(found: Sequence[Proof]) -> str:
    names = sorted({proof.state.host for proof in found if proof.is_short})
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"waiting for {', '.join(names[:NAMES_MAX])}{more}" if names else ""
