"""Decides, without I/O, when the next step of judging begins.

Judging takes about a sixteenth of the collector's time, and at most an eighth. In a large fleet, a
step takes more than a second, so steps are up to a minute apart. But people and jobs wait for the
verdicts on buckets that have just become due. So steps begin when buckets become due, if these
moments are neither too close together nor too far apart.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

STEP_EVERY_S: Final = 1.0
"""The least time from the beginning of a step to the beginning of the next step. If the next step
begins because buckets become due, or is the last step before such a step, half of this time is
enough."""

STEP_SHARE: Final = 16
"""The usual time from the beginning of a step to the beginning of the next step, as a multiple of
the time that the step took."""

AFTER_DUE_S: Final = 0.1
"""When buckets become due, a step begins this many seconds later, so that they surely are due when
they are judged."""


class Due(NamedTuple):
    """The times at which buckets become due. next_s: in how many seconds the next known bucket
    becomes due. every_s: the length of this bucket in seconds; the bucket after it becomes due
    `every_s` seconds later.
    """

    next_s: float
    every_s: float


def next_step_s(taken_s: float, due: Due | None) -> float:
    """Returns how many seconds after the beginning of a step the next step begins. taken_s: how
    long the step took. due: the times at which buckets become due, in seconds after the beginning
    of the step; None if no known bucket will become due.
    """
    wait_s = max(STEP_EVERY_S, STEP_SHARE * taken_s)
    if due is None:
        return wait_s
    later = max(0, math.ceil((_least_s(wait_s, due) - due.next_s) / due.every_s))
    due_s = due.next_s + later * due.every_s
    if due_s <= 1.5 * wait_s:
        return due_s + AFTER_DUE_S
    # If the next step began shortly before buckets become due (due_s), it might still run at that
    # time. So the next step begins at half of `due_s` at the latest.
    return min(wait_s, due_s / 2)


def _least_s(wait_s: float, due: Due) -> float:
    """Returns the least number of seconds from the beginning of one step to the beginning of the
    next step, for a next step that begins because buckets become due. `wait_s` is the usual number
    of seconds; it grows with the time that the last step took. Normally the result is a quarter of
    `wait_s`. So even if the last step took unusually long, the next step can begin as soon as
    buckets become due. If buckets become due more often than steps usually begin, the result is
    half of `wait_s`, because steps would otherwise be too frequent.
    """
    if due.every_s < wait_s:
        return wait_s / 2
    return max(STEP_EVERY_S / 2, wait_s / 4)
