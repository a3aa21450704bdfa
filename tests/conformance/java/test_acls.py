"""Our access control decides as Apache Kafka's StandardAuthorizer does.

Each seed draws rules and 50 questions about them. AclOracle.java asks Kafka's own classes. If an
answer differs, ours is wrong. The variable SKIDWAY_ACL_SEEDS sets how many seeds are tried, for a
longer run by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from importlib import util
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skidway.kafka.acls.acl import (
    SUPPORTED_OPERATIONS,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.filters import AclFilter
from skidway.kafka.acls.hosts import as_java_writes
from skidway.kafka.acls.validation import refusal
from support import jvm, peers
from support.acls import ADDRESSES, HOSTS, NAMES, PRINCIPALS, Case, Draws, answers
from support.randomness import Seeds

pytestmark = pytest.mark.java

SEEDS = int(os.environ.get("SKIDWAY_ACL_SEEDS", "400"))
QUESTIONS = 50
FILTERS = 20
RANGES = [
    "1.2.3.4/0", "1.2.3.4/32", "1.2.3.256/8", "1.2.3/8", "01.002.3.4/08", "1.2.3.4/", "1.2.3.4/-1",
    "1.2.3.4/8/8", "::/0", "::/128", "::/129", "::/", "1::2/07", "1::2::3/8", ":::/8", "1:2/8",
    "::1.2.3.4/8", "::ffff:1.2.3.4/8", "g::/8", "::/8/8", "*/8", "a:/8",
]  # fmt: skip
SOURCE = Path(__file__).with_name("AclOracle.java")
COMPILER = ("janino", "commons-compiler")
MAIN = "org.codehaus.janino.SimpleCompiler"
OPTIONS = ("-Xmx512m", *jvm.BRIEF)
TIMEOUT_S = 1200


def test_decisions_are_kafkas(seeds: Seeds) -> None:
    """Whether a client may do something with a resource, and whether it may do it with any resource
    of a type, is what Kafka's StandardAuthorizer answers for the same rules and settings."""
    tried = seeds(range(SEEDS))
    cases = [Draws(Random(seed)).case(QUESTIONS) for seed in tried]
    found: Counter[int] = Counter()
    different = []
    for seed, case, kafkas in zip(tried, cases, ask(map(authorize, cases)), strict=True):
        rules = case.rules()
        for question, kafka in zip(case.questions, kafkas, strict=True):
            one, any_one = answers(rules.view(question.principal, question.host), question)
            found[kafka] += 1
            if one + 2 * any_one != kafka:
                different.append(f"seed {seed}: {question}: {one}, {any_one}; Kafka: {kafka}")
    print(f"seeds {tried}: {found.total()} questions, {dict(found)}")
    assert not different
    assert set(found) == set(range(4))


def test_filters_select_what_kafkas_select(seeds: Seeds) -> None:
    """A filter selects the rules that Kafka's AclBindingFilter matches."""
    tried = seeds(range(SEEDS))
    pairs = []
    for seed in tried:
        draws = Draws(Random(seed))
        pairs.append(([draws.filter() for _ in range(FILTERS)], draws.acls(FILTERS)))
    kafkas = ask(
        ["filter", [filter_row(each) for each in filters], [rule_row(each) for each in acls]]
        for filters, acls in pairs
    )
    ours = [[each.matches(acl) for each in filters for acl in acls] for filters, acls in pairs]
    different = [
        seed for seed, *both in zip(tried, ours, kafkas, strict=True) if both[0] != both[1]
    ]
    matched = sum(map(sum, ours))
    print(f"seeds {tried}: {sum(map(len, ours))} pairs, {matched} match")
    assert not different
    assert matched


def test_rules_that_kafka_creates_are_created() -> None:
    """A rule is refused if and only if Kafka refuses to create it."""
    resource = ResourcePattern(ResourceType.TOPIC, "a")
    rule = Acl(resource, "User:a", "*", Operation.READ, Permission.ALLOW)
    resources = [
        *(ResourcePattern(type, name) for type in ResourceType for name in ("", *NAMES)),
        *(replace(resource, pattern=pattern) for pattern in PatternType),
    ]
    rules = [
        *(replace(rule, resource=each) for each in resources),
        *(replace(rule, principal=each) for each in (*PRINCIPALS, "", ":", "User", "User:")),
        *(replace(rule, host=each) for each in (*HOSTS, *ADDRESSES, *RANGES, "", "/")),
        *(replace(rule, operation=each) for each in Operation),
        *(replace(rule, permission=each) for each in Permission),
    ]
    (kafkas,) = ask([["refuse", [rule_row(each) for each in rules]]])
    different = [
        (each, kafka)
        for each, kafka in zip(rules, kafkas, strict=True)
        if (refusal(each) is None) != (kafka is None)
    ]
    assert not different
    assert None in kafkas


def test_hosts_are_written_as_java_does() -> None:
    """The address of a client is compared with rules in the form that Java gives it."""
    (kafkas,) = ask([["host", ADDRESSES]])
    assert [as_java_writes(each) for each in ADDRESSES] == kafkas


def test_operations_of_a_type_are_kafkas() -> None:
    """The operations that make sense for a type are those of Kafka's AclEntry."""
    (kafkas,) = ask([["supported", [*SUPPORTED_OPERATIONS]]])
    assert [sum(1 << each for each in of) for of in SUPPORTED_OPERATIONS.values()] == kafkas


def ask(questions: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Returns the answers to the questions in the form that AclOracle.java describes. A single JVM
    answers all questions. Janino, a Java compiler among pyspark's jars, compiles and runs that
    file, so the machine needs no javac."""
    spec = util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    jars = [str(jar) for jar in folder.glob("*.jar") if jar.name.startswith(COMPILER)]
    classes = ":".join([*jars, f"{peers.jars('kafka')}/*"])
    lines = [json.dumps(each) + "\n" for each in questions]
    done = subprocess.run(
        [jvm.command(), *OPTIONS, "-cp", classes, MAIN, SOURCE, "AclOracle"],
        input="".join(lines).encode(),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def authorize(case: Case) -> list[Any]:
    """Returns a case as a question for the oracle."""
    questions = [
        [*each.principal.split(":", 1), each.host, each.operation, each.type, each.name]
        for each in case.questions
    ]
    rules = [rule_row(each) for each in case.acls]
    return ["authorize", ";".join(case.super_users), case.allow_everyone, rules, questions]


def rule_row(acl: Acl) -> list[Any]:
    of = acl.resource
    return [of.type, of.name, of.pattern, acl.principal, acl.host, acl.operation, acl.permission]


def filter_row(filter: AclFilter) -> list[Any]:
    return list(astuple(filter))
