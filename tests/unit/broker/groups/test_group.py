from __future__ import annotations

from typing import Any

import pytest

from skidway.broker.groups import roster
from skidway.broker.groups.group import Group, GroupState
from skidway.broker.groups.limits import GIVEN_S, MEMBER_BYTES_MAX, GroupLimits
from skidway.broker.groups.member import Joining, Protocol, Syncing
from skidway.broker.groups.outcomes import Answer, Joined, Store, Synced
from skidway.broker.groups.record import decode, encode
from skidway.kafka.errors import ErrorCode


class World:
    """A consumer group, and the answers that the group has given to its members."""

    def __init__(self, **limits: Any) -> None:
        self.limits = GroupLimits(**{"initial_rebalance_delay_s": 0.0, **limits})
        self.ids = 0
        self.now = 0.0
        self.group = self.new()
        self.stores: list[int] = []

    def new(self) -> Group:
        return Group("g", self.limits, self.new_id)

    def new_id(self, words: str) -> str:
        self.ids += 1
        return f"{words}-{self.ids}"

    def said(self) -> dict[object, Joined | Synced]:
        outputs, self.group.outputs = self.group.outputs, []
        self.stores += [each.number for each in outputs if isinstance(each, Store)]
        return {each.token: each.content for each in outputs if isinstance(each, Answer)}

    def join(self, token: str, member_id: str = "", **more: Any) -> dict[object, Joined | Synced]:
        settings: dict[str, Any] = {
            "client_id": "c", "session_timeout_s": 10, "rebalance_timeout_s": 60,
            "protocol_type": "consumer", "protocols": (Protocol("range", b"t"),), **more,
        }  # fmt: skip
        self.group.join(self.now, Joining(member_id=member_id, **settings), token)
        return self.said()

    def joined(self, token: str, member_id: str = "", **more: Any) -> Joined:
        """Sends a JoinGroup request and returns its answer. `token` is the test's name for this
        request. If the group does not answer at once, the method lets the group check its
        deadlines, so that a rebalance that is due can end."""
        said = self.join(token, member_id, **more)
        if token not in said:
            self.group.tick(self.now)
            said = self.said()
        found = said[token]
        assert isinstance(found, Joined)
        return found

    def sync(
        self, member_id: str, generation: int, *, instance: str | None = None, **made: bytes
    ) -> None:
        syncing = Syncing(member_id, instance, generation, made)
        self.group.sync(self.now, syncing, f"sync-{member_id}")

    def stored(self, error: ErrorCode | None = None) -> dict[object, Joined | Synced]:
        said = self.said()
        for number in self.stores:
            self.group.stored(self.now, number, error)
        self.stores.clear()
        return said | self.said()

    def wait(self, seconds: float) -> dict[object, Joined | Synced]:
        self.now += seconds
        self.group.tick(self.now)
        return self.said()

    def stable(self) -> str:
        """Makes a group with one member that has its assignment, and returns the member's id."""
        joined = self.joined("first")
        self.sync(joined.member_id, joined.generation, **{joined.member_id: b"all"})
        self.stored()
        assert self.group.state is GroupState.STABLE
        return joined.member_id

    def heartbeat(self, member_id: str) -> ErrorCode:
        return self.group.heartbeat(self.now, member_id, None, self.group.generation)


