"""The session with ZooKeeper: its thread, its jobs, and what happens when the session is lost.

A job is one operation on ZooKeeper. The loop submits jobs with `submit`; `post` brings their
outcomes back to the loop. Jobs run one after the other, so a topic is never created and deleted at
the same time. While the session is not connected, `submit` accepts no job, and the caller gets an
error at once instead of after a timeout. If ZooKeeper stops answering during a job, the job ends
within the session's timeout, because every wait in `skidway.coordination` is bounded.

If the session was lost, the broker waits for a new session. Then it registers again and reads the
whole catalog, and repeats these two steps until both succeed. Jobs that the loop submitted in the
lost session are not done any more, because another broker may have become the controller meanwhile.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from kazoo.exceptions import KazooException

from skidway import log
from skidway.broker.catalog import Catalog, PartitionState
from skidway.broker.coordination import store
from skidway.broker.coordination.access_reader import AccessReader, Granted
from skidway.broker.coordination.documents import Registration
from skidway.broker.coordination.reader import CatalogReader
from skidway.broker.log.flusher import Post
from skidway.clock import Clock
from skidway.coordination import Coordinator, SessionState
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition

JOBS_MAX = 1000
TRY_AGAIN_S = 1.0
CLOSE_WITHIN_S = 5.0
T = TypeVar("T")
_log = log.get(__name__)


class Job(Generic[T]):
    """An operation on ZooKeeper, and the function that is called with its outcome. sessions: how
    many sessions had been lost when the job was submitted; None for a job that may run in any
    session. If more sessions have been lost by the time at which the job would run, the operation
    is left out, and its outcome is Unreachable.
    """

    __slots__ = ("_done", "_sessions", "_work")

    def __init__(
        self,
        work: Callable[[Coordinator], T],
        done: Callable[[T | SkidwayError], None],
        sessions: int | None = None,
    ) -> None:
        self._work = work
        self._done = done
        self._sessions = sessions

    def run(self, coordinator: Coordinator, post: Post, sessions: int = 0) -> None:
        """Does the work on the calling thread, and posts the outcome to the loop. sessions: how
        many sessions have been lost by now."""
        outcome: T | SkidwayError
        try:
            if self._sessions is None or self._sessions == sessions:
                outcome = self._work(coordinator)
            else:
                outcome = Unreachable("the session with ZooKeeper was lost meanwhile; try again")
        except SkidwayError as error:
            outcome = error
        except KazooException as error:
            outcome = SkidwayError(f"ZooKeeper refused: {type(error).__name__} {error}".strip())
        except Exception as error:  # noqa: BLE001 - the thread must survive every error
            _log.error("zookeeper_job_failed", exc=error)
            outcome = SkidwayError("the broker made a mistake; its log says more")
        done = self._done
        post(lambda: done(outcome))


class ZooKeeperSession:
    """The session with ZooKeeper. The loop's thread creates this object before the loop runs, and
    closes it when the broker stops."""

    def __init__(
        self,
        coordinator: Coordinator,
        clock: Clock,
        post: Post,
        *,
        cluster_id: str,
        on_catalog: Callable[[Catalog], None],
        on_access: Callable[[Granted], None],
        on_lost: Callable[[], None],
        timeout_s: float,
    ) -> None:
        """on_catalog: called on the loop with each new catalog. on_access: called on the loop when
        users or rules have changed. on_lost: called on the loop when the session was lost.
        timeout_s: the session's timeout."""
        self._coordinator = coordinator
        self._clock = clock
        self._post = post
        self._cluster_id = cluster_id
        self._on_catalog = on_catalog
        self._on_access = on_access
        self._granted: Granted | None = None
        self._on_lost = on_lost
        self._doubtful_after_s = timeout_s / 3
        self._sessions_lost = 0
        self._interruptions = 0
        self._interrupted_at: float | None = None
        self.away_since_ms: int | None = None
        self._registration: Registration | None = None
        self._jobs: queue.Queue[Job[object] | None] = queue.Queue(JOBS_MAX)
        self._closing = threading.Event()
        self._refreshing = threading.Event()
        self.reader = CatalogReader(coordinator, self._refresh)
        self.access_reader = AccessReader(coordinator, self._refresh)
        self.broker_epoch = -1
        self._lost = False
        coordinator.on_state(self._state_changed)
        self._thread = threading.Thread(target=self._work, name="zookeeper", daemon=True)

    @property
    def is_connected(self) -> bool:
        """Whether the session is connected to ZooKeeper. Only then does `submit` accept jobs."""
        return self._coordinator.state is SessionState.CONNECTED

    @property
    def problem(self) -> str:
        """Why ZooKeeper does not let this broker in, or has refused its last request; empty if it
        serves the broker, or only does not answer."""
        return self._coordinator.problem

    @property
    def is_doubtful(self) -> bool:
        """Whether ZooKeeper may have ended the session, so that another broker may be the
        controller. kazoo notices a broken connection within two thirds of the session's timeout. So
        when kazoo notices the break, the session still exists for at least a third of the timeout.
        During this time the result is False. Afterwards the result is True until the catalog has
        been read again."""
        at = self._interrupted_at
        return at is not None and self._clock.monotonic() - at >= self._doubtful_after_s

    def register(self, registration: Registration, *, wait_s: float) -> None:
        """Registers the broker. Runs on the calling thread; must be called before `start`. Raises
        SkidwayError."""
        self.broker_epoch = store.register(
            self._coordinator, registration, wait_s=wait_s, time_ms=self._clock.time_ms()
        )
        self._registration = registration

    def read_catalog(self, broker_id: int) -> Catalog:
        """Reads the catalog (the cluster's brokers and topics). Runs on the calling thread; must be
        called before `start`. Raises Unreachable."""
        return self.reader.read(self._cluster_id, broker_id, self._clock.time_ms())

    def read_access(self, written: Collection[str] = ()) -> Granted:
        """Reads the users and rules. written: see `AccessReader.read`. Runs on the calling thread;
        must be called before `start`, or in a job. Raises Unreachable."""
        self._granted = self.access_reader.read(written)
        return self._granted

    def producer_id_key(self) -> bytes:
        """Returns the key of the cluster's producer ids. Runs on the calling thread; must be called
        before `start`. Raises SkidwayError."""
        return store.producer_id_key(self._coordinator)

    def lead(self, partition: TopicPartition, wanted: PartitionState) -> PartitionState:
        """Writes a partition's state, and returns the state that ZooKeeper then has. Runs on the
        calling thread; must be called before `start`. Raises SkidwayError."""
        return store.lead(self._coordinator, *partition, wanted)

    def start(self) -> None:
        """Starts the thread that does jobs."""
        self._thread.start()

    def submit(
        self, work: Callable[[Coordinator], T], done: Callable[[T | SkidwayError], None]
    ) -> None:
        """Runs `work` on the session's thread, then calls `done` on the loop with the outcome."""
        try:
            if self.is_connected:
                job = Job(work, done, self._sessions_lost)
                self._jobs.put_nowait(job)  # type: ignore[arg-type]
                return
            error = Unreachable("ZooKeeper does not answer at present; try again")
        except queue.Full:
            error = Unreachable("too many requests for ZooKeeper wait already; try again")
        refusal = error
        self._post(lambda: done(refusal))

    def close(self) -> None:
        """Ends the thread and the session; the end of the session removes the broker's
        registration. The running job has `CLOSE_WITHIN_S` seconds to finish. The other jobs are
        dropped, and their `done` is never called. Closing takes a bounded time even if ZooKeeper
        does not answer, because the end of the session ends every wait for ZooKeeper.
        """
        self._closing.set()
        if self._thread.is_alive():
            # The thread may be waiting for a job, so None is put into its queue to wake it. If the
            # queue is full, the thread is not waiting, and needs no None.
            with contextlib.suppress(queue.Full):
                self._jobs.put_nowait(None)
            self._thread.join(CLOSE_WITHIN_S if self.is_connected else 0)
        self._coordinator.close()
        if self._thread.is_alive():
            self._thread.join(CLOSE_WITHIN_S)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None or self._closing.is_set():
                return
            job.run(self._coordinator, self._post, self._sessions_lost)

    def _refresh(self) -> None:
        """Makes the session's thread read the catalog again. Any thread may call this method, as
        often as it likes."""
        if not self._refreshing.is_set() and not self._closing.is_set():
            self._refreshing.set()
            self._enqueue(self._read_again)

    def _enqueue(self, work: Callable[[Coordinator], object]) -> None:
        try:
            self._jobs.put_nowait(Job(work, _ignore))
        except queue.Full:
            self._later(work)

    def _later(self, work: Callable[[Coordinator], object]) -> None:
        timer = threading.Timer(TRY_AGAIN_S, lambda: self._enqueue(work))
        timer.daemon = True
        if not self._closing.is_set():
            timer.start()

    def _read_again(self, _coordinator: Coordinator) -> None:
        self._refreshing.clear()
        registration = self._registration
        if registration is None:
            return
        interruptions = self._interruptions
        try:
            catalog = self.read_catalog(registration.broker.broker_id)
            known = self._granted
            granted = self.read_access()
        except (SkidwayError, KazooException) as error:
            _log.warning("catalog_not_read", reason=str(error))
            self._refreshing.set()
            self._later(self._read_again)
            return
        if granted is not known:
            self._post(lambda: self._on_access(granted))
        self._post(lambda: self._take(catalog, interruptions))

    def _take(self, catalog: Catalog, interruptions: int) -> None:
        """Called on the loop. Passes a new catalog to `on_catalog`. interruptions: how often the
        connection to ZooKeeper had broken when the broker began to read the catalog. If it has not
        broken again since then, the catalog is up to date, so `is_doubtful` becomes False.
        """
        if interruptions == self._interruptions and self.is_connected:
            self._interrupted_at = None
        self._on_catalog(catalog)

    def _state_changed(self, state: SessionState) -> None:
        """Called when the state of the session has changed. kazoo calls this method on its own
        thread, which must not be made to wait."""
        if self._closing.is_set():
            return
        if state is SessionState.CONNECTED:
            self.away_since_ms = None
        elif self.away_since_ms is None:
            self.away_since_ms = self._clock.time_ms()
        if state is SessionState.LOST:
            self._lost = True
            self._sessions_lost += 1
            self._interrupt(self._clock.monotonic() - self._doubtful_after_s)
            self._post(self._on_lost)
            _log.warning("zookeeper_session_lost")
        elif state is SessionState.SUSPENDED:
            self._interrupt(self._clock.monotonic())
            _log.warning("zookeeper_connection_lost")
        else:
            _log.info("zookeeper_connected_again")
            if self._lost:
                self._lost = False
                self._enqueue(self._register_again)
            self._refresh()

    def _interrupt(self, at: float) -> None:
        """Notes that the connection broke at the time `at` (monotonic seconds)."""
        self._interruptions += 1
        earlier = self._interrupted_at
        self._interrupted_at = at if earlier is None else min(at, earlier)

    def _register_again(self, coordinator: Coordinator) -> None:
        registration = self._registration
        if registration is None:
            return
        try:
            self.broker_epoch = store.register(
                coordinator, registration, wait_s=0.0, time_ms=self._clock.time_ms()
            )
        except (SkidwayError, KazooException) as error:
            _log.error("not_registered", reason=f"{type(error).__name__} {error}")
            self._later(self._register_again)
            return
        self.reader.forget()
        self.access_reader.forget()
        self._refresh()


def _ignore(_outcome: object) -> None:
    """Gets the outcome of one of the session's own jobs, and ignores it, because these jobs log
    their errors themselves."""
