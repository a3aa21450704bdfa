from __future__ import annotations

from itertools import permutations

from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.topic.messages import Announcement, encode
from support.audit_senders import LOGS


def test_the_earliest_announcement_of_a_file_counts() -> None:
    """If an agent announced a file id with several host names and inodes, the ledger returns the
    earliest announcement of the id or, if it is asked for a host, the earliest one with this host
    name. So `skidway audit trace` shows the host, path and time of this announcement, and first
    searches the part of the log from shortly before this time on."""
    said = [
        Announcement(30, 7, 3, "a", "/a.log", 1, 5, b"f", 4, LOGS),
        Announcement(10, 7, 3, "b", "/b.log", 1, 9, b"f", 4, LOGS),
        Announcement(20, 7, 3, "b", "/c.log", 1, 2, b"f", 4, LOGS),
    ]
    for order in permutations(said):
        lines = ledger_of([encode(each) for each in order]).lines
        (found,) = lines.files_with(3)
        assert (found.time_ms, found.host, found.path) == (10, "b", "/b.log")
        (found,) = lines.files_of("b")
        assert (found.time_ms, found.path) == (10, "/b.log")
        (found,) = lines.files_of("a")
        assert (found.time_ms, found.path) == (30, "/a.log")
