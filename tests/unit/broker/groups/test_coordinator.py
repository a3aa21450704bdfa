from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from skidway.broker.catalog import NO_LEADER
from skidway.broker.coordination.consumers import Committed, TopicOffset
from skidway.broker.coordination.ledger import Record
from skidway.broker.coordination.stored_groups import GroupInUse
from skidway.broker.groups import hosting
from skidway.broker.groups.coordinator import Groups
from skidway.broker.groups.group import GroupState
from skidway.broker.groups.hosting import FORGET_AFTER_S
from skidway.broker.groups.limits import GROUP_ID_BYTES_MAX, GroupLimits
from skidway.broker.groups.member import Joining, Protocol, Syncing
from skidway.broker.groups.outcomes import Joined, Synced
from skidway.broker.groups.record import encode
from skidway.broker.network.timers import Timers
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock

LOGS = TopicPartition("logs", 0)
AWAY = Unreachable("away")


class FakeJobQueue:
    """A job queue whose jobs are run by the test."""

    def __init__(self) -> None:
        self.loads: list[Callable[[Any], None]] = []
        self.reads: list[Callable[[Any], None]] = []
        self.writes: list[tuple[bytes, Callable[[Any], None]]] = []
        self.commits: list[tuple[Mapping[Any, Any], Callable[[Any], None]]] = []
        self.native: int | SkidwayError = 0

    def load(self, _group: str, done: Callable[[Any], None]) -> None:
        self.loads.append(done)

    def read(self, _group: str, done: Callable[[Any], None]) -> None:
        self.reads.append(done)

    def count_native(self, _group: str, done: Callable[[Any], None]) -> None:
        done(self.native)

    def write(self, _group: str, record: Record, done: Callable[[Any], None]) -> None:
        self.writes.append((record.content, done))

    def commit(self, _group: str, offsets: Mapping[Any, Any], done: Callable[[Any], None]) -> None:
        self.commits.append((offsets, done))

    def is_busy_with(self, _group: str) -> bool:
        return False

    def close(self, _error: SkidwayError) -> None:
        for done in self.loads:
            done(AWAY)


class World:
    def __init__(self) -> None:
        self.clock, self.timers, self.jobs = ManualClock(), Timers(), FakeJobQueue()
        limits = GroupLimits(initial_rebalance_delay_s=0)
        jobs: Any = self.jobs
        self.topics = {"logs": uuid.UUID(int=1)}
        self.controller, self.is_cut_off = 1, False
        self.groups = Groups(
            1, limits, self.clock, self.timers, jobs, self.topics.get, lambda: self.controller,
            lambda: self.is_cut_off,
        )  # fmt: skip
        self.said: list[Any] = []

    def loaded(self) -> None:
        self.groups.use("g", lambda _group: None)
        self.jobs.loads.pop()(None)

    def stable(self) -> str:
        """Makes a group with one member, and returns the member's id."""
        self.loaded()
        self.join()
        self.timers.run_due(self.clock.monotonic())
        joined = self.said.pop()
        assert isinstance(joined, Joined)
        member = joined.member_id
        self.groups.sync("g", Syncing(member, None, 1, {member: b"all"}), self.said.append)
        assert self.said == []
        self.jobs.writes.pop()[1](None)
        assert isinstance(self.said.pop(), Synced)
        return member

    def join(self, client_id: str = "", group: str = "g", host: str = "/1") -> None:
        joining = Joining(
            client_id=client_id, client_host=host, session_timeout_s=10, rebalance_timeout_s=10,
            protocol_type="consumer", protocols=(Protocol("range", b""),),
        )  # fmt: skip
        self.groups.join(group, joining, self.said.append)

    def come(self, group: str, host: str) -> None:
        """A member of a host joins a new group, and waits for the answer."""
        self.join("", group, host)
        self.jobs.loads.pop()(None)

    def commit(self, member: str = "", generation: int = -1) -> None:
        offsets = {LOGS: Committed(5)}
        self.groups.offsets.commit("g", member, None, generation, offsets, self.said.append)


