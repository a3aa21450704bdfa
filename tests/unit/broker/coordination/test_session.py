from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import KazooException
from kazoo.retry import RetryFailedError

from skidway.broker.catalog import Catalog
from skidway.broker.coordination import documents, store
from skidway.broker.coordination.access_reader import Granted
from skidway.broker.coordination.documents import Registration
from skidway.broker.coordination.session import Job, ZooKeeperSession
from skidway.broker.log.producer_id import NUMBERS
from skidway.coordination import SessionState
from skidway.errors import SkidwayError, StateRefused, Unreachable
from support.clock import ManualClock
from support.live_brokers import live_broker
from support.nodes import Nodes
from support.promises import promise


def test_a_mistake_in_a_job_is_told_and_ends_nothing() -> None:
    """If a job raises an unexpected exception, the caller of the job gets an error, and the thread
    that runs the jobs continues."""
    told: list[object] = []

    def mistaken(_coordinator: object) -> object:
        raise ValueError("a node that nobody foresaw")

    coordinator: Any = None
    Job(mistaken, told.append).run(coordinator, lambda action: action())
    [outcome] = told
    assert isinstance(outcome, SkidwayError)


class Alive:
    """A broker's session with a fake ZooKeeper. The test chooses ZooKeeper's answers, and decides
    when the session's jobs run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.coordinator: Any = SimpleNamespace(
            on_state=lambda listener: setattr(self, "tell", listener), state=SessionState.CONNECTED
        )
        self.tell: Callable[[SessionState], None]
        self.catalogs: list[Catalog] = []
        self.granted: list[Granted] = []
        self.later: list[Callable[[Any], object]] = []
        self.clock, self.lost = ManualClock(), 0
        self.session = ZooKeeperSession(
            self.coordinator,
            self.clock,
            lambda action: action(),
            cluster_id="cluster",
            on_catalog=self.catalogs.append,
            on_access=self.granted.append,
            on_lost=self._count,
            timeout_s=9.0,
        )
        self.session._registration = Registration(live_broker(1, "127.0.0.1", 9092), "id")
        monkeypatch.setattr(self.session, "_later", self.later.append)
        monkeypatch.setattr(self.session.access_reader, "read", lambda _written: Granted({}, ()))

    def _count(self) -> None:
        self.lost += 1

    def change(self, state: SessionState) -> None:
        self.coordinator.state = state
        self.tell(state)

    def work(self) -> None:
        while not self.session._jobs.empty():
            job = self.session._jobs.get()
            assert job is not None
            job.run(self.coordinator, lambda action: action(), self.session._sessions_lost)


@pytest.mark.parametrize("error", [RetryFailedError("attempts"), KazooException("refused")])
def test_what_zookeeper_refuses_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, error: KazooException
) -> None:
    """After its session with ZooKeeper was lost, the broker must register and read the catalog
    again. If ZooKeeper refuses both, the broker tries both again, and then is registered and has
    the catalog."""
    alive = Alive(monkeypatch)

    def answering(*answers: Any) -> Callable[..., Any]:
        left = iter((error, *answers))

        def answer(*_args: object, **_options: object) -> Any:
            found = next(left)
            if isinstance(found, Exception):
                raise found
            return found

        return answer

    monkeypatch.setattr(store, "register", answering(7))
    monkeypatch.setattr(alive.session.reader, "read", answering(Catalog("cluster")))
    alive.tell(SessionState.LOST)
    alive.tell(SessionState.CONNECTED)
    alive.work()
    assert (alive.session.broker_epoch, alive.catalogs, len(alive.later)) == (-1, [], 2)
    for again in tuple(alive.later):
        again(alive.coordinator)
    assert (alive.session.broker_epoch, alive.catalogs) == (7, [Catalog("cluster")])
    assert len(alive.later) == 2


def test_a_broker_doubts_before_zookeeper_may_have_ended_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the connection to ZooKeeper has been broken for a third of the session's timeout, the
    broker's session counts as in doubt, because another broker may soon take this broker's place.
    The session stays in doubt until the connection is back and the catalog has been read again."""
    alive = Alive(monkeypatch)
    monkeypatch.setattr(alive.session.reader, "read", lambda *_: Catalog("cluster"))
    assert not alive.session.is_doubtful
    alive.change(SessionState.SUSPENDED)
    alive.clock.advance(2.9)
    assert not alive.session.is_doubtful
    alive.clock.advance(0.2)
    assert alive.session.is_doubtful
    alive.change(SessionState.CONNECTED)
    assert alive.session.is_doubtful
    alive.change(SessionState.SUSPENDED)
    alive.work()
    assert alive.session.is_doubtful
    alive.change(SessionState.CONNECTED)
    alive.work()
    assert not alive.session.is_doubtful
    assert alive.lost == 0


