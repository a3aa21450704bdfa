"""The broker's real state machine of consumer groups runs under random schedules of requests,
delays, failing writes to ZooKeeper, and crashes.

Members join, sync, heartbeat, commit, leave, die, come back with the same instance id, or change
their subscription. Answers are lost. A write to ZooKeeper is slow, fails although ZooKeeper has
stored it, or fails because consumers that coordinate through ZooKeeper use the group. The broker
crashes and restarts with the stored state.

Whatever happens, a generation has one leader, and only the leader gets the list of members. A
generation has only one assignment even if the broker crashes, and no member gets an assignment that
is not yet stored in ZooKeeper. The broker accepts commits only from members of the current
generation, so that an older generation's commit never follows a newer generation's commit. Every
request is answered once, and no request waits forever. When the faults have ended, all living
members get into one generation, and each of them has its own assignment of this generation.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import pytest

from skidway.broker.groups.group import Group, GroupState
from skidway.broker.groups.limits import GroupLimits
from skidway.broker.groups.member import Joining, Protocol, Syncing
from skidway.broker.groups.outcomes import Answer, Joined, Store, Synced
from skidway.broker.groups.record import decode, encode
from skidway.kafka.errors import ErrorCode

SEEDS = 300
STEPS = 250
PROTOCOLS = (("range",), ("roundrobin", "range"), ("range", "sticky"), ("sticky", "range"))
LIMITS = GroupLimits(
    session_timeout_min_s=1, session_timeout_max_s=60, initial_rebalance_delay_s=2, members_max=6
)


@dataclass
class Client:
    """One client of the group, and what the client knows about its own membership. `waits` is the
    client's request that the broker has not answered yet."""

    name: str
    instance_id: str | None
    protocols: tuple[str, ...]
    old: bool
    """Whether the client's version of JoinGroup is so old that the broker must not answer it with
    the error MEMBER_ID_REQUIRED."""
    member_id: str = ""
    generation: int = -1
    leads: tuple[str, ...] = ()
    synced: bool = False
    waits: object | None = None
    alive: bool = True
    fenced: bool = False
    assignment: bytes = b""


@dataclass
class Request:
    """A request that a client has sent. If `lost` is true, the client will not receive the
    answer."""

    client: Client
    kind: str
    generation: int = -1
    lost: bool = False
    answers: int = 0
    born: float = 0.0


