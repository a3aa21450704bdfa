"""A client asks every broker of a cluster at the same time. The brokers are scripted, and the
sockets real."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from skidway.kafka.client import Address, Client
from skidway.kafka.errors import BrokerUnreachable
from skidway.kafka.protocol import describe_configs, metadata
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import RequestHeader, response_frame
from skidway.kafka.protocol.messages import decode, encode
from support.processes import eventually, free_port
from support.scripted_broker import HangUp, ScriptedBroker, Silence

SLOW_S, PATIENCE_MS, AT_ONCE_S = 1.0, 1_000, 20.0


class Member(ScriptedBroker):
    """A broker of a cluster. named: the ports that its metadata names. slow: whether each answer
    of these takes SLOW_S."""

    def __init__(self, number: int, topics: dict[str, int]) -> None:
        super().__init__(topics)
        self.number, self.named, self.slow = number, list[int](), False
        self.ranges = {**self.ranges, ApiKey.DESCRIBE_CONFIGS: ApiKey.DESCRIBE_CONFIGS.broker}
        self.faults[ApiKey.DESCRIBE_CONFIGS] = deque()
        self.after[ApiKey.DESCRIBE_CONFIGS] = deque()

    @property
    def key(self) -> Address:
        return Address("127.0.0.1", self.port)

    def _metadata(self, header: RequestHeader, body: memoryview, error: object) -> bytes:
        if self.slow:
            time.sleep(SLOW_S)
        request = decode(metadata.MetadataRequest, body, header.api_version)
        names = [*self.topics] if request.topics is None else [x.name for x in request.topics]
        brokers = tuple(
            metadata.MetadataResponseBroker(node_id=port, host="127.0.0.1", port=port)
            for port in self.named
        )
        topics = tuple(metadata.MetadataResponseTopic(name=x) for x in names)
        told = metadata.MetadataResponse(brokers=brokers, cluster_id="c", topics=topics)
        return response_frame(header, encode(told, header.api_version))

    def _describe_configs(self, header: RequestHeader, body: memoryview, error: object) -> bytes:
        row = describe_configs.DescribeConfigsResourceResult(name="a", value=str(self.number))
        result = describe_configs.DescribeConfigsResult(
            resource_type=4, resource_name=str(self.port), configs=(row,)
        )
        told = describe_configs.DescribeConfigsResponse(results=(result,))
        return response_frame(header, encode(told, header.api_version))


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Three brokers that name each other. All know the topic `a`, and the last one also `b`."""
    with ExitStack() as stack:
        made = [Member(x, {"a": 1, "b": 1} if x == 2 else {"a": 1}) for x in range(3)]
        for each in made:
            each.named = [x.port for x in made]
            each.start()
            stack.callback(each.stop)
        yield made


@pytest.fixture
def client(members: list[Member]) -> Iterator[Client]:
    with Client(members[0].address) as made:
        yield made


def test_every_broker_tells_what_it_knows(members: list[Member], client: Client) -> None:
    """The answer has each broker's own view, of all topics or of some. Equal answers are decoded
    only once."""
    found, failed = client.metadata_of_each(60_000)
    assert {x: [*each.topics] for x, each in found.items()} == {
        members[0].key: ["a"], members[1].key: ["a"], members[2].key: ["a", "b"],
    }  # fmt: skip
    assert failed == {}
    assert found[members[0].key] is found[members[1].key]
    assert {*client.metadata_of_each(60_000, ["x"])[0]} == {x.key for x in members}


def test_brokers_are_asked_at_the_same_time(members: list[Member], client: Client) -> None:
    """Slow brokers cost the time of one, and not of each."""
    client.metadata_of_each(60_000)
    for each in members:
        each.slow = True
    begin = time.monotonic()
    assert len(client.metadata_of_each(60_000)[0]) == 3
    assert time.monotonic() - begin < 2 * SLOW_S


