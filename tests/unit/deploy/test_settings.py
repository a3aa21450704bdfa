"""Tests that settings in the inventory override the settings that a role computes for its
program."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils import settings


def test_given_settings_win_whichever_way_they_are_written() -> None:
    """Settings may be nested: `log: {dirs: x}` in the inventory replaces the key `log.dirs` that
    the role derived. A program would refuse a key that is set twice."""
    derived = {"log.dirs": ["/a"], "broker.id": 1}
    assert settings.over({"log": {"dirs": ["/b"]}}, derived) == {"broker.id": 1, "log.dirs": ["/b"]}


@pytest.mark.parametrize(
    ("given", "secret"),
    [
        ({"a.basic.auth.user.info": "u:p"}, True),
        ({"schema": {"registry": {"basic": {"auth": {"user": {"info": "u:p"}}}}}}, True),
        ({"mirror.sources": [{"cluster": "dc1", "sasl": {"password": "p"}}]}, True),
        ({"a": [["x", {"b": [{"client.secret": "p"}]}]]}, True),
        ({"schema.registry.url": "http://user:pw@registry:8081"}, True),
        ({"urls": ["http://registry:8081", "https://user:pw@registry"]}, True),
        ({"schema.registry.url": "http://registry:8081/a@b", "mail": "ops@example.com"}, False),
        ({"listeners": ["PLAINTEXT://0.0.0.0:9092"], "broker.id": 1, "x": None}, False),
        ({"sources": [{"topic": "a", "key": "user"}], "state.dir": "/x"}, False),
    ],
)
def test_settings_with_a_password_are_known_as_such(given: Any, secret: bool) -> None:
    """Settings that contain a secret are recognized. Only the settings with a secret are kept out
    of Ansible's output, so that an operator can read the changes (`--diff`) of all other
    settings."""
    assert settings.holds_secret(given) is secret


def test_a_directory_is_made_once() -> None:
    """If the settings that are installed on a host already name a directory, the role never creates
    this directory again, whether the keys are flat or nested. If the directory is missing, its disk
    is probably not mounted, and records must not be written to the disk below the mount point."""
    given = ["/disk1", "/disk2/skidway"]
    assert settings.not_named_by(given, {}) == given
    assert settings.not_named_by(given, {"log.dirs": ["/disk1"], "broker.id": 1}) == given[1:]
    assert settings.not_named_by(given, {"log": {"dirs": "/disk1, /disk2/skidway"}}) == []
    assert settings.not_named_by(given, {"log.dirs": "/disk1/skidway"}) == given
