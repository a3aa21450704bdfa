"""An intent says which bytes of a file the agent is going to send, and by which recipe. A recipe
contains the settings and schemas that decide which records the agent makes from the bytes.

An intent is durable before any of its bytes is first sent. An intent ends at the end of a whole
record, so the agent can divide its bytes into records without the bytes of other intents. After a
crash, the agent repeats all intents that the checkpoint has not passed: it sends the intents' bytes
again, by the same recipes. The agent repeats an intent only if the bytes still have the CRC in the
intent, and if the versions of code in the recipe are those of the running program. Then the same
bytes give the same records. The agent continues to read a file at the end of the file's last
intent.
"""

from __future__ import annotations

from typing import Final

import google_crc32c

from skidway.agent.values.labels import Labels
from skidway.dataclass import dataclass

GIVEN_UP: Final = b"given up"
"""If an operator gives up an intent (`skidway agent state give-up`), so that the agent does not
send it again, this name replaces the name of the intent's recipe.
"""


@dataclass(frozen=True, slots=True)
class Intent:
    """Bytes [first, end) of a file, which were read at wall time `read_ms` and are sent by the
    recipe that `recipe` names.

    sequence: a number that rises over all files in the order in which intents were made. crc:
    CRC-32C of the bytes.
    """

    sequence: int
    file: int
    first: int
    end: int
    crc: int
    read_ms: int
    recipe: bytes

    @property
    def length(self) -> int:
        """How many bytes the intent has."""
        return self.end - self.first


@dataclass(slots=True)
class Numbers:
    """Gives sequence numbers to intents. last: the highest number in use."""

    last: int

    def next(self) -> int:
        """Returns a sequence number above those of all intents that are stored or were made by this
        process."""
        self.last += 1
        return self.last


@dataclass(frozen=True, slots=True)
class Reading:
    """An intent and its bytes. If the intent's bytes are one over-long line (above READ_BYTES),
    `data` has only the head of the line. host, path: the host and path with which the file was
    announced to the audit; the records of rejected lines contain this host and path. labels: the
    labels of the file's pod or container where the intent begins.
    """

    intent: Intent
    data: bytes
    host: str
    path: str
    labels: Labels = ()

    @property
    def is_overlong(self) -> bool:
        """Whether `data` is only the head of one line."""
        return len(self.data) < self.intent.length


def crc_of(data: bytes, before: int = 0) -> int:
    """Returns the CRC-32C of `data`. before: the CRC of bytes that come before `data`; the result
    is then the CRC of these bytes and `data` together."""
    crc: int = google_crc32c.extend(before, data)
    return crc
