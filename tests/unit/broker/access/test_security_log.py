"""The security log: nobody can fill it, and nobody can hide others in it."""

from __future__ import annotations

import logging

import pytest

from skidway.broker.access.security_log import (
    DENIALS_MAX,
    NAMED_MAX,
    PRINCIPALS_MAX,
    USERS_MAX,
    SecurityLog,
)
from skidway.kafka.acls.acl import Operation, ResourceType

TOPIC = ResourceType.TOPIC


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> SecurityLog:
    caplog.set_level(logging.INFO)
    return SecurityLog(lambda: 0.0)


def deny(log: SecurityLog, principal: str, name: str, *, is_enforced: bool = True) -> None:
    log.denied(principal, "10.0.0.1", Operation.READ, TOPIC, name, is_enforced=is_enforced)


def written(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    return [x.__dict__["skidway_fields"] for x in caplog.records if x.message == event]


def test_one_client_does_not_hide_another(
    log: SecurityLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that asks for thousands of names has a limited number of lines, and the first denial
    of another client has its own. Metrics count all."""
    for number in range(5_000):
        deny(log, "User:mallory", f"junk-{number}")
    deny(log, "User:eve", "secret")
    deny(log, "User:eve", "secret")
    lines = written(caplog, "denied")
    assert len(lines) == DENIALS_MAX + 1
    assert lines[-1]["principal"] == "User:eve"
    assert {each["log"] for each in lines} == {"security"}
    assert log.denials == {"READ": 5_002}


def test_one_login_does_not_hide_another(
    log: SecurityLog, caplog: pytest.LogCaptureFixture
) -> None:
    """From one address, logins of many users that fail have a limited number of lines, and those of
    another user still have their own."""
    users = ["junk"] * 5_000 + ["ada"] + [f"junk-{number}" for number in range(5_000)]
    for user in users:
        log.login_failed("PLAIN", "10.0.0.1", "SSL", user, "wrong password")
    named = [each["user"] for each in written(caplog, "login_failed")]
    assert named[:2] == ["junk", "ada"]
    assert len(named) <= USERS_MAX


def test_what_would_be_denied_has_lines_of_its_own(
    log: SecurityLog, caplog: pytest.LogCaptureFixture
) -> None:
    """With authorizer.mode: warn the event has another name."""
    deny(log, "User:ada", "shop", is_enforced=False)
    deny(log, "User:ada", "shop")
    assert len(written(caplog, "would_deny")) == len(written(caplog, "denied")) == 1


def test_principals_need_bounded_memory(log: SecurityLog) -> None:
    """However many principals are denied something, few are remembered."""
    for number in range(PRINCIPALS_MAX + 100):
        deny(log, f"User:{number}", "shop")
    assert len(log._denied) == PRINCIPALS_MAX


def test_each_change_is_named(log: SecurityLog, caplog: pytest.LogCaptureFixture) -> None:
    """A request that changes many things is written whole, in several lines; one that changes
    nothing is not."""
    names = [f"rule {number}" for number in range(2 * NAMED_MAX + 1)]
    log.changed("User:admin", "10.0.0.1", "CREATE_ACLS", names)
    log.changed("User:admin", "10.0.0.1", "CREATE_ACLS", [])
    log.changed("User:admin", "10.0.0.1", "CREATE_ACLS", ["a"], is_sure=False)
    lines = written(caplog, "changed")
    assert [name for each in lines for name in each["names"]] == names  # type: ignore[attr-defined]
    assert len(lines) == 3
    assert len(written(caplog, "perhaps_changed")) == 1


def test_long_names_are_cut(log: SecurityLog, caplog: pytest.LogCaptureFixture) -> None:
    """What comes from the network is short in the log."""
    deny(log, "User:ada", "x" * 30_000)
    log.login_failed("PLAIN", "10.0.0.1", "SECURED", "u" * 30_000, "no")
    assert max(len(str(each.__dict__["skidway_fields"])) for each in caplog.records) < 1_000
