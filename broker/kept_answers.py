"""Keeps encoded answers to requests that many clients send with the same bytes. The broker keeps an
answer as long as it is correct.

After a restart of the broker, all clients ask for ApiVersions and Metadata at the same time, and
most of them name the same topics. The bytes of an answer depend only on the request's version, on
its body, perhaps on the listener that was asked and on what the client may see, and on some
snapshots, for example of the cluster's topics. A snapshot is an immutable object, which is replaced
by a new object when something changes. So an answer is correct as long as the snapshots are the
same objects, and code that changes something need not call this module.

A handler must not keep an answer that depends on anything else. It must also not keep the answer to
a request that has an effect, such as the creation of a topic.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from operator import is_
from typing import Final

ENTRIES_MAX: Final = 1000
BYTES_MAX: Final = 8 << 20
"""All kept answers together need at most this many bytes of memory. This is enough for 200,000
partitions in answers to Metadata requests of version 5.
"""
REQUEST_BYTES_MAX: Final = 16 << 10
"""The broker does not keep the answer to a request with more bytes than this. Such a request names
hundreds of topics, and two clients hardly ever send the same long request.
"""
ENTRY_BYTES: Final = 300
"""How many bytes of memory one kept answer needs besides the bytes of its request and of the answer
itself."""

_Key = tuple[int, str, object, bytes]


class KeptAnswers:
    """Stores the kept answers. If they need too much memory, drops the least recently used answers
    first. Only the loop's thread may use this object.
    """

    def __init__(self, pictures: Callable[[], tuple[object, ...]]) -> None:
        """pictures: a function that returns the current snapshots (see the module's docstring),
        from which all answers are made.
        """
        self._pictures = pictures
        self._made_from: tuple[object, ...] = ()
        self._answers: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes of memory that the answers need."""
        return self._bytes

    def get(
        self, version: int, request: memoryview, listener: str = "", view: object = None
    ) -> bytes | None:
        """Returns the body of the kept answer to a request with this version and body; None if
        there is no kept answer, or if the kept answer is no longer correct. listener: the name of
        the listener that was asked; view: what the client may see, the same object for clients that
        may see the same; if the answer depends on them.

        If the result is None, the caller makes the answer from the current snapshots, and may pass
        it to `keep`.
        """
        self._drop_outdated()
        if len(request) > REQUEST_BYTES_MAX:
            return None
        key = version, listener, view, bytes(request)
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def keep(
        self,
        version: int,
        request: memoryview,
        answer: bytes,
        listener: str = "",
        view: object = None,
    ) -> None:
        """Keeps an answer, which must be made from the snapshots that were current when `get` was
        called. Does nothing if a snapshot has been replaced since then, or if the request or the
        answer is too large."""
        key = version, listener, view, bytes(request)
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
    return ENTRY_BYTES + len(key[3]) + len(answer)
