"""Consumer groups keep their offsets if the broker is killed or ZooKeeper cannot be reached."""

from __future__ import annotations

import contextlib
import selectors
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from skidway.kafka.protocol.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from skidway.kafka.protocol.messages import decode, encode
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from skidway.kafka.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from skidway.kafka.protocol.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from support.brokers import SkidwayBroker
from support.processes import WITHIN_S, eventually, running
from support.raw_client import RawClient
from support.relay import Relay
from support.zookeeper import ZooKeeper

TOPIC = "logs"
PARTITIONS = 4
GROUPS = 300
RETRIABLE = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def create(client: RawClient) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS)
    client.ask(CreateTopicsRequest(topics=(topic,)), 5, CreateTopicsResponse)


def offsets(client: RawClient, group: str) -> dict[int, int]:
    """Waits until the broker has loaded the group, and returns the group's committed offsets by
    partition."""

    def ask() -> OffsetFetchResponse | None:
        request = OffsetFetchRequest(group_id=group, topics=None)
        answer = client.ask(request, 7, OffsetFetchResponse)
        assert isinstance(answer, OffsetFetchResponse)
        return answer if answer.error_code == ErrorCode.NONE else None

    answer = eventually(ask)
    assert isinstance(answer, OffsetFetchResponse)
    return {
        each.partition_index: each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
    }


def commit(client: RawClient, offset: int, member: str = "", generation: int = -1) -> int:
    """Commits an offset of group g for partition 0, by default as a client that is no member of the
    group. Returns the broker's error code."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=(topic,),
    )
    answer = client.ask(request, 8, OffsetCommitResponse)
    assert isinstance(answer, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


def coordinator(client: RawClient) -> int:
    """Asks a broker for the coordinator of group g. Returns the coordinator's port."""
    answer = client.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
    assert isinstance(answer, FindCoordinatorResponse)
    return answer.port


def heartbeat(client: RawClient, member: str, generation: int) -> int:
    request = HeartbeatRequest(group_id="g", member_id=member, generation_id=generation)
    answer = client.ask(request, 4, HeartbeatResponse)
    assert isinstance(answer, HeartbeatResponse)
    return answer.error_code


def become_member(client: RawClient) -> tuple[str, int]:
    """Joins and syncs group g as its only member. Returns the member id and the generation."""
    joining = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    joined = client.ask(joining, 3, JoinGroupResponse)
    assert isinstance(joined, JoinGroupResponse)
    assert joined.error_code == ErrorCode.NONE
    mine = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(mine,),
    )
    synced = client.ask(request, 3, SyncGroupResponse)
    assert isinstance(synced, SyncGroupResponse)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"all")
    return joined.member_id, joined.generation_id


def test_every_answered_commit_survives(own_broker: SkidwayBroker) -> None:
    """The commits of hundreds of groups share ZooKeeper transactions. If the broker is then killed,
    each group has its last acknowledged commit or a newer commit."""
    own_broker.start()
    with RawClient(own_broker.port) as client:
        create(client)
    press = CommittingGroups(own_broker.port, TOPIC, PARTITIONS, GROUPS)
    sent, answered = dict.fromkeys(range(GROUPS), 0), dict.fromkeys(range(GROUPS), -1)
    for number in range(GROUPS):
        press.send(number, 0)
    while sum(sent.values()) < 3 * GROUPS:
        for number, codes in press.answered(30):
            assert codes == {ErrorCode.NONE}
            answered[number] = sent[number]
            sent[number] += 1
            press.send(number, sent[number])
    assert 0 < own_broker.metric("skidway_broker_offset_transactions_total") < GROUPS
    own_broker.crash()
    press.close()
    with RawClient(own_broker.port) as client:
        for number, name in enumerate(press.names):
            found = offsets(client, name)
            assert set(found) == set(range(PARTITIONS))
            assert min(found.values()) >= answered[number]
            assert max(found.values()) <= sent[number]


def test_a_zombie_of_before_the_crash_is_refused(own_broker: SkidwayBroker) -> None:
    """After a crash of the broker, a group's member continues in its generation. The broker refuses
    requests with another generation or another member id."""
    own_broker.settings["group.initial.rebalance.delay.ms"] = 0
    own_broker.start()
    with RawClient(own_broker.port) as client:
        create(client)
        old, first = become_member(client)
        commit(client, 1, old, first)
        client.socket.close()
    own_broker.crash()
    with RawClient(own_broker.port) as client:
        assert heartbeat(client, old, first) == ErrorCode.NONE
        assert commit(client, 2, old, first) == ErrorCode.NONE
        assert commit(client, 9, old, first - 1) == ErrorCode.ILLEGAL_GENERATION
        assert commit(client, 9, old, first + 1) == ErrorCode.ILLEGAL_GENERATION
        assert commit(client, 9, "somebody", first) == ErrorCode.UNKNOWN_MEMBER_ID
        assert commit(client, 9) == ErrorCode.UNKNOWN_MEMBER_ID
        assert offsets(client, "g") == {0: 2}


