"""`skidway agent replay` replays (sends again) all given repaired lines or none of them, and each
rejected line only once."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.commands.replaying import NotReplayed, Replayed, keys_in, replay, sentences
from skidway.agent.configuration import replay_directory, with_replays
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.replayed import read
from skidway.agent.settings import AgentSettings
from skidway.errors import ConfigurationRefused
from support.agent_world import raw, settings
from support.promises import promise


def configured(state_dir: Path) -> AgentSettings:
    number = ParserSettings(type="regex", pattern="(?P<n>[0-9]+)")
    own = settings(raw("logs", "/a", parser=number, replay=True), raw("others", "/b"))
    return with_replays(replace(own, state_dir=state_dir))


def rejected(at: int, line: str = "1", **others: Any) -> dict[str, Any]:
    place = {"host": "web1", "path": "/a", "agent": 5, "file": 7, "first": at}
    return {"topic": "logs", "reason": "no-match", "line": line, **place, **others}


def run(state_dir: Path, *documents: Any, also_unfit: bool = False) -> Replayed:
    text = "".join(json.dumps(each) + "\n" for each in documents)
    return replay(configured(state_dir), io.StringIO(text), also_unfit=also_unfit)


def lines(state_dir: Path) -> list[bytes]:
    paths = sorted(replay_directory(state_dir, "logs").glob("*.replay"))
    envelopes = [read(line) for path in paths for line in path.read_bytes().splitlines()]
    return [each.line for each in envelopes if each is not None]


@promise("2 replay")
def test_a_rejected_line_is_replayed_once(tmp_path: Path) -> None:
    """If `agent replay` is called again with the same rejected lines and some new ones, it replays
    only the new ones."""
    assert run(tmp_path, rejected(0), rejected(10, "2")) == Replayed({"logs": 2}, 0, 0)
    assert run(tmp_path, rejected(0), rejected(20, "3")) == Replayed({"logs": 1}, 1, 0)
    done = run(tmp_path, rejected(0, "9"))
    assert done == Replayed({}, 1, 0)
    assert list(sentences(done)) == [
        "1 lines were replayed before, and are left out",
        "nothing to replay",
    ]
    assert sorted(lines(tmp_path)) == [b"1", b"2", b"3"]
    assert keys_in(tmp_path, "logs") == {(5, 7, 0), (5, 7, 10), (5, 7, 20)}


@promise("2 replay")
def test_a_killed_call_has_replayed_nothing_or_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agent replay` writes a file and then gives the file the name under which the agent reads it.
    If the command is killed before the file has this name, the agent reads none of the lines. The
    next call then replays all lines."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.rename", killed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, rejected(0))
    monkeypatch.undo()
    assert lines(tmp_path) == []
    assert run(tmp_path, rejected(0)) == Replayed({"logs": 1}, 0, 0)


def test_lines_that_do_not_fit_are_told_before_they_are_sent(tmp_path: Path) -> None:
    """If the source would reject one of the repaired lines again, the error names this line, and no
    line is replayed. With `--also-unfit`, all lines are replayed."""
    with pytest.raises(NotReplayed, match=r"(?s)1 lines would be rejected again.*/a: no-match"):
        run(tmp_path, rejected(0), rejected(10, "x"))
    assert lines(tmp_path) == []
    done = run(tmp_path, rejected(0), rejected(10, "x"), also_unfit=True)
    assert done == Replayed({"logs": 2}, 0, 1)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"topic": "logs"}, "line 2 is not what skidway rejected export writes"),
        (rejected(0, "2"), "lines 1 and 2 replay the same rejected line"),
        (rejected(10, is_cut=True), "line 2 does not have the whole rejected line"),
        (rejected(10, "1" * 700_000), "line 2 is too long to be replayed"),
    ],
)
def test_lines_that_cannot_be_replayed_are_named(
    tmp_path: Path, document: dict[str, Any], sentence: str
) -> None:
    """`agent replay` reads lines that `rejected export` has written: each is a JSON object with the
    repaired text of one rejected line. It refuses the input if one of the input's lines is not such
    an object, has only a part of the rejected line, or is too long. It also refuses an input that
    contains the same rejected line twice. The error gives the numbers of the input lines."""
    with pytest.raises(NotReplayed, match=sentence):
        run(tmp_path, rejected(0), document)
    assert lines(tmp_path) == []


def test_a_topic_without_replay_is_refused(tmp_path: Path) -> None:
    """A replay is refused if no source of the topic has the setting `replay: true`. Only with this
    setting does the topic's schema have fields for the origin of the rejected line."""
    with pytest.raises(ConfigurationRefused, match="no source of topic others has replay: true"):
        run(tmp_path, {**rejected(0), "topic": "others"})
