"""The command and the running agent find each other through files."""

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
    """Two commands at once both get the answer, and leave no file behind."""
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
    """If the agent cannot write its answer, the command ends with status 1 and says where the
    answer is."""

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
    """A starting agent deletes old answers. It answers the requests that wait, also those that a
    killed agent had begun to work on."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name in ("a.answer", "b.taken", "c.request", "d.unsaid"):
        (folder / name).touch()
    requests = Requests(tmp_path)
    requests.open()
    assert requests.take() == ["b", "c"]
    assert sorted(each.name for each in folder.iterdir()) == ["b.taken", "c.taken"]


def test_a_state_without_agent_is_named(tmp_path: Path) -> None:
    """If no agent ever ran with the state, or it was stopped, the command says so at once."""
    with pytest.raises(SkidwayError, match="no agent ever ran with"), Asking(tmp_path):
        pass
    with DirectoryLock(tmp_path):
        assert not is_stopped(tmp_path)
    assert is_stopped(tmp_path)


def test_an_agent_that_takes_no_request_is_not_waited_for(tmp_path: Path) -> None:
    """A killed agent leaves its lock file as it was. The command ends when its time is over, and
    takes its request back."""
    Requests(tmp_path).open()
    configured = replace(settings(raw()), state_dir=tmp_path)
    with pytest.raises(Unreachable, match="took the request"):
        reload(configured, 0.0)
    assert os.listdir(tmp_path / FOLDER) == []