@contextlib.contextmanager
def two_brokers(
    folder: Path, first: str, second: str
) -> Iterator[tuple[SkidwayBroker, SkidwayBroker]]:
    """Runs two brokers of one cluster. `first` and `second` are the addresses at which the first
    and the second broker reach ZooKeeper. The first broker is the controller, and so the
    coordinator of all groups."""
    brokers = [
        SkidwayBroker(
            folder / str(number), zookeeper, broker_id=number,
            zookeeper_session_timeout_ms=4_000, group_initial_rebalance_delay_ms=0,
        )
        for number, zookeeper in ((1, first), (2, second))
    ]  # fmt: skip
    try:
        for broker in brokers:
            broker.folder.mkdir()
            broker.start()
        with RawClient(brokers[0].port) as here, RawClient(brokers[1].port) as there:
            create(here)
            eventually(lambda: coordinator(there) == coordinator(here) == brokers[0].port)
        yield brokers[0], brokers[1]
    finally:
        for broker in brokers:
            broker.end()


def test_all_brokers_name_one_coordinator_and_the_group_moves(
    tmp_path: Path, zookeeper: str
) -> None:
    """All brokers of a cluster name the same broker as the coordinator, and all brokers except the
    coordinator refuse a group's members and commits. So two members of a group never own the same
    partition. If the coordinator ends, another broker becomes the coordinator, and the group's
    member continues in its generation.
    """
    with two_brokers(tmp_path, zookeeper, zookeeper) as (first, second):
        with RawClient(first.port) as here, RawClient(second.port) as there:
            member, generation = become_member(here)
            assert commit(here, 1, member, generation) == ErrorCode.NONE
            assert heartbeat(there, member, generation) == ErrorCode.NOT_COORDINATOR
            assert commit(there, 9, member, generation) == ErrorCode.NOT_COORDINATOR
            assert commit(there, 9) == ErrorCode.NOT_COORDINATOR
            first.end()
            eventually(lambda: coordinator(there) == second.port)
            eventually(lambda: heartbeat(there, member, generation) == ErrorCode.NONE)
            assert commit(there, 2, member, generation) == ErrorCode.NONE
            assert offsets(there, "g") == {0: 2}
        first.start()
        with RawClient(first.port) as here:
            assert coordinator(here) == second.port
            assert heartbeat(here, member, generation) == ErrorCode.NOT_COORDINATOR


@pytest.mark.slow
def test_a_coordinator_that_is_cut_off_from_zookeeper_lets_go(
    tmp_path: Path, zookeeper: str
) -> None:
    """If the coordinator can no longer reach ZooKeeper, but another broker can, the coordinator
    refuses the group's members and commits before the other broker takes over. When the former
    coordinator reaches ZooKeeper again, it names the other broker as the coordinator. So two
    members never own the same partition, and a late commit does not replace a newer one.
    """
    server, _, chroot = zookeeper.partition("/")
    with (
        Relay(int(server.rpartition(":")[2])) as relay,
        two_brokers(tmp_path, f"{relay.address}/{chroot}", zookeeper) as (first, second),
        RawClient(first.port) as here,
        RawClient(second.port) as there,
    ):
        member, generation = become_member(here)
        assert commit(here, 1, member, generation) == ErrorCode.NONE
        relay.fall_silent()
        eventually(lambda: coordinator(there) == second.port)
        assert coordinator(here) == -1
        assert heartbeat(here, member, generation) == ErrorCode.NOT_COORDINATOR
        assert commit(here, 9, member, generation) == ErrorCode.NOT_COORDINATOR
        eventually(lambda: heartbeat(there, member, generation) == ErrorCode.NONE)
        assert commit(there, 2, member, generation) == ErrorCode.NONE
        relay.go_on()
        eventually(lambda: coordinator(here) == second.port)
        assert commit(here, 9, member, generation) == ErrorCode.NOT_COORDINATOR
        assert offsets(there, "g") == {0: 2}


