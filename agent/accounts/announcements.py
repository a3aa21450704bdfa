"""Announcements say which file a file id names. The agent sends the first announcement before the
file id's first record, repeats it every day, and sends a closing announcement at the file id's end.

If this agent's state is deleted, a new agent reads the same files again under new file ids. The
inode's time of birth then shows that two file ids name the same file. If the file system does not
report that time, equal fingerprints (hashes of a file's first bytes) show that the file is the
same. A short file has no full fingerprint. So if a file had fewer than FINGERPRINT_BYTES when it
was announced, the agent announces it again when the checkpoint has passed the file's first
FINGERPRINT_BYTES.
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
    """Returns the announcement that opens a file id. With `closing`, returns the announcement that
    closes the file id and states the file's final length.

    fingerprint: the present fingerprint (a hash of the file's first bytes), if the file has grown
    since the fingerprint in `tracked.birth` was computed.
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
    """Whether the last announcement of an open file id is so old (a day) that the file id should be
    announced again, or is in the future, because the clock was set back."""
    return tracked.announced and not 0 <= now_ms - tracked.announced_ms < REPEAT_AFTER_MS
