"""The store keeps the registry's state in memory and follows the log in ZooKeeper. Only the store
changes the state.

The follower is the thread that reads new entries of the log; kazoo's threads only wake it. Two
kinds of threads read the log and change the state: the follower, and the threads of requests that
need the log. Both need `_log_lock` for this work, so only one thread at a time does it. Any thread
may read the state under `_state_lock`. No thread holds `_state_lock` while it waits for the
network. A thread that makes a decision holds `_log_lock`, but not `_state_lock`. So the state
cannot change during a decision, and readers need not wait for the decision.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from prometheus_client import Counter

from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError, StateRefused, Unreachable
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.answering import Answer, Memory
from skidway.schemas.registry.changes import (
    ENTRY_BYTES_MAX,
    Change,
    EntryTooLarge,
    LoggedChange,
    decode,
    encode,
)
from skidway.schemas.registry.decisions import Decision
from skidway.schemas.registry.refusals import NotFound, Refusal, store_away, too_large
from skidway.schemas.registry.state import RegistryState

ATTEMPTS_MAX: Final = 1000
"""A write is tried at most this many times. An attempt fails only because another registry's write
succeeded."""
FOLLOW_EVERY_S: Final = 30.0
"""The follower looks for new entries at least once in this many seconds, even if no watch fires,
because a watch may get lost."""
AHEAD_MAX: Final = 256
"""The store requests at most this many entries of the log at once."""

LOG_WITHIN_S: Final = 20.0
"""A request waits at most this many seconds for other requests that read or write the log. In this
time, ZooKeeper can answer two requests, even if each answer takes as long as allowed.
"""

_log = log.get(__name__)
_conflicts = Counter(
    "skidway_schemas_write_conflicts", "Entries that another registry was faster to write."
)


class Log(Protocol):
    """A log of entries that are numbered from 1 on. Each entry is created once. See
    `zookeeper_log.ZookeeperLog`."""

    @property
    def connected(self) -> bool: ...

    def create(self, number: int, content: bytes) -> bool: ...

    def read(self, first: int, count: int) -> list[bytes]: ...

    def count(self) -> int: ...

    def sync(self) -> None: ...

    def watch(self, number: int, wake: Callable[[], None]) -> None: ...

    def on_session(self, wake: Callable[[], None]) -> None: ...


class Store:
    """Keeps the state up to date with the log, and answers requests. The constructor reads the
    whole log. From `start` to `close`, a thread of the store follows the log.

    The constructor raises `Unreachable` if the log cannot be read, and `StateRefused` if the log is
    invalid. If the log becomes invalid later, the store refuses writes (`failed`), and still
    answers from the entries that it read before.
    """

    def __init__(self, entries: Log, clock: Clock, default_level: Level = Level.BACKWARD) -> None:
        self._entries = entries
        self._clock = clock
        self._state = RegistryState(default_level)
        self._read = 0
        self._last = b""
        self._state_lock = threading.Lock()
        self._log_lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._failed: SkidwayError | None = None
        self._follower = threading.Thread(target=self._follow, name="registry-log", daemon=True)
        there = entries.count()
        self._catch_up()
        if self._read < there:
            raise StateRefused(
                f"The registry's log has {there} entries, but number {self._read + 1} is missing: "
                "restore ZooKeeper's data from a backup."
            )

    @property
    def entries(self) -> int:
        """Returns how many entries of the log were applied to the state."""
        return self._read

    @property
    def connected(self) -> bool:
        """Returns whether ZooKeeper is connected, so that writes can be tried."""
        return self._entries.connected

    @property
    def failed(self) -> SkidwayError | None:
        """Returns the reason why the store can no longer follow the log, or None if it can."""
        return self._failed

    def start(self) -> None:
        """Starts the thread that follows the log."""
        self._entries.on_session(self._wake.set)
        self._follower.start()

    def close(self) -> None:
        """Ends the thread that follows the log."""
        self._closed = True
        self._wake.set()
        self._follower.join()

    @property
    def memory(self) -> Memory:
        """Returns an object that answers requests from memory alone, without waiting."""
        return Memory(self._ask)

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Calls `question` with the state in memory, and returns its result. If `question` raises
        NotFound, reads newer entries of the log and, if there are any, calls `question` once more.

        A moment ago, another registry process may have written what the client asks for. So while
        ZooKeeper is unreachable, this registry cannot know that something does not exist, and
        answers 503 instead of 404. Raises refusals.
        """
        before = self._read
        try:
            return self._ask(question)
        except NotFound:
            self._refresh()
            if self._read == before:
                raise
        return self._ask(question)

    def write(
        self, decide: Callable[[RegistryState], Decision], ahead: Callable[[], object] | None = None
    ) -> Any:
        """First calls `ahead` once, before it takes the lock that other writers need, too. Then
        calls `decide`, appends the change in the resulting decision to the log, and returns the
        decision's answer for the client.

        If another registry wrote the log's next entry first, calls `decide` again. Raises refusals.
        """
        self._refuse_if_away()
        if ahead is not None:
            ahead()
        with self._asking_the_log():
            for _ in range(ATTEMPTS_MAX):
                self._refuse_if_away()
                self._catch_up()
                decision = self._decided(decide)
                if decision.change is None or self._append(decision.change):
                    return decision.answer
                _conflicts.inc()
        raise store_away("too many other writers")

    def _decided(self, decide: Callable[[RegistryState], Decision]) -> Decision:
        """Calls `decide`. If the result is a refusal or a decision without a change, reads all
        newer entries that ZooKeeper's leader has. If there are any, calls `decide` again.

        The second call is needed because the ZooKeeper server to which this process is connected
        may lag behind the leader. If a change was decided on an old state, its entry cannot be
        created, because the entry's number is already in use. But a refusal creates no entry, so
        nothing would show that it was decided on an old state.
        """
        refusal: Refusal | None = None
        try:
            decision = decide(self._state)
            if decision.change is not None:
                return decision
        except Refusal as raised:
            refusal = raised
        before = self._read
        self._entries.sync()
        self._catch_up()
        if self._read > before:
            return decide(self._state)
        if refusal is not None:
            raise refusal
        return decision

    def _ask(self, question: Callable[[RegistryState], Answer]) -> Answer:
        with self._state_lock:
            return question(self._state)

    def _refuse_if_away(self) -> None:
        if self._failed is not None:
            raise store_away(str(self._failed))
        if not self.connected:
            raise store_away("ZooKeeper is away")

    def _refresh(self) -> None:
        """Reads all entries that ZooKeeper's leader has. If they cannot be read, raises the refusal
        with status 503."""
        with self._asking_the_log():
            self._entries.sync()
            self._catch_up()

    @contextlib.contextmanager
    def _asking_the_log(self) -> Iterator[None]:
        """Waits a limited time for `_log_lock`, and holds the lock during the `with` block. Raises
        the refusal with status 503 if another thread holds the lock for too long, or if the log
        cannot be read."""
        self._refuse_if_away()
        if not self._log_lock.acquire(timeout=LOG_WITHIN_S):
            raise store_away("others wait for ZooKeeper")
        try:
            # ZooKeeper may have become unreachable while this thread waited for the lock
            self._refuse_if_away()
            yield
        except (Unreachable, StateRefused) as error:
            _log.warning("registry_log_failed", reason=str(error), entries=self._read)
            raise store_away(str(error)) from error
        finally:
            self._log_lock.release()

    def _append(self, change: Change) -> bool:
        """Appends the change to the log. Returns False if another registry has created the entry of
        this number first. The caller holds `_log_lock`."""
        number, writer = self._read + 1, uuid.uuid4().hex
        try:
            content = encode(LoggedChange(change, writer, self._clock.time_ms()))
        except EntryTooLarge as error:
            raise too_large(error.size_bytes, ENTRY_BYTES_MAX) from None
        created = self._entries.create(number, content)
        if not created:  # another registry was first, or ZooKeeper's answer was lost
            (found,) = self._entries.read(number, 1) or [b""]
            created = found == content
        if created:
            self._catch_up()
        return created

    def _refuse_if_cut(self) -> None:
        """Raises `StateRefused` if the last entry that was read is gone or has changed, for example
        because somebody restored an older backup. Without this check, later writes would use the
        schema ids of the lost entries again."""
        if self._read == 0 or self._entries.read(self._read, 1) == [self._last]:
            return
        # The connected ZooKeeper server may lag behind the leader and lack the last entry.
        self._entries.sync()
        if self._entries.read(self._read, 1) != [self._last]:
            self._failed = StateRefused(
                f"Entry {self._read} of the registry's log is not the one that was read: "
                "ZooKeeper's data was set back. Restore it, or restart every registry to forget "
                "the newer ids."
            )
            raise self._failed

    def _catch_up(self) -> None:
        """Applies all new entries of the log. Raises `Unreachable`, `StateRefused`."""
        self._refuse_if_cut()
        ahead = 1
        while True:
            contents = self._entries.read(self._read + 1, ahead)
            for content in contents:
                self._apply_or_fail(content, self._read + 1)
            if len(contents) < ahead:
                return
            ahead = min(2 * ahead, AHEAD_MAX)

    def _apply_or_fail(self, content: bytes, number: int) -> None:
        try:
            self._apply(content, number)
        except StateRefused as error:
            self._failed = error
            raise

    def _apply(self, content: bytes, number: int) -> None:
        entry = decode(content, number)
        try:
            with self._state_lock:
                self._state.apply(entry.change)
                self._read, self._last = number, content
        except KeyError as error:
            raise StateRefused(
                f"Entry {number} of the registry's log changes {error}, which is not there."
            ) from error

    def _follow(self) -> None:
        while True:
            self._wake.clear()
            if self._closed:  # checked after `clear`, so the wake-up by `close` is not lost
                return
            try:
                if self.connected:  # if not connected, the follower waits until the session is back
                    with self._log_lock:
                        self._catch_up()
                        self._entries.watch(self._read + 1, self._wake.set)
            except Unreachable as error:
                _log.warning("registry_store_away", reason=str(error), entries=self._read)
            except StateRefused as error:
                _log.error("registry_log_refused", reason=str(error), entries=self._read)
                return
            self._wake.wait(FOLLOW_EVERY_S)