def test_a_group_is_read_once_for_all_who_wait() -> None:
    """The coordinator reads a group from ZooKeeper once for all requests that wait for the group.
    It does not read the group again while the group is in memory."""
    world = World()
    for _ in range(3):
        world.groups.heartbeat("g", "m", None, 1, world.said.append)
    assert len(world.jobs.loads) == 1
    world.jobs.loads.pop()(None)
    assert world.said == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    world.groups.heartbeat("g", "m", None, 1, world.said.append)
    assert not world.jobs.loads


def test_who_waited_behind_a_deletion_gets_the_group_that_is_there_then() -> None:
    """If requests wait for a group, and the first of them deletes the group, the later requests get
    the group that exists after the deletion. So no request works on a deleted group."""
    world = World()
    world.groups.use("g", lambda _group: world.groups.drop("g"))
    world.join()
    world.groups.use("g", lambda _group: world.said.append("g" in world.groups.hosted))
    world.jobs.loads.pop()(None)
    assert world.said == []
    world.jobs.loads.pop()(None)
    assert world.said == [True]
    world.timers.run_due(world.clock.monotonic())
    assert isinstance(world.said[-1], Joined)


def test_a_long_client_id_makes_no_long_member_id() -> None:
    """A member id begins with the client id. If the client id is long, the coordinator shortens it,
    because the member id must fit into a string of the protocol."""
    world = World()
    world.loaded()
    world.join("c" * 32_767)
    world.timers.run_due(world.clock.monotonic())
    (joined,) = world.said
    assert isinstance(joined, Joined)
    assert joined.error is ErrorCode.NONE
    assert len(joined.member_id) < 300


def test_zookeeper_away_is_an_error_that_clients_try_again() -> None:
    """While ZooKeeper cannot be reached, a request for a group that is not in memory gets a
    retriable error. When the next request for the group arrives, the coordinator tries again to
    read the group."""
    world = World()
    world.groups.offsets.fetch("g", world.said.append)
    world.jobs.loads.pop()(AWAY)
    assert world.said == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    world.groups.offsets.fetch("g", world.said.append)
    assert len(world.jobs.loads) == 1


@pytest.mark.parametrize("group", ["", "g" * (GROUP_ID_BYTES_MAX + 1), "ä" * GROUP_ID_BYTES_MAX])
def test_names_that_no_group_can_have(group: str) -> None:
    """A request with an illegal group id gets INVALID_GROUP_ID, and the coordinator does not read
    anything from ZooKeeper."""
    world = World()
    world.groups.offsets.fetch(group, world.said.append)
    assert world.said == [ErrorCode.INVALID_GROUP_ID]
    assert not world.jobs.loads


def test_who_waits_for_a_group_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a limited number of requests may wait until groups are read from ZooKeeper. Further
    requests get a retriable error."""
    monkeypatch.setattr(hosting, "WAITING_MAX", 2)
    world = World()
    for group in "abc":
        world.groups.offsets.fetch(group, world.said.append)
    assert world.said == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_an_unreadable_group_is_not_begun_anew() -> None:
    """If the node of a group cannot be read, commits of the group are refused, because the group's
    generation is not known."""
    world = World()
    world.commit()
    world.jobs.loads.pop()(b"nonsense")
    assert world.said == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert not world.jobs.commits


def test_a_commit_is_answered_when_it_is_stored() -> None:
    """The coordinator answers a commit only when the commit has been stored. If the commit could
    not be stored, the answer is a retriable error."""
    world = World()
    member = world.stable()
    world.commit(member, 1)
    world.commit(member, 1)
    assert world.said == []
    world.jobs.commits.pop(0)[1](None)
    world.jobs.commits.pop(0)[1](AWAY)
    assert world.said == [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.commit(member, 0)
    assert world.said[-1] is ErrorCode.ILLEGAL_GENERATION
    assert not world.jobs.commits


def test_what_a_commit_without_answer_came_to_is_read() -> None:
    """If ZooKeeper does not answer when the coordinator writes a commit, the commit may have been
    stored or not. Therefore the coordinator reads the group's offsets again."""
    world = World()
    member = world.stable()
    world.groups.offsets.fetch("g", world.said.append)
    world.jobs.reads.pop()({LOGS: Committed(5)})
    world.commit(member, 1)
    world.jobs.commits.pop()[1](AWAY)
    world.groups.offsets.fetch("g", world.said.append)
    assert len(world.jobs.reads) == 1


