"""Several registries can share one real ZooKeeper. Each registry may write, and each id belongs to
only one schema."""

from __future__ import annotations

import itertools
import json
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skidway.clock import SystemClock
from skidway.coordination import Coordinator
from skidway.schemas.client import RegistryClient, RegistryRefused, RegistryUnreachable
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.decisions import registration, submission
from skidway.schemas.registry.state import RegistryState
from skidway.schemas.registry.store import Store
from skidway.schemas.registry.zookeeper_log import ZookeeperLog
from support.processes import eventually, running
from support.registry import Registry
from support.zookeeper import ZooKeeper

KILLS = 6


def schema(number: int) -> str:
    fields = [{"name": f"f{number}", "type": "int", "default": 0}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def register(store: Store, subject: str, number: int) -> int:
    submitted = submission.submit(RegistryState(), submission.asked({"schema": schema(number)}))
    return int(store.write(lambda state: registration.register(state, subject, submitted)).id)


def canonical(text: str) -> Any:
    return json.loads(text)


def test_two_stores_racing_give_gapless_unambiguous_ids(zookeeper: str) -> None:
    """If two registries register the same n schemas at the same time in opposite orders, both get
    the same id for each schema, and the ids are 1 to n."""
    count = 60
    with Coordinator(zookeeper) as one, Coordinator(zookeeper) as two:
        stores = [Store(ZookeeperLog(each), SystemClock(), Level.NONE) for each in (one, two)]
        begin = threading.Barrier(len(stores))

        def work(at: int) -> dict[int, int]:
            begin.wait()
            order = range(count) if at == 0 else reversed(range(count))
            return {number: register(stores[at], f"s{number % 5}", number) for number in order}

        with ThreadPoolExecutor(len(stores)) as pool:
            found = list(pool.map(work, range(len(stores))))
        third = Store(ZookeeperLog(one), SystemClock())
    assert found[0] == found[1]
    assert sorted(found[0].values()) == list(range(1, count + 1))
    for number, schema_id in found[0].items():
        text = third.read(lambda state, wanted=schema_id: state.schema(wanted).text)
        assert canonical(text) == canonical(schema(number))


def test_a_follower_sees_what_another_registry_wrote(zookeeper: str, tmp_path: Path) -> None:
    """A registry soon learns from a watch in ZooKeeper what another registry has written. If a
    client asks for an id that the registry does not know yet, the registry looks it up in ZooKeeper
    at once."""
    first, second = Registry(zookeeper, tmp_path), Registry(zookeeper, tmp_path)
    with running(first.program, first.ready), running(second.program, second.ready):
        writer, reader = RegistryClient(first.url), RegistryClient(second.url)
        schema_id = writer.register("s", schema(1))
        assert canonical(reader.schema(schema_id)) == canonical(schema(1))
        writer.register("t", schema(2))
        eventually(lambda: reader.subjects() == ["s", "t"], what="the second registry follows")
        assert reader.register("u", schema(3)) == 3


@pytest.mark.quick
def test_registries_killed_again_and_again_while_writing(zookeeper: str, tmp_path: Path) -> None:
    """If two registries are killed in turn with kill -9 under load, no acknowledged registration is
    lost. Each id belongs to only one schema, no id is skipped, and both registries reach the same
    state."""
    pair = Registry(zookeeper, tmp_path), Registry(zookeeper, tmp_path)
    answered: dict[int, int] = {}
    numbers, enough = itertools.count(), threading.Event()
    with running(pair[0].program, pair[0].ready), running(pair[1].program, pair[1].ready):
        _put(pair[0].url, "/config", {"compatibility": "NONE"})
        urls = [",".join(each.url for each in order) for order in (pair, pair[::-1])]

        def work(at: int) -> None:
            client = RegistryClient(urls[at % 2], timeout_s=20)
            while not enough.is_set():
                number = next(numbers)
                answered[number] = client.register(f"s{number % 3}", schema(number))

        with ThreadPoolExecutor(4) as pool:
            workers = [pool.submit(work, at) for at in range(4)]
            try:
                for turn in range(KILLS):
                    _more(answered, 15)
                    pair[turn % 2].program.kill()
                    _more(answered, 5)
                    pair[turn % 2].program.start().wait_until(pair[turn % 2].ready)
                _more(answered, 15)
            finally:
                enough.set()
            for each in workers:
                each.result()
        assert sorted(answered.values()) == list(range(1, len(answered) + 1))
        first, second = (RegistryClient(each.url) for each in pair)
        for number, schema_id in answered.items():
            assert canonical(first.schema(schema_id)) == canonical(schema(number))
        for subject in ("s0", "s1", "s2"):
            eventually(lambda s=subject: first.versions(s) == second.versions(s), what="same state")
            versions = first.versions(subject)
            assert versions == list(range(1, len(versions) + 1))


def test_a_schema_that_is_there_is_answered_without_zookeeper(tmp_path: Path) -> None:
    """A producer that starts while ZooKeeper is down still gets the id of a known schema."""
    server = ZooKeeper(tmp_path)
    with running(server.program, server.ready):
        registry = Registry(server.address, tmp_path)
        with running(registry.program, registry.ready):
            assert RegistryClient(registry.url).register("s", schema(1)) == 1
            server.program.kill()
            eventually(lambda: not registry.ready(), what="the registry notices")
            assert RegistryClient(registry.url).register("s", schema(1)) == 1


def _more(answered: dict[int, int], count: int) -> None:
    """Waits until the registries have answered `count` more registrations."""
    before = len(answered)
    eventually(lambda: len(answered) >= before + count, what="registrations go on")


def _put(url: str, path: str, document: Any) -> None:
    body = json.dumps(document).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(url + path, body, headers, method="PUT")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test_zookeeper_away_and_back(tmp_path: Path) -> None:
    """While ZooKeeper is down, the registry still answers reads and refuses writes with status 503.
    When ZooKeeper is up again, writes work, and no schema is lost."""
    server = ZooKeeper(tmp_path)
    with running(server.program, server.ready):
        registry = Registry(server.address, tmp_path)
        with running(registry.program, registry.ready):
            patient = RegistryClient(registry.url)
            hasty = RegistryClient(registry.url, pause=lambda _seconds: None)
            assert patient.register("s", schema(1)) == 1
            server.program.stop()
            eventually(lambda: not registry.ready(), what="the registry notices")
            assert canonical(hasty.schema(1)) == canonical(schema(1))
            assert hasty.subjects() == ["s"]
            with pytest.raises(RegistryUnreachable, match="try again later"):
                hasty.register("s", schema(2))
            with pytest.raises(RegistryUnreachable, match="try again later"):
                # The registry needs ZooKeeper to find out whether another registry has assigned
                # this id.
                hasty.schema(77)
            server.program.start().wait_until(server.ready)
            eventually(registry.ready, what="the registry is back")
            with pytest.raises(RegistryRefused, match="not found"):
                hasty.schema(77)
            assert hasty.register("t", schema(2)) == 2
        with running(registry.program, registry.ready):
            assert RegistryClient(registry.url).subjects() == ["s", "t"]
