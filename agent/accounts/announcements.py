"""What a file id stands for: said before its first record, daily, and at its end.

Another agent, made because this one's state was deleted, shows that it reads the same file by the
time of birth of its inode. Where the file system does not tell it, the first bytes show it: so the
file is announced once more when it has as many bytes as a fingerprint is of.
"""

from __future__ import annotations

from skidway.agent.values.identity import Fingerprint
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.topic.messages import Announcement
from skidway.kafka.source import Source

REPEAT_AFTER_MS = 86_400_000


def announcement(
    tracked: TrackedFile,
    agent: int,
    source: Source,
    now_ms: int,
    *,
    closing: bool = False,
    fingerprint: Fingerprint | None = None,
) -> Announcement:
    """The opening announcement of a file id, or with `closing` the one with its final length.

    fingerprint: of more bytes than were there at its birth, if there are some now.
    """
    birth = tracked.birth
    fingerprint = fingerprint or birth.fingerprint
    return Announcement(
        time_ms=now_ms,
        agent=agent,
        file=birth.file,
        host=birth.host,
        path=birth.path,
        device=birth.key.device,
        inode=birth.key.inode,
        fingerprint=fingerprint.digest,
        fingerprint_length=fingerprint.length,
        source=source,
        begin=birth.begin,
        predecessor=birth.predecessor,
        predecessor_position=birth.predecessor_position,
        length=tracked.length if closing else None,
        born_ns=birth.born_ns,
    )


def is_due(tracked: TrackedFile, now_ms: int) -> bool:
    """Whether an open file id should be announced again."""
    return tracked.announced and not 0 <= now_ms - tracked.announced_ms < REPEAT_AFTER_MS
