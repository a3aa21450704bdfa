"""Draws rules of access control and questions about them, from so few names, prefixes, principals
and hosts that many rules are about the same resource and the same client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from skidway.kafka.acls.acl import (
    ANY_NAME,
    ANY_USER,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.filters import AclFilter
from skidway.kafka.acls.rules import Rules, View

T = TypeVar("T")

TYPES = [each for each in ResourceType if each is not ResourceType.ANY]
OPERATIONS = [each for each in Operation if each is not Operation.ANY]
PATTERNS = [PatternType.LITERAL, PatternType.PREFIXED]
PERMISSIONS = [Permission.ALLOW, Permission.ALLOW, Permission.DENY]
NAMES = [
    "a", "ab", "abc", "abcd", "b", "ba", "\u00e4", "\u00e4\U0001f600", ANY_NAME, "*a", "**",
    "hard", "hardcode", "hardcoded", "kafka-cluster",
]  # fmt: skip
"""Kafka treats `hardcode` and names that begin with `*` in a special way."""
CLIENTS = ["User:a", "User:b", "User:b:c", "Group:a", "User:root"]
SUPER_USER = "User:root"
PRINCIPALS = [ANY_USER, ANY_USER, *CLIENTS]
ADDRESSES = [
    "10.0.0.1", "10.0.0.200", "10.0.1.1", "2001:db8::1", "2001:db8:0:1::1", "::ffff:10.0.0.1",
    "::1",
]  # fmt: skip
HOSTS = [
    ANY_NAME, ANY_NAME, ANY_NAME, "10.0.0.1", "10.0.0.200", "10.0.0.0/24", "10.0.0.77/25",
    "10.0.0.1/32", "0.0.0.0/0", "10.0.0.0/33", "2001:db8:0:0:0:0:0:1", "2001:db8::1",
    "2001:db8::/48", "::/0", "::1/128", "::ffff:10.0.0.1/128", "10.0.0.1/", "example.org",
]  # fmt: skip


@dataclass(frozen=True)
class Question:
    """May a client do something? principal, host: of the client."""

    principal: str
    host: str
    operation: Operation
    type: ResourceType
    name: str


@dataclass(frozen=True)
class Case:
    """Rules, the settings beside them, and questions."""

    acls: tuple[Acl, ...]
    super_users: tuple[str, ...]
    allow_everyone: bool
    questions: tuple[Question, ...]

    def rules(self) -> Rules:
        return Rules(self.acls, self.super_users, self.allow_everyone)


class Draws:
    """Draws with the types, operations and names of one case, which are even fewer."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._types = random.sample(TYPES, random.randint(1, 3))
        self._operations = random.sample(OPERATIONS, random.randint(1, len(OPERATIONS)))
        self._names = random.sample(NAMES, random.randint(2, len(NAMES)))

    def case(self, question_count: int) -> Case:
        return Case(
            self.acls(self._random.randint(0, 20)),
            self._random.choice([(), (SUPER_USER,), ("User:other", SUPER_USER)]),
            self._random.random() < 0.5,
            tuple(self.question() for _ in range(question_count)),
        )

    def acls(self, count: int) -> tuple[Acl, ...]:
        """Returns at most `count` rules, all different."""
        return tuple({self.acl(): None for _ in range(count)})

    def acl(self) -> Acl:
        choice = self._random.choice
        return Acl(
            ResourcePattern(choice(self._types), choice(self._names), choice(PATTERNS)),
            choice(PRINCIPALS),
            choice(HOSTS),
            choice([*self._operations, Operation.ALL]),
            choice(PERMISSIONS),
        )

    def question(self) -> Question:
        choice = self._random.choice
        return Question(
            choice(CLIENTS),
            choice(ADDRESSES),
            choice(self._operations),
            choice(self._types),
            choice([*self._names, choice(NAMES), ""]),
        )

    def filter(self) -> AclFilter:
        return AclFilter(
            self._any_or(self._types, ResourceType.ANY),
            self._any_or(self._names, None),
            self._random.choice(list(PatternType)),
            self._any_or(PRINCIPALS, None),
            self._any_or(HOSTS, None),
            self._any_or(self._operations, Operation.ANY),
            self._any_or(PERMISSIONS, Permission.ANY),
        )

    def _any_or(self, values: Sequence[T], any_value: T) -> T:
        return any_value if self._random.random() < 0.6 else self._random.choice(values)


def answers(view: View, question: Question) -> tuple[bool, bool]:
    """Returns `may` and `may_any`."""
    asked = question.operation, question.type
    return view.may(*asked, question.name), view.may_any(*asked)
