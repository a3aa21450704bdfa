"""Reports on wrong clocks of senders and of this host, as sentences and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skidway.audit.judgement.clocks import Clocks, Difference

NAMED_MAX = 5
"""A sentence names at most this many senders; the JSON document has all of them."""


def sentences(clocks: Clocks) -> list[str]:
    """Sentences about wrong clocks, or about the silence of all senders. The list is empty if no
    clock is wrong and a sender was heard lately."""
    return [*_of_ours(clocks), *_of_others(clocks), *_of_silence(clocks)]


def document(clocks: Clocks) -> dict[str, Any]:
    """The whole report as JSON. The difference of a clock is in ms: positive if the clock is ahead
    of the right time (see the module clocks), negative if it is behind.
    """
    return {
        "sentences": sentences(clocks),
        "own_ahead_ms": clocks.ours_ms,
        "senders_read": clocks.senders,
        "senders": [
            {
                "tier": x.tier.value.lower(), "host": x.host, "producer": x.producer,
                "ahead_ms": x.ahead_ms,
            }
            for x in clocks.others
        ],
    }  # fmt: skip


def who(difference: Difference) -> str:
    """The name of a sender: its tier and its host. If the host is unknown, the tier and the
    producer (an agent id or a counter's or loader's name)."""
    word = difference.tier.value.lower()
    if difference.host:
        return f"{word} on {difference.host}"
    return f"{word} {difference.producer}"


def _of_ours(clocks: Clocks) -> Iterator[str]:
    if clocks.ours_ms == 0:
        return
    if clocks.ours_ms < 0:
        what = "buckets that are due count as too young"
    else:
        what = "hosts that report can look silent, and nothing after their time is judged"
    whom = "that of the only program" if clocks.senders == 1 else "those of most programs"
    if clocks.is_behind_store:
        whom = "the collector's"
    yield f"The clock of this host is {_amount(clocks.ours_ms)} {whom}: {what}."


def _of_others(clocks: Clocks) -> Iterator[str]:
    for each in clocks.others[:NAMED_MAX]:
        late = " (or its messages come late)" if each.ahead_ms < 0 else ""
        yield f"The clock of the {who(each)} is {_amount(each.ahead_ms)} the others{late}."
    if len(clocks.others) > NAMED_MAX:
        yield f"The clocks of {len(clocks.others) - NAMED_MAX} more programs differ."


def _of_silence(clocks: Clocks) -> Iterator[str]:
    if clocks.unheard_ms and clocks.ours_ms == 0:
        yield (
            f"The newest of all messages is {clocks.unheard_ms // 1000} s old: no program sends,"
            " nobody collects what they send, or the clock of this host is ahead."
        )


def _amount(ahead_ms: int) -> str:
    seconds = abs(ahead_ms) // 1000
    return f"{seconds} s {'ahead of' if ahead_ms > 0 else 'behind'}"