def test_a_lost_session_is_in_doubt_at_once_and_its_jobs_are_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the broker's session with ZooKeeper is lost, the session is in doubt at once: another
    broker may have taken this broker's place. Work that was submitted before the loss, such as a
    commit of a group, is not done in the new session, because another broker may coordinate the
    group by then. Work that is submitted after the loss is done."""
    alive = Alive(monkeypatch)
    monkeypatch.setattr(alive.session.reader, "read", lambda *_: Catalog("cluster"))
    monkeypatch.setattr(store, "register", lambda *_, **__: 7)
    done: list[object] = []
    alive.session.submit(lambda _: "before", done.append)
    alive.change(SessionState.LOST)
    assert (alive.lost, alive.session.is_doubtful) == (1, True)
    alive.change(SessionState.CONNECTED)
    alive.session.submit(lambda _: "after", done.append)
    alive.work()
    assert isinstance(done[0], Unreachable)
    assert done[1:] == ["after"]
    assert not alive.session.is_doubtful


MARK, TOPIC = documents.deletion_path("logs"), documents.topic_path("logs")


def test_a_deletion_that_is_late_removes_no_other_topic() -> None:
    """If another broker has already finished the deletion of a topic, this broker finds that the
    node that marks the deletion is gone, and deletes nothing. So it does not delete a new topic of
    the same name."""
    topic_id = uuid.uuid4()
    tree: Any = Nodes(**{TOPIC: documents.topic(topic_id, {0: (1,)})})
    store.remove_topic(tree, "logs")
    assert TOPIC in tree.content
    store.mark_deletion(tree, "logs", topic_id)
    store.remove_topic(tree, "logs")
    assert tree.content.keys().isdisjoint({TOPIC, MARK})


def test_a_topic_made_again_is_neither_marked_nor_led_for_its_predecessor() -> None:
    """A call that marks a topic for deletion, or that makes this broker the leader of partitions,
    names the topic's id. If the topic was deleted and created again meanwhile, the call fails with
    TopicGone and does not change the new topic."""
    tree: Any = Nodes(**{TOPIC: documents.topic(uuid.uuid4(), {0: (1,)})})
    before = dict(tree.content)
    with pytest.raises(store.TopicGone):
        store.mark_deletion(tree, "logs", uuid.uuid4())
    with pytest.raises(store.TopicGone):
        store.lead_new(tree, "logs", uuid.uuid4(), [0], 1)
    assert tree.content == before


@promise("3 producer ids")
def test_a_block_of_producer_ids_is_above_all_that_were_given() -> None:
    """The ids in a new block of producer ids are higher than all ids of earlier blocks and all ids
    in this broker's logs. So no producer id is given out twice, even if ZooKeeper was restored from
    an older state."""
    path = documents.PRODUCER_ID_BLOCK
    tree: Any = Nodes(**{path: documents.producer_id_block(1, 0, 999)})
    assert store.producer_id_block(tree, 1, 500) == (1000, 1999)
    assert store.producer_id_block(tree, 1, 7000) == (7001, 8000)
    assert store.producer_id_block(Nodes(), 1, 7000) == (7001, 8000)  # type: ignore[arg-type]


def test_producer_ids_come_to_an_end() -> None:
    """When all numbers of producer ids are used up, a producer that asks for an id gets an
    error."""
    path = documents.PRODUCER_ID_BLOCK
    last = NUMBERS - 1
    tree: Any = Nodes(**{path: documents.producer_id_block(1, 0, last - 1000)})
    assert store.producer_id_block(tree, 1, -1) == (last - 999, last)
    with pytest.raises(StateRefused, match="used up"):
        store.producer_id_block(tree, 1, -1)


def test_the_key_of_producer_ids_stays() -> None:
    """The first broker makes the key of the cluster's producer ids; all others use the same."""
    tree: Any = Nodes()
    key = store.producer_id_key(tree)
    assert len(key) == 32
    assert store.producer_id_key(tree) == key
    assert store.producer_id_key(Nodes()) != key  # type: ignore[arg-type]
    tree.content[documents.PRODUCER_ID_KEY] = b'{"version": 1, "key": "no"}'
    with pytest.raises(documents.DocumentRefused, match="not hexadecimal"):
        store.producer_id_key(tree)
