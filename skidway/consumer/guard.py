"""Our registration as the guard of every write: each happens at most once, and we learn which did.

A lost answer leaves two possibilities, and repeating the write may be wrong: a release done twice
could remove the owner node of the reader after us. So every transaction first writes a token of its
own into our registration, over the version that we know. Only one transaction can succeed on a
version; one that was not answered either did, as the token shows, or never will.

No I/O. The lock orders the streams of one consumer, which share the registration.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Mapping

from skidway.consumer.nodes import read_token, registration_document


class Guard:
    """The registration under one name."""

    def __init__(self, name: str, streams: Mapping[str, int], now_ms: int) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.version = 0
        self._streams = dict(streams)
        self._now_ms = now_ms
        self._tokens = itertools.count(1)
        self._unanswered: dict[int, Hashable] = {}  # on this version: token, what it was to do
        self._done: set[Hashable] = set()

    def next_token(self) -> int:
        """A token for one transaction."""
        return next(self._tokens)

    def document(self, token: int) -> bytes:
        """The registration with a token."""
        return registration_document(self._streams, self._now_ms, token)

    def succeeded(self) -> None:
        """A transaction was done; earlier unanswered ones were not, and never will be."""
        self.version += 1
        self._unanswered.clear()

    def unanswered(self, token: int, what: Hashable) -> None:
        """It is unknown whether a transaction was done. `what`: None if it may be done twice."""
        self._unanswered[token] = what

    def found(self, data: bytes, version: int) -> None:
        """Takes the node as it is, after its version was not the one that we knew."""
        what = self._unanswered.get(read_token(data))
        if what is not None:
            self._done.add(what)
        self.version = version
        self._unanswered.clear()

    def was_done(self, what: Hashable) -> bool:
        """Whether this was found to be done; True only once."""
        if what is None or what not in self._done:
            return False
        self._done.remove(what)
        return True