def test_offsets_of_a_group_without_members_are_read_each_time() -> None:
    """The offsets of a group without members are read from ZooKeeper each time, because an
    administrator's tool, or consumers that coordinate through ZooKeeper, may have changed them
    there."""
    world = World()
    world.loaded()
    for _ in range(2):
        world.groups.offsets.fetch("g", world.said.append)
        world.jobs.reads.pop()({LOGS: Committed(5)})


def test_a_generation_of_a_group_that_is_not_there() -> None:
    """A commit that names a generation gets ILLEGAL_GENERATION if the group does not exist, for
    example because the group has expired long ago, together with its offsets."""
    world = World()
    world.loaded()
    world.commit("m", 3)
    assert world.said == [ErrorCode.ILLEGAL_GENERATION]


def test_offsets_of_a_group_with_members_are_read_once() -> None:
    """The offsets of a group with members are read from ZooKeeper once, and the group's commits
    update them in memory. After the last member has left, the offsets are read again, because other
    programs may then change them."""
    world = World()
    member = world.stable()
    world.groups.offsets.fetch("g", world.said.append)
    world.jobs.reads.pop()({LOGS: Committed(1)})
    world.commit(member, 1)
    world.jobs.commits.pop()[1](None)
    world.groups.offsets.fetch("g", world.said.append)
    assert world.said == [{LOGS: Committed(1)}, ErrorCode.NONE, {LOGS: Committed(5)}]
    world.groups.leave("g", [(member, None)], world.said.append)
    world.groups.offsets.fetch("g", world.said.append)
    assert len(world.jobs.reads) == 1


def test_a_group_without_members_is_forgotten_when_it_is_stored() -> None:
    """The coordinator removes an empty group from memory only after it has stored the group as
    empty. Until then, ZooKeeper may have a generation with members."""
    world = World()
    member = world.stable()
    world.groups.leave("g", [(member, None)], world.said.append)
    world.jobs.writes.pop()[1](AWAY)
    world.clock.advance(FORGET_AFTER_S + 1)
    world.groups.forget_idle()
    assert set(world.groups.hosted) == {"g"}
    world.jobs.writes.pop()[1](None)
    world.groups.forget_idle()
    assert not world.groups.hosted


def test_a_silent_member_is_out_by_the_timer() -> None:
    """A timer removes a member that no longer sends heartbeats. Each heartbeat postpones the
    member's deadline."""
    world = World()
    member = world.stable()
    group = world.groups.hosted["g"].group
    for _ in range(3):
        world.clock.advance(6)
        world.timers.run_due(world.clock.monotonic())
        world.groups.heartbeat("g", member, None, 1, world.said.append)
    assert world.said == [ErrorCode.NONE] * 3
    world.clock.advance(11)
    world.timers.run_due(world.clock.monotonic())
    assert group.state is GroupState.EMPTY
    assert world.groups.counts.expired_members == 1


def test_a_stop_answers_everybody() -> None:
    """When the broker stops, it answers every request, including requests that wait until a group
    is read. It refuses later requests."""
    world = World()
    world.stable()
    joining = Joining(
        session_timeout_s=10, rebalance_timeout_s=10, protocol_type="consumer",
        protocols=(Protocol("range", b""),),
    )  # fmt: skip
    world.groups.join("g", joining, world.said.append)
    world.groups.offsets.fetch("other", world.said.append)
    world.groups.close()
    world.groups.offsets.fetch("g", world.said.append)
    joined = next(each for each in world.said if isinstance(each, Joined))
    assert joined.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(world.said) == 3
    assert world.timers.seconds_left(world.clock.monotonic()) is None


