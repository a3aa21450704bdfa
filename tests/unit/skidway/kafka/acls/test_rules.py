"""Tests what rules allow to a client, beside a model that looks at one rule after the other.
Conformance tests ask Kafka the same questions."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import product
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.kafka.acls import rules as rules_module
from skidway.kafka.acls.acl import (
    ANY_NAME,
    ANY_USER,
    SUPPORTED_OPERATIONS,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.rules import EVERYTHING, Reason, Rules
from support.acls import ADDRESSES, CLIENTS, OPERATIONS, TYPES, Case, Draws, Question

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ME, HERE = "User:me", "10.0.0.1"
IMPLIED = {
    **dict.fromkeys([READ, WRITE, Operation.DELETE, Operation.ALTER], DESCRIBE),
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}


def rule(
    permission: Permission = ALLOW,
    operation: Operation = READ,
    name: str = "logs",
    pattern: PatternType = LITERAL,
    principal: str = ME,
    host: str = ANY_NAME,
    type: ResourceType = TOPIC,
) -> Acl:
    return Acl(ResourcePattern(type, name, pattern), principal, host, operation, permission)


def is_at(acl: Acl, host: str) -> bool:
    address = ip_address(host)
    address = getattr(address, "ipv4_mapped", None) or address
    if "/" in acl.host:
        try:
            return address in ip_network(acl.host, strict=False)
        except ValueError:
            return False
    exploded = str(address) if address.version == 4 else address.exploded
    written = ":".join(group.lstrip("0") or "0" for group in exploded.split(":"))
    return acl.host in (ANY_NAME, exploded if address.version == 4 else written)


def applying(case: Case, principal: str, host: str) -> list[Acl]:
    """Returns the rules that apply to a client."""
    return [acl for acl in case.acls if acl.principal in (principal, ANY_USER) and is_at(acl, host)]


def is_named(acl: Acl, question: Question) -> bool:
    if acl.resource.type is not question.type:
        return False
    if acl.resource.pattern is PREFIXED:
        return question.name.startswith(acl.resource.name)
    every = not question.name.startswith("*") and acl.resource.name == ANY_NAME
    return every or acl.resource.name == question.name


def said(case: Case, question: Question) -> set[Permission]:
    """Returns what the rules say that apply to the client and are about the resource."""
    return {
        acl.permission
        for acl in applying(case, question.principal, question.host)
        if is_named(acl, question)
        and (
            acl.operation in (question.operation, Operation.ALL)
            or (acl.permission is ALLOW and IMPLIED.get(acl.operation) is question.operation)
        )
    }


def expected(case: Case, question: Question) -> tuple[bool, Reason]:
    """The model: returns whether a client may do something, and why."""
    if question.principal in case.super_users:
        return True, Reason.SUPER_USER
    if permissions := said(case, question):
        return DENY not in permissions, Reason.MATCHING_ACL
    if case.allow_everyone and not any(is_named(acl, question) for acl in case.acls):
        return True, Reason.DEFAULT_ALLOW
    return False, Reason.DEFAULT_DENY


@given(st.randoms(use_true_random=False))
@example(Random(1))
def test_decisions_are_those_of_the_model(random: Random) -> None:
    """A client may do what the rules allow that apply to it and are about the resource, unless one
    of them denies it. The reason that is given is the right one."""
    case = Draws(random).case(question_count=30)
    rules = case.rules()
    for question in case.questions:
        asked = question.operation, question.type, question.name
        view = rules.view(question.principal, question.host)
        why = view.why(*asked)
        assert (view.may(*asked), why.reason) == expected(case, question)
        assert view.may(*asked) == why.is_allowed
        assert (why.reason is Reason.MATCHING_ACL) == (why.rule is not None)
        if why.rule is not None:
            assert why.rule in applying(case, question.principal, question.host)
            assert is_named(why.rule, question)
            assert why.is_allowed == (why.rule.permission is ALLOW)


@given(st.randoms(use_true_random=False))
@example(Random(1))
def test_clients_with_the_same_rules_share_a_view(random: Random) -> None:
    """Two clients get the same view if and only if the same rules apply to them, or both are super
    users."""
    case = Draws(random).case(question_count=0)
    rules = case.rules()
    clients = [*product([*CLIENTS, ANY_USER, "User:stranger"], ADDRESSES)]
    views: dict[object, object] = {}
    for principal, host in clients:
        is_super = principal in case.super_users
        same = is_super or frozenset(applying(case, principal, host))
        assert views.setdefault(same, rules.view(principal, host)) is rules.view(principal, host)
    assert len(set(map(id, views.values()))) == len(views)


@given(st.randoms(use_true_random=False))
def test_operations_are_those_that_are_allowed_and_make_sense(random: Random) -> None:
    """The bit field of a resource has a bit for each operation that is allowed and that makes sense
    for the resource's type."""
    case = Draws(random).case(question_count=10)
    for each in case.questions:
        view = case.rules().view(each.principal, each.host)
        may = {operation for operation in OPERATIONS if view.may(operation, each.type, each.name)}
        field = sum(1 << operation for operation in may & SUPPORTED_OPERATIONS[each.type])
        assert view.operations(each.type, each.name) == field


