"""`skidway agent reload` sends its request to the running agent as a file, and the agent answers
with a file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.agent.commands.reloading import reload
from skidway.agent.reloading.requests import FOLDER, Answer, Asking, Requests, is_stopped
from skidway.errors import SkidwayError, Unreachable
from skidway.files import DirectoryLock
from support.agent_world import raw, settings


def test_each_request_gets_its_answer(tmp_path: Path) -> None:
    """If two commands `skidway agent reload` run at the same time, each command gets an answer, and
    leaves no file behind."""
    requests = Requests(tmp_path)
    requests.open()
    with Asking(tmp_path) as one, Asking(tmp_path) as other:
        assert not one.is_taken
        taken = requests.take()
        assert len(taken) == 2
        assert one.is_taken
        assert other.is_taken
        assert requests.take() == []
        assert one.answer() is None
        requests.answer(taken, Answer(0, ["linger.ms changed"]))
        assert one.answer() == other.answer() == Answer(0, ["linger.ms changed"])
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_an_answer_for_which_the_disk_has_no_room_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is so full that the agent cannot write its answer, `skidway agent reload` ends
    with status 1. The command says that the answer is in the agent's log."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    requests = Requests(tmp_path)
    requests.open()
    with Asking(tmp_path) as asking:
        taken = requests.take()
        monkeypatch.setattr("skidway.agent.reloading.requests.write_atomically", full)
        requests.answer(taken, Answer(0, ["nothing changed"]))
        found = asking.answer()
        assert found is not None
        assert found.status == 1
        assert "its log has it" in found.sentences[0]
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_starting_agent_takes_up_what_waits(tmp_path: Path) -> None:
    """When the agent starts, it deletes old answers and accepts the waiting requests. It also
    accepts again the requests that it had accepted, but not answered, before it was killed."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name in ("a.answer", "b.taken", "c.request", "d.unsaid"):
        (folder / name).touch()
    requests = Requests(tmp_path)
    requests.open()
    assert requests.take() == ["b", "c"]
    assert sorted(each.name for each in folder.iterdir()) == ["b.taken", "c.taken"]


def test_a_state_without_agent_is_named(tmp_path: Path) -> None:
    """If no agent ever ran with the state directory, `skidway agent reload` says so at once. If the
    agent was stopped, its lock file shows this, and the command says at once that no agent runs."""
    with pytest.raises(SkidwayError, match="no agent ever ran with"), Asking(tmp_path):
        pass
    with DirectoryLock(tmp_path):
        assert not is_stopped(tmp_path)
    assert is_stopped(tmp_path)
    Requests(tmp_path).open()
    with pytest.raises(Unreachable, match="no agent runs with"):
        reload(replace(settings(raw()), state_dir=tmp_path), 0.0)


def test_an_agent_that_takes_no_request_is_not_waited_for(tmp_path: Path) -> None:
    """A killed agent leaves its lock file as it was, so `skidway agent reload` cannot see that the
    agent does not run. The command waits until its time limit, deletes its request and fails."""
    Requests(tmp_path).open()
    configured = replace(settings(raw()), state_dir=tmp_path)
    with pytest.raises(Unreachable, match="took the request"):
        reload(configured, 0.0)
    assert os.listdir(tmp_path / FOLDER) == []