def test_a_group_of_our_own_consumers_is_not_joined(caplog: pytest.LogCaptureFixture) -> None:
    """Skidway's own consumers coordinate through ZooKeeper. While they use a group, a JoinGroup
    request for this group gets INCONSISTENT_GROUP_PROTOCOL, and the broker logs this once. After
    they have left, a JoinGroup request succeeds."""
    world = World()
    world.loaded()
    world.jobs.native = 2
    for _ in range(3):
        world.join()
    refused = [each.error for each in world.said]
    assert refused == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL] * 3
    assert not len(world.groups.hosted["g"].group.roster)
    assert caplog.text.count("group_has_zookeeper_consumers") == 1
    world.said.clear()
    world.jobs.native = AWAY
    world.join()
    assert world.said.pop().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.jobs.native = 0
    world.join()
    world.timers.run_due(world.clock.monotonic())
    assert world.said.pop().error is ErrorCode.NONE


def test_a_generation_that_our_own_consumers_forestall_is_disbanded() -> None:
    """Skidway's own consumers may register for a group in ZooKeeper just after the broker has
    looked for such registrations and found none. Then no member of the broker's new generation of
    this group gets an assignment, and all members must join again."""
    world = World()
    world.loaded()
    world.join()
    world.timers.run_due(world.clock.monotonic())
    member = world.said.pop().member_id
    world.groups.sync("g", Syncing(member, None, 1, {member: b"all"}), world.said.append)
    world.jobs.writes.pop()[1](GroupInUse("taken"))
    assert world.said.pop().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.groups.hosted["g"].group.state is GroupState.EMPTY
    world.groups.heartbeat("g", member, None, 1, world.said.append)
    assert world.said.pop() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_is_of_the_topic_that_had_the_name_when_it_came() -> None:
    """A commit names a topic, and waits until its group is read. Meanwhile the topic may be deleted
    and created again. The commit belongs to the topic that had the name when the commit arrived.
    The broker also caches the committed offset for the old topic, not for the new topic of the same
    name."""
    world = World()
    world.commit()
    world.topics["logs"] = uuid.UUID(int=2)
    world.jobs.loads.pop()(None)
    offsets, done = world.jobs.commits.pop()
    assert offsets == {LOGS: TopicOffset(uuid.UUID(int=1), Committed(5))}
    done(None)
    assert world.said.pop() is ErrorCode.NONE
    world.groups.drop("g")
    member = world.stable()
    world.groups.offsets.fetch("g", world.said.append)
    world.jobs.reads.pop()({})
    world.commit(member, 1)
    world.topics["logs"] = uuid.UUID(int=3)
    world.jobs.commits.pop()[1](None)
    world.said.clear()
    world.groups.offsets.fetch("g", world.said.append)
    assert world.said == [{}]


def test_a_group_stored_without_its_members_is_stored_again() -> None:
    """A group with very many members is stored with the number of its members, but without the
    members. When the broker loads such a group, it stores the group again as empty. Otherwise the
    members would count as alive forever."""
    world = World()
    world.groups.use("g", lambda _group: None)
    world.jobs.loads.pop()(b'{"generation":3,"members":[],"omitted":2}')
    world.groups.forget_idle()
    [(content, _)] = world.jobs.writes
    assert b'"omitted":0' in content


def test_another_broker_s_groups_are_left_to_it() -> None:
    """A broker that does not coordinate the groups reads no group, and answers NOT_COORDINATOR. If
    another broker becomes the coordinator while this broker reads a group, the answer is
    NOT_COORDINATOR, too."""
    world = World()
    world.groups.offsets.fetch("g", world.said.append)
    world.controller = 2
    world.jobs.loads.pop()(None)
    world.groups.offsets.fetch("g", world.said.append)
    assert world.said == [ErrorCode.NOT_COORDINATOR] * 2
    assert not world.jobs.loads
    assert not world.groups.hosted
    assert world.groups.coordinator_of("g") == 2


def test_a_former_coordinator_sends_the_members_away() -> None:
    """If another broker becomes the coordinator, a member that waits for a generation gets
    NOT_COORDINATOR, and the former coordinator forgets the group."""
    world = World()
    world.loaded()
    world.join()
    world.groups.follow_coordinator()
    assert not world.said
    world.controller = 2
    world.groups.follow_coordinator()
    assert [x.error for x in world.said] == [ErrorCode.NOT_COORDINATOR]
    assert not world.groups.hosted
    assert not world.jobs.writes


