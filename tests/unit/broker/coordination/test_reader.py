from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.retry import RetryFailedError

from skidway.broker.catalog import Catalog, PartitionState
from skidway.broker.coordination import documents
from skidway.broker.coordination.reader import CatalogReader
from skidway.coordination import Versioned
from skidway.errors import Unreachable
from support.live_brokers import live_broker

Watch = Callable[[Any], None]


class Nodes:
    """A stand-in for the client of kazoo (a ZooKeeper library). The nodes are in a dictionary, and
    a watch fires once."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.watches: dict[str, set[Watch]] = {}
        self.failing: dict[str, Exception] = {}
        self.read: list[str] = []

    def retry(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return call(*args, **options)

    def ensure_path(self, _path: str) -> None:
        pass

    def put(self, path: str, data: bytes) -> None:
        self.content[path] = data
        for each in self.watches.pop(path, ()), self.watches.pop(path.rpartition("/")[0], ()):
            for watch in each:
                watch(None)

    def get(self, path: str, watch: Watch) -> tuple[bytes, SimpleNamespace]:
        if path in self.failing:
            raise self.failing.pop(path)
        if path not in self.content:
            raise NoNodeError
        self.watches.setdefault(path, set()).add(watch)
        self.read.append(path)
        return self.content[path], SimpleNamespace(version=0)

    def exists(self, path: str, watch: Watch) -> object:
        self.watches.setdefault(path, set()).add(watch)
        return None

    def get_children(self, path: str, watch: Watch) -> list[str]:
        self.watches.setdefault(path, set()).add(watch)
        inside = [each[len(path) + 1 :] for each in self.content if each.startswith(f"{path}/")]
        return sorted({each.partition("/")[0] for each in inside})


class World:
    def __init__(self) -> None:
        self.nodes = Nodes()
        self.changes = 0
        controller = Versioned(documents.controller(1, 0), 0)
        self.coordinator: Any = SimpleNamespace(
            client=self.nodes,
            connect="zookeeper:2181",
            create_if_absent=lambda *_args, **_options: False,
            get=lambda _path: controller,
        )
        self.reader = CatalogReader(self.coordinator, self.changed)
        self.topic_id = uuid.uuid4()
        self.nodes.put(documents.topic_path("logs"), documents.topic(self.topic_id, {0: (1,)}))

    def changed(self) -> None:
        self.changes += 1

    def catalog(self) -> Catalog:
        return self.reader.read("cluster", 1, 0)


STATE = documents.state_path("logs", 0)


def test_only_what_changed_is_read_again() -> None:
    """If no watch on a topic's nodes has fired, the broker does not read these nodes again."""
    world = World()
    first = world.catalog().topics["logs"]
    world.nodes.read.clear()
    assert world.catalog().topics["logs"] is first
    assert documents.topic_path("logs") not in world.nodes.read
    world.nodes.put(STATE, documents.state(PartitionState(1, 4, (1,))))
    assert world.changes
    state = world.catalog().topics["logs"].partitions[0].state
    assert state is not None
    assert state.leader_epoch == 4


@pytest.mark.parametrize("error", [ConnectionLoss(), RetryFailedError("too many attempts")])
def test_a_change_outlives_a_reading_that_failed(error: Exception) -> None:
    """If a node in ZooKeeper has changed, but the broker fails to read the node, the broker tries
    again. It must remember the change, because a watch fires only once."""
    world = World()
    world.catalog()
    world.nodes.put(STATE, documents.state(PartitionState(1, 4, (1,))))
    world.nodes.failing[STATE] = error
    with pytest.raises(Unreachable):
        world.catalog()
    state = world.catalog().topics["logs"].partitions[0].state
    assert state is not None
    assert state.leader_epoch == 4


@pytest.mark.parametrize(
    ("name", "data"), [("x", b"{}"), ("7", b"{}"), ("7", b"\xff"), ("-1", b'{"host":"a","port":1}')]
)
def test_a_broken_registration_hides_nobody_else(name: str, data: bytes) -> None:
    """If the node by which a broker has registered in ZooKeeper has an invalid name or invalid
    content, the broker of this node is left out of the catalog. The other brokers stay in the
    catalog."""
    world = World()
    address = live_broker(1, "127.0.0.1", 9092)
    good = documents.registration(documents.Registration(address, "id"), 0)
    world.nodes.put(documents.broker_path(1), good)
    world.nodes.put(documents.broker_path(name), data)
    assert world.catalog().brokers == {1: address}


def test_a_topic_that_becomes_unreadable_stays_as_it_was() -> None:
    """If the node of a topic becomes unreadable, the topic stays in the catalog as it was. A new
    topic with an unreadable node is ignored."""
    world = World()
    first = world.catalog().topics["logs"]
    world.nodes.put(documents.topic_path("logs"), b"not JSON")
    world.nodes.put(documents.topic_path("new"), b"not JSON")
    assert world.catalog().topics == {"logs": first}


def test_a_controller_that_goes_while_it_is_read_is_followed_by_somebody() -> None:
    """If the controller's session ends just when this broker reads the controller's node, this
    broker becomes the controller. Otherwise no broker would notice that the controller is gone, and
    clients would get no controller until another node changes."""
    world = World()
    there = [documents.controller(7, 0)]

    def create_if_absent(_path: str, content: bytes, **_options: object) -> bool:
        is_new = not there
        there[:] = there or [content]
        return is_new

    def get(_path: str) -> Versioned | None:
        if there == [documents.controller(7, 0)]:
            there.clear()  # the controller's session ends here
        return Versioned(there[0], 0) if there else None

    world.coordinator.create_if_absent, world.coordinator.get = create_if_absent, get
    assert world.catalog().controller_id == 1