@pytest.mark.parametrize(
    ("acls", "reads", "describes"),
    [
        ([], False, False),
        ([rule()], True, True),
        ([rule(operation=DESCRIBE)], False, True),
        ([rule(), rule(DENY)], False, True),
        ([rule(), rule(DENY, DESCRIBE)], True, False),
        ([rule(), rule(DENY, Operation.ALL)], False, False),
        ([rule(operation=Operation.ALL), rule(DENY, name=ANY_NAME)], False, True),
        ([rule(name=ANY_NAME), rule(DENY, name="lo", pattern=PREFIXED)], False, True),
        ([rule(principal=ANY_USER), rule(DENY, host="10.0.0.0/8")], False, True),
        ([rule(), rule(DENY, principal=ANY_USER, host="10.0.0.2")], True, True),
        ([rule(), rule(DENY, type=GROUP)], True, True),
    ],
)
def test_a_rule_that_denies_wins(acls: list[Acl], reads: bool, describes: bool) -> None:
    """A rule that denies an operation wins over all that allow it. To be allowed to read is to be
    allowed to describe; to be denied to read is not to be denied to describe."""
    view = Rules(acls).view(ME, HERE)
    assert view.may(READ, TOPIC, "logs") is reads
    assert view.may(DESCRIBE, TOPIC, "logs") is describes


def test_without_any_rule_the_setting_decides() -> None:
    """With allow.everyone.if.no.acl.found, everybody may do everything with a resource about which
    no rule is, and nothing else with a resource about which there is a rule of somebody else."""
    for allow_everyone in (False, True):
        view = Rules([rule(principal="User:other")], (), allow_everyone).view(ME, HERE)
        assert view.why(READ, TOPIC, "logs").reason is Reason.DEFAULT_DENY
        reason = Reason.DEFAULT_ALLOW if allow_everyone else Reason.DEFAULT_DENY
        for type, name in ((TOPIC, "log"), (GROUP, "logs")):
            assert view.why(READ, type, name).reason is reason
            assert view.may(READ, type, name) is allow_everyone


@pytest.mark.parametrize(
    ("acls", "may"),
    [
        ([], False),
        ([rule()], True),
        ([rule(), rule(DENY)], False),
        ([rule(), rule(DENY, DESCRIBE)], True),
        ([rule(), rule(DENY, name="log", pattern=PREFIXED)], False),
        ([rule(), rule(DENY, name="logs2", pattern=PREFIXED)], True),
        ([rule(), rule(DENY, name=ANY_NAME)], False),
        ([rule(name="log", pattern=PREFIXED), rule(DENY)], True),
        ([rule(name="log", pattern=PREFIXED), rule(DENY, name="log")], True),
        ([rule(name="log", pattern=PREFIXED), rule(DENY, name="lo", pattern=PREFIXED)], False),
        ([rule(name=ANY_NAME), rule(DENY)], True),
        ([rule(name=ANY_NAME), rule(DENY, name="l", pattern=PREFIXED)], True),
        ([rule(name=ANY_NAME), rule(DENY, name="hardcode")], True),
        (
            [
                rule(name=ANY_NAME),
                rule(DENY, name="hardcode"),
                rule(DENY, name="*", pattern=PREFIXED),
            ],
            True,
        ),
        ([rule(operation=Operation.ALL)], True),
        ([rule(operation=WRITE)], False),
        ([rule(type=GROUP)], False),
    ],
)
def test_one_resource_that_is_allowed_is_enough(acls: list[Acl], may: bool) -> None:
    """A client may do something with any resource if a name or a prefix is allowed to it, and not
    denied by the same name, a prefix of it, or for all names."""
    assert Rules(acls).view(ME, HERE).may_any(READ, TOPIC) is may


def test_a_resource_without_rules_counts_as_any() -> None:
    """A client may do something with any resource if it may do it with a resource that no rule
    names: because of a rule for all names, or because no rule is about the resource. Only for this
    resource, an operation implies another."""
    assert Rules([rule(name=ANY_NAME)]).view(ME, HERE).may_any(DESCRIBE, TOPIC)
    assert not Rules([rule()]).view(ME, HERE).may_any(DESCRIBE, TOPIC)
    assert Rules([rule(DENY)], (), True).view(ME, HERE).may_any(READ, TOPIC)
    assert not Rules([rule(DENY)]).view(ME, HERE).may_any(READ, TOPIC)


def test_super_users_may_do_everything() -> None:
    """A super user may do everything, even what rules deny. Other users may not."""
    rules = Rules([rule(DENY, Operation.ALL, principal=ANY_USER)], [ME])
    assert rules.view(ME, HERE) is EVERYTHING
    for type, operation in product(TYPES, OPERATIONS):
        assert EVERYTHING.may(operation, type, "logs")
        assert EVERYTHING.may_any(operation, type)
        assert EVERYTHING.why(operation, type, "logs").reason is Reason.SUPER_USER
        assert EVERYTHING.operations(type, "logs") >> operation & 1 == (
            operation in SUPPORTED_OPERATIONS[type]
        )
    assert not rules.view("User:other", HERE).may(READ, TOPIC, "logs")


def test_what_is_kept_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clients ask for however many and however long names, only so many views and
    decisions are kept; and a client whose view is in use gets no second one."""
    monkeypatch.setattr(rules_module, "CLIENTS_MAX", 10)
    monkeypatch.setattr(rules_module, "DECISIONS_MAX", 100)
    users = [f"User:{each}" for each in range(5)]
    rules = Rules(rule(principal=each) for each in users)
    views = [rules.view(each, HERE) for each in users]
    for host in range(60):
        assert [rules.view(each, f"10.0.0.{host}") for each in users] == views
        assert len(rules._clients) <= 10
    for number, view in product(range(60), views):
        assert view.may(READ, TOPIC, "logs")
        assert not view.may(READ, TOPIC, f"logs{number}")
        assert not view.may(READ, GROUP, f"{number}" * 1000)
        kept = [name for each in views for of in each._operations.values() for name in of]
        assert 0 < len(kept) <= 100
        assert max(map(len, kept)) < 10


def test_rules_are_kept_as_they_are_given() -> None:
    """A snapshot has the rules from which it was made."""
    acls = [rule(), rule(DENY), rule(name="other")]
    assert Rules(iter(acls)).acls == tuple(acls)
