from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kazoo.exceptions import NodeExistsError, NoNodeError

from skidway.broker.coordination import documents, store
from skidway.coordination import Coordinator, Versioned

CONFIG, TOPIC = documents.config_path("logs"), documents.topic_path("logs")


class Nodes:
    """Stands in for kazoo's client and for its transaction, over a dictionary. `after` is called
    once, after the path that it names was looked at."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.after: dict[str, Callable[[], None]] = {}

    def retry(self, call: Callable[..., Any], *args: Any) -> Any:
        return call(*args)

    def ensure_path(self, _path: str) -> None:
        pass

    def exists(self, path: str) -> object:
        found = path in self.content or None
        self.after.pop(path, lambda: None)()
        return found

    def delete(self, path: str) -> None:
        if self.content.pop(path, None) is None:
            raise NoNodeError

    def transaction(self) -> Any:
        steps: list[tuple[str, bytes | None]] = []
        return SimpleNamespace(
            create=lambda path, data: steps.append((path, data)),
            delete=lambda path: steps.append((path, None)),
            commit=lambda: self._commit(steps),
        )

    def _commit(self, steps: list[tuple[str, bytes | None]]) -> list[object]:
        content = dict(self.content)
        for path, data in steps:
            if data is None and content.pop(path, None) is None:
                return [NoNodeError()]
            if data is not None and content.setdefault(path, data) is not data:
                return [NodeExistsError()]
        self.content = content
        return [path for path, _ in steps]


def create(nodes: Nodes, settings: dict[str, str]) -> None:
    def get(path: str) -> Versioned | None:
        return Versioned(nodes.content[path], 0) if path in nodes.content else None

    coordinator = cast(Coordinator, SimpleNamespace(client=nodes, get=get, connect="zk"))
    store.create_topic(coordinator, "logs", uuid.uuid4(), {0: [1]}, settings)


@pytest.mark.parametrize("looked_at", [TOPIC, CONFIG])
@pytest.mark.parametrize("left", [False, True])
def test_two_brokers_that_create_a_topic_leave_one_with_its_settings(
    looked_at: str, left: bool
) -> None:
    """If two brokers create a topic at the same time, the topic of the faster one keeps its
    settings, whatever an earlier creation left behind."""
    nodes = Nodes()
    if left:
        nodes.content[CONFIG] = documents.configs({"retention.ms": "1"})
    nodes.after[looked_at] = lambda: create(nodes, {"retention.ms": "2"})
    try:
        create(nodes, {"retention.ms": "3"})
    except store.TopicExists:
        assert documents.read_configs(CONFIG, nodes.content[CONFIG]) == {"retention.ms": "2"}
    else:  # it did not look there, so nobody was faster
        assert documents.read_configs(CONFIG, nodes.content[CONFIG]) == {"retention.ms": "3"}
    assert TOPIC in nodes.content