def test_a_former_coordinator_stores_nothing() -> None:
    """When another broker becomes the coordinator, the former coordinator may still have groups in
    memory. If members of such a group send no more heartbeats, the former coordinator stores no new
    generation."""
    world = World()
    world.stable()
    world.controller = 2
    world.clock.advance(3_600)
    world.timers.run_due(world.clock.monotonic())
    world.groups.forget_idle()
    assert world.groups.hosted
    assert not world.jobs.writes


def test_a_controller_that_is_cut_off_coordinates_nothing() -> None:
    """The controller is the coordinator of all groups. While the controller cannot know whether
    another broker has taken its place, it refuses commits and the requests of members. It also does
    not tell clients which broker is the coordinator. The groups stay in memory, because the broker
    may still be the controller."""
    world = World()
    member = world.stable()
    world.is_cut_off = True
    world.commit(member, 1)
    assert world.said == [ErrorCode.NOT_COORDINATOR]
    assert world.groups.coordinator_of("g") == NO_LEADER
    assert world.groups.hosted
    world.is_cut_off = False
    world.commit(member, 1)
    assert len(world.jobs.commits) == 1


def test_after_a_lost_session_groups_are_read_again() -> None:
    """When its session with ZooKeeper is lost, a broker forgets all groups, even if it is the
    controller again: another broker may have coordinated them meanwhile."""
    world = World()
    world.stable()
    world.groups.hand_over()
    assert not world.groups.hosted
    world.groups.offsets.fetch("g", world.said.append)
    assert len(world.jobs.loads) == 1


def test_groups_that_nobody_is_in_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """If many groups are in memory, the one that was used least recently gives way to another, but
    none that has members."""
    monkeypatch.setattr(hosting, "GROUPS_MAX", 4)
    world = World()
    world.come("members", "/1")
    for name in "abcadef":
        world.groups.use(name, lambda _group: None)
        for done in world.jobs.loads:
            done(None)
        world.jobs.loads.clear()
    assert set(world.groups.hosted) == {"members", "d", "e", "f"}


def test_nobody_keeps_others_out_with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that fills the memory with groups loses its oldest to groups of others: whoever waits
    there is told to look for the coordinator again. A stored group goes on with its members."""
    monkeypatch.setattr(hosting, "GROUPS_MAX", 4)
    world = World()
    world.come("good", "/2")
    for number in range(10):
        world.come(f"x{number}", "/1")
        assert len(world.groups.hosted) <= 4
    assert set(world.groups.hosted) == {"good", "x7", "x8", "x9"}
    assert [each.error for each in world.said] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 7
    world.come("also good", "/2")
    assert set(world.groups.hosted) == {"good", "also good", "x8", "x9"}


def test_a_stored_group_that_gives_way_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a group with an assignment gives way, its member's next heartbeat reads the group again,
    and the member keeps its assignment."""
    monkeypatch.setattr(hosting, "GROUPS_MAX", 1)
    world = World()
    member = world.stable()
    content = encode(world.groups.hosted["g"].group.record())
    world.come("other", "/1")
    assert set(world.groups.hosted) == {"other"}
    world.groups.heartbeat("g", member, None, 1, world.said.append)
    world.said.clear()
    world.jobs.loads.pop()(content)
    assert world.said == [ErrorCode.NONE]


def test_members_have_a_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the members of all groups need too much memory, a group of the host with the most gives
    way."""
    monkeypatch.setattr(hosting, "GROUPS_BYTES_MAX", 1000)
    world = World()
    world.come("good", "/2")
    for number in range(100):
        world.come(f"x{number}", "/1")
    kept = set(world.groups.hosted)
    assert "good" in kept
    assert 1 < len(kept) < 30
    sizes = [each.group.roster.size_bytes for each in world.groups.hosted.values()]
    assert sum(sizes) <= 1000


def test_a_group_that_passes_to_another_host_gives_way_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the first member of a group leaves it to a member of another host, the group counts for
    that host, and can give way there."""
    monkeypatch.setattr(hosting, "GROUPS_MAX", 2)
    world = World()
    first = world.stable()
    world.join(host="/2")
    world.groups.leave("g", [(first, None)], lambda _codes: None)
    for number in range(10):
        world.come(f"x{number}", "/2")
    assert set(world.groups.hosted) == {"x8", "x9"}