@dataclass
class World:
    seed: int
    now: float = 100.0
    stored: bytes | None = None
    pending: list[tuple[int, bytes]] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    open: list[Request] = field(default_factory=list)
    assigned: dict[int, dict[str, bytes]] = field(default_factory=dict)
    leaders: dict[int, str] = field(default_factory=dict)
    newest_commit: int = 0
    faults: bool = True

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.ids = itertools.count(1)
        self.group = self.begin()

    def begin(self) -> Group:
        group = Group("g", LIMITS, lambda words: f"{words}-{next(self.ids)}")
        # From now on, a new generation may get the number of an earlier generation that was not
        # stored.
        self.leaders.clear()
        if self.stored is not None:
            group.restore(self.now, decode("g", self.stored))
        return group

    # The events of a run.

    def step(self) -> None:
        actions = [(30, self.act), (10, self.pass_time), (12, self.store)]
        if self.faults:
            actions += [
                (4, self.arrive), (2, self.die), (2, self.leave), (2, self.lose), (2, self.zombie),
                (2, self.store_fails), (1, self.crash), (2, self.change),
            ]  # fmt: skip
        weights = [weight for weight, _ in actions]
        self.random.choices([action for _, action in actions], weights)[0]()
        self.settle()

    def living(self) -> list[Client]:
        return [each for each in self.clients if each.alive and not each.fenced]

    def arrive(self) -> None:
        if len(self.living()) >= 5:
            return
        name = f"c{len(self.clients)}"
        instance = self.random.choice([None, None, "s1", "s2"])
        protocols = self.random.choice(PROTOCOLS)
        self.clients.append(Client(name, instance, protocols, self.random.random() < 0.2))

    def die(self) -> None:
        if self.living():
            self.random.choice(self.living()).alive = False

    def change(self) -> None:
        if self.living():
            client = self.random.choice(self.living())
            client.protocols = self.random.choice(PROTOCOLS)
            client.synced = False if client.waits is None else client.synced

    def lose(self) -> None:
        """Breaks the connection of a request that the broker has not answered yet. The client does
        not receive the answer, and will repeat the request."""
        waiting = [each for each in self.open if not each.lost]
        if waiting:
            request = self.random.choice(waiting)
            request.lost = True
            request.client.waits = None

    def leave(self) -> None:
        able = [each for each in self.living() if each.member_id and each.waits is None]
        if able:
            client = self.random.choice(able)
            self.group.leave(self.now, client.member_id, client.instance_id)
            client.alive = False

    def zombie(self) -> None:
        """Lets a client that has died or left the group commit with its old member id and
        generation."""
        gone = [each for each in self.clients if not each.alive and each.member_id]
        if gone:
            self.commit(self.random.choice(gone))

    def pass_time(self) -> None:
        deadline = self.group.deadline()
        step = self.random.choice([0.1, 0.5, 1.0, 3.0])
        if deadline is not None and self.random.random() < 0.5:
            step = max(0.0, deadline - self.now)
        # Living clients send their heartbeats in time, even if a long time passes.
        for _ in range(max(1, round(step / 2))):
            self.now += min(step, 2.0)
            for client in self.living():
                if client.synced:
                    self.heartbeat(client)
            due = self.group.deadline()
            if due is not None and due <= self.now:
                self.group.tick(self.now)
            self.settle()

    def store(self) -> None:
        if self.pending:
            number, content = self.pending.pop(0)
            self.stored = content
            self.group.stored(self.now, number, None)

    def store_fails(self) -> None:
        """Lets a write to ZooKeeper fail. There are three cases: the write fails before it takes
        effect, it fails after it has taken effect, or it is refused because consumers that
        coordinate through ZooKeeper now use the group."""
        if self.pending:
            number, content = self.pending.pop(0)
            is_free = self.stored is None or not decode("g", self.stored).members
            if is_free and decode("g", content).members and self.random.random() < 0.5:
                self.group.stored(self.now, number, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
                return
            if self.random.random() < 0.5:
                self.stored = content
            self.group.stored(self.now, number, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def crash(self) -> None:
        """Crashes the broker. An unfinished write may or may not be stored, and all connections
        break."""
        if self.pending and self.random.random() < 0.5:
            self.stored = self.pending[0][1]
        self.pending.clear()
        for request in self.open:
            request.client.waits = None
        self.open.clear()
        self.group = self.begin()

    # What clients do.

    def act(self) -> None:
        able = [each for each in self.living() if each.waits is None]
        if not able:
            return
        client = self.random.choice(able)
        if client.synced:
            self.random.choice([self.heartbeat, self.commit])(client)
        elif client.generation >= 0:
            self.sync(client)
        else:
            self.join(client)

    def ask(self, client: Client, kind: str) -> Request:
        request = Request(client, kind, client.generation, born=self.now)
        client.waits = request
        self.open.append(request)
        return request

    def join(self, client: Client) -> None:
        joining = Joining(
            member_id=client.member_id,
            instance_id=client.instance_id,
            client_id=client.name,
            session_timeout_s=6,
            rebalance_timeout_s=10,
            protocol_type="consumer",
            protocols=tuple(Protocol(name, client.name.encode()) for name in client.protocols),
            known_id_needed=not client.old,
        )
        self.group.join(self.now, joining, self.ask(client, "join"))

    def sync(self, client: Client) -> None:
        made = {each: f"{client.generation}:{each}".encode() for each in client.leads}
        request = self.ask(client, "sync")
        syncing = Syncing(client.member_id, client.instance_id, client.generation, made)
        self.group.sync(self.now, syncing, request)

    def heartbeat(self, client: Client) -> None:
        self.obey(
            client,
            self.group.heartbeat(self.now, client.member_id, client.instance_id, client.generation),
        )

    def commit(self, client: Client) -> None:
        """Lets a client commit an offset. If the broker accepts the commit, asserts that the client
        is a member of the current generation, and that the broker has accepted no commit of a newer
        generation before."""
        error = self.group.commit_refusal(
            self.now, client.member_id, client.instance_id, client.generation
        )
        if error is None and client.generation >= 0:
            assert client.generation == self.group.generation
            assert client.member_id in self.group.roster.members
            assert client.generation >= self.newest_commit
            self.newest_commit = client.generation
        elif error is not None and client.alive:
            self.obey(client, error)

    def obey(self, client: Client, code: ErrorCode) -> None:
        if code is ErrorCode.FENCED_INSTANCE_ID:
            client.fenced = True
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            client.member_id = ""
        if code not in (ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            client.generation, client.synced, client.leads = -1, False, ()

    # The broker's answers.

    def settle(self) -> None:
        while self.group.outputs:
            outputs, self.group.outputs = self.group.outputs, []
            for output in outputs:
                if isinstance(output, Store):
                    self.pending.append((output.number, encode(self.group.record())))
                else:
                    self.hear(output)
        parked = [each.join for each in self.group.roster] + [s.sync for s in self.group.roster]
        held = [token for token, _ in self.group._held.values()]
        waiting = {id(each) for each in [*parked, *held] if each is not None}
        assert waiting == {id(each) for each in self.open}
        assert len(self.group.roster) <= LIMITS.members_max

    def hear(self, answer: Answer) -> None:
        request = answer.token
        assert isinstance(request, Request)
        assert request.answers == 0
        request.answers += 1
        if request not in self.open:
            return  # a crash of the broker has ended the request's connection
        self.open.remove(request)
        client, content = request.client, answer.content
        if isinstance(content, Joined):
            self.check_joined(content)
        else:
            self.check_synced(request, content)
        if request.lost or client.waits is not request:
            return
        client.waits = None
        if content.error is ErrorCode.MEMBER_ID_REQUIRED and isinstance(content, Joined):
            client.member_id = content.member_id
        elif content.error is not ErrorCode.NONE:
            self.obey(client, content.error)
        elif isinstance(content, Joined):
            client.member_id, client.generation = content.member_id, content.generation
            client.leads = tuple(each.member_id for each in content.members)
        else:
            client.assignment, client.synced = content.assignment, True

    def check_joined(self, joined: Joined) -> None:
        if joined.error is not ErrorCode.NONE:
            return
        assert bool(joined.members) == (joined.leader == joined.member_id)
        assert joined.protocol in {"range", "roundrobin", "sticky"}
        instance, _, _ = joined.leader.partition("-")
        # a static member that joins again gets a new member id and goes on leading (KIP-345)
        leader = instance if instance in ("s1", "s2") else joined.leader
        assert self.leaders.setdefault(joined.generation, leader) == leader

    def check_synced(self, request: Request, synced: Synced) -> None:
        if synced.error is not ErrorCode.NONE:
            return
        assert self.stored is not None
        record = decode("g", self.stored)
        assert record.generation >= request.generation
        told = self.assigned.setdefault(request.generation, {})
        name = request.client.instance_id or request.client.member_id
        assert told.setdefault(name, synced.assignment) == synced.assignment

    def waits_too_long(self) -> bool:
        return any(self.now - each.born > 120 for each in self.open)


@pytest.mark.parametrize("seed", range(SEEDS), indirect=True)
def test_random_schedules(seed: int) -> None:
    """Under any schedule, every request is answered once, no member gets two assignments in one
    generation, and only members of the current generation may commit. When the faults have ended,
    all living members get into one generation, and each of them has the assignment that the leader
    of this generation made for it."""
    world = World(seed)
    for _ in range(STEPS):
        world.step()
        assert not world.waits_too_long()
    # From here on there are no faults, so all living members must get into one generation with an
    # assignment.
    world.faults = False
    for client in world.clients:
        client.alive = client.alive and not client.fenced
    for _ in range(3000):
        world.step()
        living = world.living()
        ids = {each.member_id for each in living}
        if (
            living
            and world.group.state is GroupState.STABLE
            and all(each.synced and each.generation == world.group.generation for each in living)
            and set(world.group.roster.members) == ids
        ):
            break
        if not living and world.group.state is GroupState.EMPTY:
            break
    else:
        raise AssertionError(f"{world.group.state} {world.living()} {world.group.roster.members}")
    for client in world.living():
        generation, _, member_id = client.assignment.decode().partition(":")
        assert generation == str(client.generation)
        # a static member that joins again gets a new member id and keeps its assignment (KIP-345)
        is_static = member_id.partition("-")[0] == client.instance_id
        assert is_static or member_id == client.member_id


def test_the_schedules_reach_what_they_are_for() -> None:
    """The schedules contain many generations, crashes and commits. Without these events,
    `test_random_schedules` would check little."""
    generations, crashes, commits = 0, 0, 0
    for seed in range(20):
        world = World(seed)
        for _ in range(STEPS):
            before = world.group
            world.step()
            crashes += world.group is not before
        generations += len(world.assigned)
        commits += world.newest_commit > 0
    assert generations > 20
    assert crashes > 10
    assert commits > 5
