"""A consumer group whose members are stock Kafka clients. Tests control each member."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from support.kafka import topic_name
from support.processes import WITHIN_S
from support.stock_clients import Driver
from support.story import records

PARTITIONS = range(4)
EACH = 10


class Group:
    """The members of one consumer group. Tests poll all members together, because clients take part
    in a rebalance only while they poll."""

    def __init__(self, reference: Driver, new_member: Callable[[], Driver]) -> None:
        self.name, self.topic = topic_name("group"), topic_name("shared")
        self._reference, self._new_member = reference, new_member
        self._written = 0
        self.members: list[Driver] = []
        self.assigned: dict[Driver, list[int]] = {}
        self.read: dict[Driver, list[dict[str, Any]]] = defaultdict(list)
        reference.ask("create", topic=self.topic, partitions=len(PARTITIONS))

    def join(self) -> Driver:
        member = self._new_member()
        member.ask("join", group=self.name, topic=self.topic)
        self.members.append(member)
        return member

    def leave(self, member: Driver) -> None:
        self.members.remove(member)
        member.ask("leave")

    def write(self) -> None:
        """Writes further records to the topic with the reference client: as many as EACH says to
        every partition."""
        numbers = range(self._written, self._written + EACH)
        sent = [each for p in PARTITIONS for each in records("group", numbers, partition=p)]
        self._reference.ask(
            "produce", topic=self.topic, codec="lz4", acks=-1, idempotent=True, records=sent
        )
        self._written += EACH

    def settle(self) -> None:
        """Polls until every partition has exactly one member and every member has a partition."""
        self._poll_until(self._settled, "settled")

    def read_all(self, offsets: range) -> dict[Driver, set[int]]:
        """Polls the members until they have read a certain number of records: one for each of these
        offsets in every partition. Then asserts that they have read each of these records once, and
        in order.

        Returns the partitions that each member read.
        """
        self.read.clear()
        wanted = len(offsets) * len(PARTITIONS)
        self._poll_until(lambda: sum(map(len, self.read.values())) >= wanted, "read")
        found = [record for read in self.read.values() for record in read]
        for partition in PARTITIONS:
            of_it = [each for each in found if each["partition"] == partition]
            assert [each["offset"] for each in of_it] == list(offsets)
            assert [each["key"] for each in of_it] == [f"key-{offset}" for offset in offsets]
        return {member: {r["partition"] for r in read} for member, read in self.read.items()}

    def read_again(self, offsets: range) -> None:
        """Polls until the members have read all of these offsets of every partition at least once.
        The members may also read other records a second time."""
        self.read.clear()
        wanted = {(partition, offset) for partition in PARTITIONS for offset in offsets}
        self._poll_until(lambda: wanted <= self._places(), "read")
        for record in (each for read in self.read.values() for each in read):
            assert record["key"] == f"key-{record['offset']}"

    def _places(self) -> set[tuple[int, int]]:
        return {(r["partition"], r["offset"]) for read in self.read.values() for r in read}

    def poll(self) -> None:
        """Polls every member once."""
        for member in self.members:
            member.begin("poll", wait_ms=200)
        for member in self.members:
            polled = member.finish("poll")
            self.read[member] += polled["records"]
            self.assigned[member] = polled["assigned"]

    def commit(self) -> None:
        for member in self.members:
            if "commit" not in member.client.lacks:
                member.ask("commit")

    def committed(self) -> list[int]:
        """Returns the group's committed offset of every partition, as the reference client reads
        it."""
        found: list[int] = self._reference.ask(
            "committed", group=self.name, topic=self.topic, partitions=list(PARTITIONS)
        )["offsets"]
        return found

    def _poll_until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not done():
            assert time.monotonic() < deadline, f"not {what}: {self._state()}"
            self.poll()

    def _settled(self) -> bool:
        if self.members and "assigned" in self.members[0].client.lacks:
            assigned = self._reference.ask("members", group=self.name)["assigned"]
        else:
            assigned = [self.assigned.get(each, []) for each in self.members]
        return self._is_split(assigned)

    def _is_split(self, assigned: Sequence[list[int]]) -> bool:
        everywhere = sorted(partition for each in assigned for partition in each)
        return (
            len(assigned) == len(self.members) and all(assigned) and everywhere == list(PARTITIONS)
        )

    def _state(self) -> list[tuple[list[int], int, str]]:
        return [
            (self.assigned.get(each, []), len(self.read[each]), each.complaints())
            for each in self.members
        ]