def test_groups_live_on_while_zookeeper_is_away(tmp_path: Path) -> None:
    """While ZooKeeper cannot be reached, the broker answers heartbeats, and answers commits with a
    retriable error. When ZooKeeper can be reached again, everything works as before."""
    zookeeper = ZooKeeper(tmp_path)
    with running(zookeeper.program, zookeeper.ready):
        broker = SkidwayBroker(tmp_path, f"{zookeeper.address}/c")
        broker.settings["group.initial.rebalance.delay.ms"] = 0
        broker.program.command[:] = broker.command()
        with running(broker.program, broker.ready), RawClient(broker.port) as client:
            create(client)
            member, generation = become_member(client)
            assert commit(client, 1, member, generation) == ErrorCode.NONE
            zookeeper.program.stop()
            eventually(lambda: broker.health()["zookeeper"] == "away")
            assert heartbeat(client, member, generation) == ErrorCode.NONE
            assert commit(client, 2, member, generation) in RETRIABLE
            asked = OffsetFetchRequest(group_id="never-seen", topics=None)
            found = client.ask(asked, 7, OffsetFetchResponse)
            assert isinstance(found, OffsetFetchResponse)
            assert found.error_code in RETRIABLE
            assert heartbeat(client, member, generation) == ErrorCode.NONE
            zookeeper.program.start().wait_until(zookeeper.ready)
            eventually(lambda: commit(client, 3, member, generation) == ErrorCode.NONE)
            assert heartbeat(client, member, generation) == ErrorCode.NONE
            assert offsets(client, "g") == {0: 3}


@pytest.mark.slow
@pytest.mark.parametrize("noticed", [False, True])
def test_a_silent_zookeeper_stops_neither_heartbeats_nor_a_stop(
    tmp_path: Path, noticed: bool
) -> None:
    """If ZooKeeper keeps its connections open but sends no answers, like a hung machine, the broker
    still answers members, also while a commit waits for ZooKeeper, and then refuses the commit. The
    broker also stops cleanly after SIGTERM.
    This holds right after ZooKeeper has stopped answering, and also after the broker treats its
    ZooKeeper session as lost."""
    zookeeper = ZooKeeper(tmp_path)
    with running(zookeeper.program, zookeeper.ready):
        broker = SkidwayBroker(tmp_path, f"{zookeeper.address}/c")
        broker.settings["group.initial.rebalance.delay.ms"] = 0
        broker.program.command[:] = broker.command()
        with running(broker.program, broker.ready):
            with RawClient(broker.port) as client, RawClient(broker.port) as other:
                create(client)
                member, generation = become_member(client)
                zookeeper.freeze()
                try:
                    committing = threading.Thread(
                        target=lambda: codes.append(commit(other, 2, member, generation))
                    )
                    codes: list[int] = []
                    committing.start()
                    beats = 0
                    while committing.is_alive() and (noticed or beats < 5):
                        assert heartbeat(client, member, generation) == ErrorCode.NONE
                        beats += 1
                        committing.join(0.01)
                    assert beats >= 5
                    if noticed:
                        assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
                        eventually(lambda: broker.health()["zookeeper"] == "away")
                        assert heartbeat(client, member, generation) == ErrorCode.NONE
                    assert broker.program.stop() == 0
                    committing.join(WITHIN_S)
                finally:
                    zookeeper.thaw()
            assert not committing.is_alive()
            assert '"clean": true' in broker.program.output()
            broker.start()
            with RawClient(broker.port) as client:
                assert heartbeat(client, member, generation) == ErrorCode.NONE
            assert broker.program.stop() == 0


VERSION = 8


class CommittingGroups:
    """Consumer groups that have one connection each. Over its connection, a group commits an offset
    for every partition of a topic. The groups have no members: they commit like consumers that
    assign partitions to themselves and do not join a group."""

    def __init__(self, port: int, topic: str, partitions: int, groups: int) -> None:
        self.names = [f"press-{number}" for number in range(groups)]
        self._topic, self._partitions = topic, partitions
        self._clients = [RawClient(port) for _ in self.names]
        self._selector = selectors.DefaultSelector()
        for number, each in enumerate(self._clients):
            self._selector.register(each.socket, selectors.EVENT_READ, number)

    def send(self, number: int, offset: int) -> None:
        """Sends a request in which the group with this number commits `offset` for every
        partition."""
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=each, committed_offset=offset)
            for each in range(self._partitions)
        )
        topic = OffsetCommitRequestTopic(name=self._topic, partitions=partitions)
        request = OffsetCommitRequest(group_id=self.names[number], topics=(topic,))
        body = encode(request, VERSION)
        self._clients[number].send(request_frame(request.API, VERSION, offset, "press", body))

    def answered(self, timeout_s: float) -> list[tuple[int, set[int]]]:
        """Waits at most `timeout_s` for answers. Returns the number of each group whose answer has
        arrived, with the error codes in this answer."""
        found = []
        for key, _ in self._selector.select(timeout_s):
            frame = memoryview(self._clients[key.data].receive())
            body = response_body(frame, OffsetCommitRequest.API, VERSION)
            answer = decode(OffsetCommitResponse, body, VERSION)
            codes = {each.error_code for topic in answer.topics for each in topic.partitions}
            found.append((key.data, codes))
        return found

    def close(self) -> None:
        self._selector.close()
        for each in self._clients:
            each.socket.close()