def test_a_broker_that_only_some_answers_name_is_asked(
    members: list[Member], client: Client
) -> None:
    """It is enough that one of the answers names a broker."""
    members[0].named, members[1].named = [x.port for x in members[:2]], [members[2].port]
    assert {*client.metadata_of_each(60_000)[0]} == {x.key for x in members}


@pytest.mark.parametrize("silent", [[1], [1, 2]])
def test_frozen_brokers_are_named_and_cost_the_time_once(
    members: list[Member], client: Client, silent: list[int]
) -> None:
    """Brokers that do not answer are named, and the others' answers are there."""
    client.metadata_of_each(60_000)
    for each in silent:
        members[each].faults[ApiKey.METADATA].append(Silence)
    begin = time.monotonic()
    found, failed = client.metadata_of_each(PATIENCE_MS)
    assert time.monotonic() - begin < 2 * PATIENCE_MS / 1000
    assert {*failed} == {members[x].key for x in silent}
    assert "no answer in time" in failed[members[1].key]
    assert len(found) == 3 - len(silent)


def test_a_broker_that_refuses_fails_at_once(members: list[Member], client: Client) -> None:
    """Nobody waits for a broker at whose port nobody listens."""
    gone = free_port()
    members[0].named.append(gone)
    begin = time.monotonic()
    found, failed = client.metadata_of_each(60_000)
    assert time.monotonic() - begin < AT_ONCE_S
    assert len(found) == 3
    assert "refused" in failed[Address("127.0.0.1", gone)]


def test_a_connection_that_ended_just_now_is_made_again(
    members: list[Member], client: Client
) -> None:
    """A broker that closes a connection, as for one that was idle, is asked once more."""
    client.metadata_of_each(60_000)
    members[1].faults[ApiKey.METADATA].append(HangUp)
    assert client.metadata_of_each(60_000)[1] == {}
    members[1].faults[ApiKey.METADATA] += [HangUp, HangUp]
    assert [*client.metadata_of_each(60_000)[1]] == [members[1].key]


def test_an_address_that_no_answer_names_is_no_broker(members: list[Member]) -> None:
    """An address of `bootstrap.servers` that does not answer is not missed if no broker names it,
    and only the first time does anybody wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:  # it accepts, and never answers
        bootstrap = f"127.0.0.1:{nobody.getsockname()[1]},{members[0].address}"
        with Client(bootstrap) as client:
            assert len(client.metadata_of_each(PATIENCE_MS)[0]) == 3
            begin = time.monotonic()
            assert client.metadata_of_each(60_000)[1] == {}
            assert time.monotonic() - begin < AT_ONCE_S


def test_a_broker_of_bootstrap_servers_that_nobody_names_is_asked(members: list[Member]) -> None:
    """As soon as there is a connection to it, an address of `bootstrap.servers` is asked, though
    the other brokers do not know it yet."""
    for each in members[:2]:
        each.named = [x.port for x in members[:2]]
    bootstrap = ",".join(x.address for x in members)
    with Client(bootstrap) as client:
        client.metadata(())
        eventually(lambda: members[2].key in client.metadata_of_each(60_000)[0])


def test_where_nobody_answers_the_cluster_is_unreachable() -> None:
    """If no broker answers, there is no answer to be judged."""
    with (
        Client(f"127.0.0.1:{free_port()}") as client,
        pytest.raises(BrokerUnreachable, match="refused"),
    ):
        client.metadata_of_each(PATIENCE_MS)


def test_a_frozen_broker_has_no_setting(
    members: list[Member], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of brokers that do not answer soon, the settings are left out."""
    monkeypatch.setattr("skidway.kafka.client.client._EACH_WITHIN_S", PATIENCE_MS / 1000)
    assert client.config_of_brokers("a") == {x.address: str(x.number) for x in members}
    for each in members[1:]:
        each.faults[ApiKey.DESCRIBE_CONFIGS].append(Silence)
    begin = time.monotonic()
    assert client.config_of_brokers("a") == {members[0].address: "0"}
    assert time.monotonic() - begin < 2 * PATIENCE_MS / 1000
