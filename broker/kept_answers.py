"""Answers that many clients ask for in the same words, kept as bytes as long as they hold.

After a restart every client asks for ApiVersions and Metadata at once, most of them for the same
topics. Which bytes answer a request is decided by its version, its body, and the pictures that the
answer is made from; a picture is an object that is replaced whenever it changes, never changed. So
an answer holds as long as the pictures are the same objects, and nobody has to say that something
changed.

What else decides an answer, or asking does (a topic that is made because it was asked for), must
not be kept; that is for the handler to know.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from operator import is_
from typing import Final

ENTRIES_MAX: Final = 1000
BYTES_MAX: Final = 8 << 20
"""Of all that is kept; 200,000 partitions in version 5."""
REQUEST_BYTES_MAX: Final = 16 << 10
"""Longer requests are answered anew: they name hundreds of topics, which few clients do alike."""
ENTRY_BYTES: Final = 300
"""What one takes beside the bytes of request and answer."""

_Key = tuple[int, bytes]


class KeptAnswers:
    """Owned by the loop; the answers asked for longest ago go first."""

    def __init__(self, pictures: Callable[[], tuple[object, ...]]) -> None:
        """`pictures` tells from what answers are made now."""
        self._pictures = pictures
        self._made_from: tuple[object, ...] = ()
        self._answers: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def size_bytes(self) -> int:
        """What all of it takes, about."""
        return self._bytes

    def get(self, version: int, request: memoryview) -> bytes | None:
        """The body that answers a request's body in a version, if it is known and still holds.

        Whoever got None makes the answer from the pictures of now, and may `keep` it.
        """
        self._drop_outdated()
        if len(request) > REQUEST_BYTES_MAX:
            return None
        key = version, bytes(request)
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def keep(self, version: int, request: memoryview, answer: bytes) -> None:
        """An answer that was made from the pictures that `get` saw; too large ones are not kept."""
        key = version, bytes(request)
        weight = _weight(key, answer)
        outdated = self._drop_outdated()
        if outdated or len(request) > REQUEST_BYTES_MAX or weight > BYTES_MAX:
            return
        self._drop(key)
        self._answers[key] = answer
        self._bytes += weight
        while self._bytes > BYTES_MAX or len(self._answers) > ENTRIES_MAX:
            self._drop(next(iter(self._answers)))

    def _drop_outdated(self) -> bool:
        """Forgets everything if a picture is another one by now; whether that was so."""
        now = self._pictures()
        if len(now) == len(self._made_from) and all(map(is_, now, self._made_from)):
            return False
        self._made_from = now
        self._answers.clear()
        self._bytes = 0
        return True

    def _drop(self, key: _Key) -> None:
        found = self._answers.pop(key, None)
        if found is not None:
            self._bytes -= _weight(key, found)


def _weight(key: _Key, answer: bytes) -> int:
    return ENTRY_BYTES + len(key[1]) + len(answer)
