"""The command `skidway agent drain` delivers all remaining lines of a host, and tells the audit
that nothing more will come. The tests check what the command requires before it connects to any
server, and what it reports at the end."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.agent.commands import draining
from skidway.agent.program import Drained
from skidway.agent.state.database import DATABASE, open_state
from skidway.errors import StateRefused
from skidway.service import Shutdown
from support.agent_world import raw, settings


def test_a_state_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draining is refused if a user other than the agent's user runs the command `drain`. The agent
    could not read the files that another user, such as root, would write into the agent's state
    directory."""
    open_state(tmp_path).close()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    configured = replace(settings(raw()), state_dir=tmp_path)
    with pytest.raises(StateRefused, match="drain as the user of the agent"):
        draining.drain(configured, Shutdown(), 1)


def drained(directory: Path) -> str:
    configured = replace(settings(raw()), state_dir=directory)
    return draining.drain(configured, Shutdown(), 1)


def test_only_a_state_that_never_was_has_nothing_to_say(tmp_path: Path) -> None:
    """If the state directory is empty, `drain` says that no agent ever ran, and succeeds. It fails
    if the directory is missing, for example because its disk is not mounted or state.dir is wrong.
    It also fails if the directory contains SQLite's write-ahead log but not the database."""
    assert "no agent ever ran" in drained(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StateRefused, match="there is no directory"):
        drained(tmp_path / "away")
    (tmp_path / f"{DATABASE}-wal").touch()
    with pytest.raises(StateRefused, match=r"agent\.db-wal is still there"):
        drained(tmp_path)


def test_a_full_disk_is_named_and_nothing_is_promised(tmp_path: Path) -> None:
    """If the disk is full, draining fails with an error that says so. It does not claim to have
    stored the last word, the message which says that all lines are delivered."""
    full = Drained(0, {"logs"}, ["topic logs: ..."], False, "cannot write the state: disk full")
    with pytest.raises(draining.NotDrained, match="disk full: make room and drain again") as found:
        draining.answer(full, open_state(tmp_path))
    assert "it is kept" not in str(found.value)


def test_what_the_brokers_have_not_taken_yet_is_said(tmp_path: Path) -> None:
    """If draining fails, and the brokers have not received all of the agent's messages to the
    audit, the error asks the operator to drain again before the host is retired. For example, the
    message that takes back an earlier last word may not have reached the brokers yet. (A last word
    says that all lines are delivered.)"""
    with pytest.raises(draining.NotDrained, match="drain again, before the host is retired"):
        draining.answer(Drained(0, {"logs"}, [], False), open_state(tmp_path))