def test_a_new_member_comes_back_with_the_id_that_it_is_given() -> None:
    """The first JoinGroup request of a new member gets the error MEMBER_ID_REQUIRED, together with
    a member id. With this id, the member may join within one session timeout (KIP-394)."""
    world = World()
    given = world.joined("a", known_id_needed=True)
    assert given.error is ErrorCode.MEMBER_ID_REQUIRED
    assert world.joined("b", given.member_id, known_id_needed=True).generation == 1
    late = world.joined("c", known_id_needed=True)
    world.wait(11)
    assert world.joined("d", late.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_group_waits_for_more_members() -> None:
    """A new group waits for more members for the time group.initial.rebalance.delay.ms. Each new
    member prolongs the wait, up to the rebalance timeout."""
    world = World(initial_rebalance_delay_s=3.0)
    assert world.join("a", rebalance_timeout_s=5) == {}
    world.wait(2)
    assert world.join("b", rebalance_timeout_s=5) == {}
    assert world.wait(1) == {}
    said = world.wait(2)
    assert set(said) == {"a", "b"}
    members = [len(each.members) for each in said.values() if isinstance(each, Joined)]
    assert sorted(members) == [0, 2]  # only the group's leader gets the list of members


def test_an_assignment_is_told_when_it_is_stored() -> None:
    """A member gets its assignment only after the assignment is stored. So a crash cannot undo an
    assignment that a member already has."""
    world = World()
    joined = world.joined("a")
    world.sync(joined.member_id, 1, **{joined.member_id: b"all"})
    assert world.said() == {}
    said = world.stored()[f"sync-{joined.member_id}"]
    assert isinstance(said, Synced)
    assert (said.error, said.assignment) == (ErrorCode.NONE, b"all")


def test_a_generation_that_was_never_assigned_commits_nothing() -> None:
    """Commits of a generation are refused until the generation has an assignment. They stay refused
    while the next generation is being prepared. A generation without an assignment is not stored.
    So after a crash, another generation gets the same number, and a late commit of the old
    generation would look like a commit of the new one."""
    world = World()
    member = world.stable()
    world.join("second")
    again = world.joined("first again", member)
    assert again.generation == 2
    refusal = world.group.commit_refusal
    assert refusal(world.now, member, None, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("third")
    assert world.group.state is GroupState.PREPARING
    assert refusal(world.now, member, None, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_cannot_be_stored_begins_a_new_rebalance() -> None:
    """If an assignment cannot be stored, the members get a retriable error and then join a new
    generation."""
    world = World()
    joined = world.joined("a")
    world.sync(joined.member_id, 1, **{joined.member_id: b"all"})
    said = world.stored(ErrorCode.COORDINATOR_NOT_AVAILABLE)[f"sync-{joined.member_id}"]
    assert said.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(joined.member_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.joined("again", joined.member_id).generation == 2


def test_who_does_not_join_again_in_time_is_out() -> None:
    """A rebalance waits for its members at most as long as the longest of their rebalance timeouts.
    A member that has not joined again by then is removed, even if it sends heartbeats."""
    world = World()
    slow = world.stable()
    assert world.join("new", rebalance_timeout_s=20) == {}
    for _ in range(5):
        world.wait(9)
        assert world.heartbeat(slow) is ErrorCode.REBALANCE_IN_PROGRESS
    world.wait(9)
    world.heartbeat(slow)
    said = world.wait(6)
    assert isinstance(said["new"], Joined)
    assert len(said["new"].members) == 1
    assert world.heartbeat(slow) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_waits_to_join_is_not_silent() -> None:
    """While a member's JoinGroup request waits for the next generation, the member is not removed
    for missing heartbeats, however long the wait is."""
    world = World()
    first = world.stable()
    world.join("second")
    second = world.join("again", first)["second"].member_id  # type: ignore[union-attr]
    world.sync(first, 2, **{first: b"1", second: b"2"})
    world.sync(second, 2)
    world.stored()
    world.join("third")
    world.join("waits", first)
    for _ in range(5):
        assert world.wait(9) == {}
        assert world.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS


def test_who_was_given_an_id_is_waited_for() -> None:
    """If a client has got a member id and has not joined with this id yet, a rebalance waits for
    the client. Otherwise the client would join just after the rebalance, and at once cause the next
    one."""
    world = World()
    member = world.stable()
    given = world.joined("new", known_id_needed=True)
    assert world.join("other") == {}
    assert world.join("again", member) == {}
    assert set(world.join("new", given.member_id)) == {"other", "again", "new"}


def test_the_timer_is_set_for_whatever_ends_first() -> None:
    """The group's timer is set to the earliest deadline. A member id that no client has used yet
    has a deadline. A generation in which some members have not sent SyncGroup has a deadline as
    well."""
    world = World()
    given = world.joined("a", known_id_needed=True, session_timeout_s=7)
    assert world.group.deadline() == GIVEN_S
    world.joined("a", given.member_id, session_timeout_s=30, rebalance_timeout_s=15)
    assert world.group.deadline() == 15


def test_who_joins_and_never_syncs_is_out() -> None:
    """A member that joins but never sends SyncGroup is removed after its rebalance timeout, even if
    it sends heartbeats."""
    world = World()
    leader = world.joined("a", rebalance_timeout_s=15).member_id
    for _ in range(2):
        world.wait(7)
        assert world.heartbeat(leader) is ErrorCode.NONE
    world.wait(2)
    assert world.heartbeat(leader) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group.state is GroupState.EMPTY


def test_a_silent_member_is_out_after_its_session_timeout() -> None:
    """A member that sends no heartbeats is removed when its session timeout is over, and not
    before."""
    world = World()
    member = world.stable()
    world.wait(9)
    assert world.heartbeat(member) is ErrorCode.NONE
    world.wait(9.5)
    assert world.heartbeat(member) is ErrorCode.NONE
    world.wait(10)
    assert world.heartbeat(member) is ErrorCode.UNKNOWN_MEMBER_ID


def test_zombies_are_refused() -> None:
    """A commit of an unknown member gets UNKNOWN_MEMBER_ID. A commit of an old generation gets
    ILLEGAL_GENERATION."""
    world = World()
    member = world.stable()
    refusal = world.group.commit_refusal
    assert refusal(world.now, member, None, 1) is None
    assert refusal(world.now, member, None, 0) is ErrorCode.ILLEGAL_GENERATION
    assert refusal(world.now, "gone", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(world.now, "", None, -1) is ErrorCode.UNKNOWN_MEMBER_ID
    world.group.leave(world.now, member, None)
    assert refusal(world.now, member, None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(world.now, "", None, -1) is None


def test_commits_around_a_rebalance() -> None:
    """While a rebalance waits for members, commits of the old generation are accepted. After the
    next generation has begun, they are refused."""
    world = World()
    member = world.stable()
    world.join("new", "", rebalance_timeout_s=60)
    assert world.group.commit_refusal(world.now, member, None, 1) is None
    world.join("again", member)
    assert world.group.state is GroupState.COMPLETING
    old = world.group.commit_refusal(world.now, member, None, 1)
    assert old is ErrorCode.ILLEGAL_GENERATION
    refused = world.group.commit_refusal(world.now, member, None, 2)
    assert refused is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_comes_back_into_its_place() -> None:
    """A static member that returns keeps its generation and its assignment. Its request to join is
    answered when its new member id is stored. Its old member id is fenced (KIP-345)."""
    world = World()
    old = world.joined("a", instance_id="i").member_id
    world.sync(old, 1, instance="i", **{old: b"mine"})
    world.stored()
    assert world.join("b", instance_id="i") == {}  # there is no answer before the change is stored
    said = world.stored()["b"]
    assert isinstance(said, Joined)
    assert (said.generation, said.members, said.leader) == (1, (), old)
    assert world.group.heartbeat(world.now, old, "i", 1) is ErrorCode.FENCED_INSTANCE_ID
    world.sync(said.member_id, 1, instance="i")
    synced = world.said()[f"sync-{said.member_id}"]
    assert isinstance(synced, Synced)
    assert synced.assignment == b"mine"


def test_a_static_member_away_keeps_its_place_in_a_rebalance() -> None:
    """A static member that is disconnected keeps its place in the group during a rebalance, until
    its session times out."""
    world = World()
    leader = world.joined("a", instance_id="i", session_timeout_s=100).member_id
    world.sync(leader, 1, instance="i")
    world.stored()
    world.join("b")
    said = world.wait(60)["b"]
    assert isinstance(said, Joined)
    assert len(said.members) == 2
    world.sync(said.member_id, 2)
    world.stored()
    world.heartbeat(said.member_id)
    for _ in range(5):
        world.wait(9)
        world.heartbeat(said.member_id)
    assert world.group.state is GroupState.PREPARING
    assert world.group.roster.static_id("i") is None


def test_an_administrator_takes_a_static_member_out() -> None:
    """An administrator can remove a static member by its instance id, without its member id."""
    world = World()
    world.joined("a", instance_id="i")
    assert world.group.leave(world.now, "", "nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group.leave(world.now, "", "i") is ErrorCode.NONE
    assert world.group.state is GroupState.EMPTY


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"session_timeout_s": 5}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_s": 1801}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (Protocol("sticky", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"protocols": (Protocol("range", bytes(MEMBER_BYTES_MAX)),)},
            ErrorCode.INVALID_REQUEST,
        ),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_join(more: dict[str, Any], error: ErrorCode) -> None:
    """A JoinGroup request that is not allowed gets the same error code as in Kafka, and changes
    nothing for the members of the group."""
    world = World()
    world.stable()
    said = world.join("b", **more)["b"]
    assert said.error is error
    assert world.group.state is GroupState.STABLE


def test_a_full_group_takes_nobody_more() -> None:
    """A full group accepts no further member. Member ids that were given out and not used yet do
    not count towards group.max.size; who comes too late with one is refused."""
    world = World(members_max=2)
    member = world.stable()
    given = world.joined("b", known_id_needed=True)
    assert given.error is ErrorCode.MEMBER_ID_REQUIRED
    world.join("c")
    assert world.joined("b", given.member_id).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.joined("d").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_id_lives_shortly() -> None:
    """A member id that a client does not use is forgotten after ten seconds, even if the client
    said that its session lasts half an hour. The rebalance then ends without it."""
    world = World()
    given = world.joined("a", known_id_needed=True, session_timeout_s=1800)
    assert world.group.deadline() == GIVEN_S
    world.join("b", session_timeout_s=1800)
    assert "b" in world.wait(GIVEN_S)
    assert world.joined("a", given.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_keeps_others_out_with_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that asks for more member ids than a group gives loses its oldest; another host joins
    with its own."""
    monkeypatch.setattr(roster, "GIVEN_MAX", 10)
    world = World()
    first = world.joined("x", known_id_needed=True, client_host="/1").member_id
    good = world.joined("y", known_id_needed=True, client_host="/2").member_id
    for _ in range(100):
        told = world.joined("x", known_id_needed=True, client_host="/1", session_timeout_s=1800)
        assert told.error is ErrorCode.MEMBER_ID_REQUIRED
    assert len(world.group.roster.given) == 10
    assert world.joined("x", first, client_host="/1").error is ErrorCode.UNKNOWN_MEMBER_ID
    world.join("y", good, client_host="/2")
    joined = world.wait(GIVEN_S)["y"]
    assert isinstance(joined, Joined)
    assert joined.error is ErrorCode.NONE


def test_the_protocol_is_what_most_like_best_of_what_all_can() -> None:
    """A group uses the assignment protocol with the most votes. Each member votes for the first
    protocol in its list that all members support."""
    world = World(initial_rebalance_delay_s=1.0)
    lists = (("x", "range", "sticky"), ("sticky", "range"), ("sticky", "range"))
    for number, names in enumerate(lists):
        world.join(str(number), protocols=tuple(Protocol(name, b"") for name in names))
    world.wait(1)
    world.wait(60)
    assert world.group.protocol == "sticky"


def test_a_restored_group_goes_on() -> None:
    """After a restart of the broker, a restored group has its members, generation and assignments.
    A member that then sends no heartbeat for one session timeout is removed."""
    world = World()
    member = world.stable()
    content = encode(world.group.record())
    world.group = world.new()
    world.group.restore(world.now, decode("g", content))
    world.wait(9)
    assert world.heartbeat(member) is ErrorCode.NONE
    world.sync(member, 1)
    said = world.said()[f"sync-{member}"]
    assert isinstance(said, Synced)
    world.wait(11)
    assert world.group.state is GroupState.EMPTY
    assert world.group.generation == 2


def test_a_member_replaced_before_a_crash_is_not_taken_for_a_zombie() -> None:
    """A static member had just got a new id when the broker crashed, and the restored group knows
    only the old id. If a request with the new id comes first, it is not fenced, and its answer
    tells the member to join again. Requests with the new id are fenced only after a request with
    the old id has arrived."""
    world = World()
    old = world.joined("a", instance_id="i").member_id
    world.sync(old, 1, instance="i")
    world.stored()
    content = encode(world.group.record())
    world.group = world.new()
    world.group.restore(world.now, decode("g", content))
    beat = world.group.heartbeat
    assert beat(world.now, "newer", "i", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(world.now, old, "i", 1) is ErrorCode.NONE
    assert beat(world.now, "newer", "i", 1) is ErrorCode.FENCED_INSTANCE_ID


def test_everybody_is_answered_when_the_broker_stops() -> None:
    """When the broker stops, a waiting JoinGroup or SyncGroup request gets a retriable error."""
    world = World()
    member = world.stable()
    world.join("new")
    world.group.close(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert world.said()["new"].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS
    world = World()
    member = world.joined("first").member_id
    world.sync(member, 1)
    assert world.said() == {}
    world.group.close(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert world.said()[f"sync-{member}"].error is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    "long",
    [
        {"instance_id": "i" * 1001},
        {"protocol_type": "p" * 1001},
        {"protocols": (Protocol("n" * 1001, b""),)},
    ],
)
def test_names_too_long_for_an_answer_are_refused(long: dict[str, Any]) -> None:
    """The group refuses names (ids, protocols) that are too long for its answers to members. An
    answer with such a name could not be encoded, and the member's connection would be closed."""
    assert World().joined("a", **long).error is ErrorCode.INVALID_REQUEST
