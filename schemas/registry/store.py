"""The registry's log in ZooKeeper, and the state in memory that follows it.

Threads: kazoo's own only wake the follower; the follower and the writers read the log, one at a
time (`_log_lock`); everybody reads the state (`_state_lock`), never while somebody waits for the
network. Every wait is bounded by the session's time-out.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from schemas.registry.changes import (
    ENTRY_BYTES_MAX,
    Change,
    Entry,
    EntryTooLarge,
    decode,
    encode,
)
from schemas.registry.decisions import Decision
from schemas.registry.refusals import NotFound, store_away, too_large
from schemas.registry.state import State
from skidway import log
from skidway.clock import Clock
from skidway.coordination import Coordinator
from skidway.coordination import State as Session
from skidway.errors import SkidwayError, StateRefused, Unreachable

ROOT: Final = "/skidway/schemas"
ATTEMPTS_MAX: Final = 1000
"""Each attempt that fails means that another registry's write succeeded."""
FOLLOW_EVERY_S: Final = 30.0
"""How often the follower looks without being woken, should a watch ever get lost."""
AHEAD_MAX: Final = 256
"""Entries asked for at once while catching up."""
ANSWER_WITHIN_S: Final = 10.0

Answer = TypeVar("Answer")

_log = log.get(__name__)


class Store:
    """The log and its state. `close` ends the follower; the coordinator belongs to the caller.

    Raises `Unreachable` if the log cannot be read at the start, `StateRefused` if it makes no
    sense; after that a log that makes no sense ends reading and writing (`failed`).
    """

    def __init__(self, coordinator: Coordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._state = State()
        self._read = 0
        self._state_lock = threading.Lock()
        self._log_lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._failed: SkidwayError | None = None
        coordinator.create_if_absent(f"{ROOT}/log")
        self._catch_up()
        coordinator.on_state(lambda _session: self._wake.set())
        self._follower = threading.Thread(target=self._follow, name="registry-log", daemon=True)
        self._follower.start()

    @property
    def entries(self) -> int:
        """How many entries of the log the state stands for."""
        return self._read

    @property
    def connected(self) -> bool:
        """Whether ZooKeeper is there, so that writes can be tried."""
        return self._coordinator.state is Session.CONNECTED

    @property
    def failed(self) -> SkidwayError | None:
        """Why the log cannot be followed any more, or None."""
        return self._failed

    def read(self, question: Callable[[State], Answer]) -> Answer:
        """The answer from memory; if that finds nothing, once more with what is newer.

        Another registry may have answered the client a moment ago. Raises refusals.
        """
        before = self._read
        try:
            return self._ask(question)
        except NotFound:
            self._refresh()
            if self._read == before:
                raise
        return self._ask(question)

    def write(self, decide: Callable[[State], Decision]) -> Any:
        """Decides, and puts the change into the log; the answer once it is there.

        Runs the decision again whenever another registry was first. Raises refusals.
        """
        with self._log_lock:
            for _ in range(ATTEMPTS_MAX):
                self._catch_up_or_refuse()
                decision = self._ask(decide)
                if decision.change is None or self._append(decision.change):
                    return decision.answer
        raise store_away("too many other writers")

    def close(self) -> None:
        """Ends the follower; harmless when done already."""
        self._closed = True
        self._wake.set()
        self._follower.join()

    def _ask(self, question: Callable[[State], Answer]) -> Answer:
        with self._state_lock:
            return question(self._state)

    def _refresh(self) -> None:
        """Reads on, as far as ZooKeeper's leader knows; a store that is away changes nothing."""
        if not self.connected:
            return
        try:
            with self._log_lock:
                _answer(self._coordinator.client.sync_async(ROOT))
                self._catch_up()
        except Unreachable:
            _log.warning("registry_refresh_failed", entries=self._read)

    def _catch_up_or_refuse(self) -> None:
        if self._failed is not None:
            raise store_away(str(self._failed))
        if not self.connected:
            raise store_away("ZooKeeper is away")
        try:
            self._catch_up()
        except Unreachable as error:
            raise store_away(str(error)) from error

    def _append(self, change: Change) -> bool:
        """Whether the change is the log's next entry now. The caller holds `_log_lock`."""
        number, writer = self._read + 1, uuid.uuid4().hex
        try:
            content = encode(Entry(change, writer, self._clock.time_ms()))
        except EntryTooLarge as error:
            raise too_large(error.size_bytes, ENTRY_BYTES_MAX) from None
        try:
            created = self._coordinator.create_if_absent(_path(number), content)
            if not created:  # another registry was first, or our own answer was lost
                entry = self._entry(number)
                created = entry is not None and entry.writer == writer
            if created:
                self._catch_up()
        except Unreachable as error:
            raise store_away(str(error)) from error
        return created

    def _catch_up(self) -> None:
        """Applies every entry that is there. Raises `Unreachable`, `StateRefused`."""
        ahead = 1
        while True:
            contents = self._next_contents(ahead)
            for content in contents:
                number = self._read + 1
                self._apply(decode(content, number), number)
            if len(contents) < ahead:
                return
            ahead = min(2 * ahead, AHEAD_MAX)

    def _apply(self, entry: Entry, number: int) -> None:
        try:
            with self._state_lock:
                self._state.apply(entry.change)
                self._read = number
        except KeyError as error:
            raise StateRefused(
                f"Entry {number} of the registry's log changes {error}, which is not there."
            ) from error

    def _next_contents(self, ahead: int) -> list[bytes]:
        """Up to `ahead` entries that come next, without a gap, asked for all at once."""
        numbers = range(self._read + 1, self._read + 1 + ahead)
        pending = [self._coordinator.client.get_async(_path(number)) for number in numbers]
        contents = []
        for each in pending:
            try:
                contents.append(_answer(each)[0])
            except NoNodeError:
                break
        return contents

    def _entry_content(self, number: int) -> bytes | None:
        found = self._coordinator.get(_path(number))
        return None if found is None else found.data

    def _entry(self, number: int) -> Entry | None:
        content = self._entry_content(number)
        return None if content is None else decode(content, number)

    def _follow(self) -> None:
        while not self._closed:
            self._wake.clear()
            try:
                with self._log_lock:
                    self._catch_up()
                    self._watch_next()
            except Unreachable as error:
                _log.warning("registry_store_away", reason=str(error), entries=self._read)
            except StateRefused as error:
                self._failed = error
                _log.error("registry_log_refused", reason=str(error), entries=self._read)
                return
            self._wake.wait(FOLLOW_EVERY_S)

    def _watch_next(self) -> None:
        """Wakes us when the next entry comes; at once if it came in the meantime."""
        exists = self._coordinator.client.exists_async
        if _answer(exists(_path(self._read + 1), watch=lambda _event: self._wake.set())):
            self._wake.set()


def _answer(pending: Any) -> Any:
    """ZooKeeper's answer to one request. Raises `NoNodeError`, `Unreachable`."""
    try:
        return pending.get(timeout=ANSWER_WITHIN_S)
    except NoNodeError:
        raise
    except (KazooException, KazooTimeoutError) as error:
        why = str(error) or type(error).__name__
        raise Unreachable(f"ZooKeeper did not answer the registry ({why}).") from error


def _path(number: int) -> str:
    return f"{ROOT}/log/{number:010d}"
