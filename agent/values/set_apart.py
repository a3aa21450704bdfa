"""Byte ranges that are lost, or of which nobody knows whether they were delivered exactly once.
Each range has a reason, in words for people.
"""

from __future__ import annotations

from typing import NamedTuple

from skidway.agent.values.tracked import TrackedFile
from skidway.audit.topic.messages import Certainty
from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SetApart:
    """Bytes [first, end) of a file that are lost, or of which nobody knows whether they were
    delivered exactly once.

    end: None if the agent does not know the end of the bytes.
    """

    tracked: TrackedFile
    first: int
    end: int | None
    certainty: Certainty
    reason: str


class Unseen(NamedTuple):
    """Files that were at the same path, one after the other. The agent did not read them, or may
    not have read them.

    oldest_ms: a lower bound for the time at which the first line of these files was written. None
    if no line of these files can be older than the agent's last seal.
    """

    topic: str
    topic_id: str
    path: str
    reason: str
    oldest_ms: int | None = None
