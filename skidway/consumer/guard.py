"""Ensures that each write to ZooKeeper happens at most once, and finds out which writes happened.

If the answer to a write is lost, the write may or may not have happened. Repeating the write may do
harm. For example, a second release (removal of a partition's owner node) could remove the owner
node of the partition's next reader. So every transaction first writes a token of its own into the
member's registration node. This write requires that the node still has the version that the member
last read or wrote. For each version, only one transaction can succeed. If the node contains the
token of a transaction without an answer, this transaction has happened. Otherwise the transaction
has not happened yet, and after the node's version has changed, it can never happen.

This module does no I/O. The streams of one consumer share one `Guard`; a stream may use the `Guard`
only while the stream holds `lock`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Mapping

from skidway.consumer.nodes import read_token, registration_document


class Guard:
    """Knows the version of one member's registration node, and the member's transactions that had
    no answer."""

    def __init__(self, name: str, streams: Mapping[str, int], now_ms: int) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.version = 0
        self._streams = dict(streams)
        self._now_ms = now_ms
        self._tokens = itertools.count(1)
        # Maps the token of each transaction without an answer to the intended change. Has only the
        # transactions that expect the present version of the registration node, because the other
        # transactions can no longer happen.
        self._unanswered: dict[int, Hashable] = {}
        self._done: set[Hashable] = set()

    def next_token(self) -> int:
        """Returns a new token, which identifies one transaction."""
        return next(self._tokens)

    def document(self, token: int) -> bytes:
        """Returns the content to write into the registration node, with `token` in it."""
        return registration_document(self._streams, self._now_ms, token)

    def succeeded(self) -> None:
        """Notes that a transaction succeeded. Only one transaction can succeed for each version of
        the registration node. So the transactions without an answer have not happened, and can
        never happen."""
        self.version += 1
        self._unanswered.clear()

    def unanswered(self, token: int, what: Hashable) -> None:
        """Notes that the transaction with `token` had no answer. `what` is the intended change, or
        None if repeating the change does no harm."""
        self._unanswered[token] = what

    def found(self, data: bytes, version: int) -> None:
        """Processes the content and the version of the registration node. The caller has read them
        again because the known version was out of date. The token in the content shows which
        transaction without an answer has happened."""
        what = self._unanswered.get(read_token(data))
        if what is not None:
            self._done.add(what)
        self.version = version
        self._unanswered.clear()

    def was_done(self, what: Hashable) -> bool:
        """Returns True if `found` has shown that the change `what` happened, although its
        transaction had no answer. The next call for the same change returns False.
        """
        if what is None or what not in self._done:
            return False
        self._done.remove(what)
        return True
