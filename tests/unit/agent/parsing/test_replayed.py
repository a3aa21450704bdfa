"""`skidway agent replay` writes repaired lines to a file, each in an envelope (one line of JSON).
The agent makes the same row from a repaired line as from a line of the source's logs. The row also
names the origin of the rejected line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.configuration import replay_source, with_replays
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.replayed import Envelope, read
from skidway.agent.settings import (
    AgentSettings,
    MultilineSettings,
    SourceSettings,
    TimestampSettings,
)
from skidway.agent.validation.checks import check_settings
from skidway.agent.validation.preview import preview
from skidway.errors import ConfigurationRefused
from support.agent_schedule import REJECTED_CODEC
from support.agent_world import World, pa_binary, raw, settings
from support.promises import promise

STATE = Path("/state")
NUMBER = st.integers(0, (1 << 63) - 1)
KEYS = st.tuples(NUMBER, NUMBER, NUMBER)


def envelope(line: bytes, path: str = "/log/a.log", at: int = 0) -> Envelope:
    return Envelope("logs", line, "web1", path, (5, 7, at), (5, 7, at))


def rows(source: SourceSettings, *envelopes: Envelope) -> list[dict[str, Any]]:
    data = b"".join(each.text() + b"\n" for each in envelopes)
    made = preview(replay_source(source, STATE), data, "/state/replay/logs/1.replay")
    assert not made.rejects
    return [each.row for each in made.rows]


@given(st.text(), st.binary(), st.text(), st.text(), KEYS, KEYS)
def test_an_envelope_is_read_as_it_was_written(
    topic: str, line: bytes, host: str, path: str, key: Any, original: Any
) -> None:
    """`skidway agent replay` writes each repaired record to a file as one line of JSON, the
    envelope, whatever bytes the record contains. When the agent reads the envelope, the agent gets
    the same record again."""
    written = Envelope(topic, line, host, path, key, original)
    text = written.text()
    assert b"\n" not in text
    assert read(text) == written


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b"1",
        b"\xff",
        b"[" * 100_000,
        b'{"topic": "a", "line": 1, "host": "h", "path": "p", "agent": 1, "file": 1, "first": 1}',
        b'{"topic": "a", "line": "", "host": "h", "path": "p", "agent": 1, "file": 1, "first": -1}',
        b'{"topic": "a", "line": "", "host": "h", "path": "p", "agent": 1, "file": true,'
        b' "first": 1}',
        b'{"topic": "a", "line_base64": "?", "host": "h", "path": "p", "agent": 1, "file": 1,'
        b' "first": 1}',
    ],
)
def test_other_lines_are_no_envelopes(line: bytes) -> None:
    """In a replay file, each repaired line is in an envelope (one line of JSON). If a line of the
    file is not an envelope, the agent recognizes this and does not stop."""
    assert read(line) is None


def test_a_repaired_line_is_parsed_by_its_source() -> None:
    """The row of a repaired line has the fields and the time that the source's parser finds in this
    line, and the origin of the rejected line."""
    source = raw(
        "logs",
        parser=ParserSettings(type="regex", pattern=r"(?P<at>\S+) (?P<what>.*)"),
        timestamp=TimestampSettings(fields=["at"], format="rfc3339"),
        fields={"env": "prod"},
        replay=True,
    )
    (row,) = rows(source, envelope(b"2026-01-02T03:04:05Z hello", at=40))
    assert (row["what"], row["env"]) == ("hello", "prod")
    assert row["timestamp"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert [row[f"original_{each}"] for each in ("agent", "file", "first")] == [5, 7, 40]


def test_fields_of_the_path_are_those_of_the_rejected_line() -> None:
    """If fields are filled from a file's path, the fields of a repaired line come from the path of
    the file that contained the rejected line. Lines of one replay may have different paths."""
    source = raw("logs", path_pattern=r"/srv/(?P<app>[^/]+)/", replay=True)
    found = rows(source, envelope(b"1", "/srv/a/x"), envelope(b"2", "/srv/b/x"), envelope(b"3"))
    assert [(row["line"], row["app"]) for row in found] == [("1", "a"), ("2", "b"), ("3", "")]


def test_records_of_several_lines_stay_whole() -> None:
    """A repaired record that contains line feeds becomes one row. In the parser's pattern, `.`
    matches these line feeds, too."""
    source = raw(
        "logs",
        parser=ParserSettings(type="regex", pattern="(?P<all>.*)"),
        multiline=MultilineSettings(type="start", pattern="^error"),
        replay=True,
    )
    first, second = rows(source, envelope(b"error\n\tat x\r\n\tat y"), envelope(b"error"))
    assert first["all"] == "error\n\tat x\r\n\tat y"
    assert second["all"] == "error"


def test_lines_of_containers_and_of_other_encodings_are_unwrapped() -> None:
    """If a rejected line is from a container, or in an encoding other than UTF-8, the replayed line
    has the form that lines have in the file. The agent unwraps and decodes this line again."""
    source = raw("logs", container="cri", encoding="latin-1", replay=True)
    (row,) = rows(source, envelope(b"2026-01-02T03:04:05Z stderr F caf\xe9"))
    assert (row["line"], row["container_stream"]) == ("café", "stderr")


def test_a_row_that_was_never_rejected_has_no_origin() -> None:
    """A record that was never rejected has null in the fields for the origin of a rejected line."""
    made = preview(raw("logs", replay=True), b"1\n", "/log/a")
    assert made.rows[0].row == {
        "line": "1",
        "original_agent": None,
        "original_file": None,
        "original_first": None,
    }


@promise("2 replay")
def test_a_repaired_line_that_is_rejected_again_keeps_its_first_origin() -> None:
    """If a repaired line is rejected again, the new reject contains the repaired line. The new
    reject also contains host, path and origin of the line that was rejected first."""
    source = raw(
        "logs", "/log/a", parser=ParserSettings(type="regex", pattern="(?P<n>[0-9]+)"), replay=True
    )
    world = World(with_replays(replace(settings(source), state_dir=STATE)))
    world.start()
    again = replace(envelope(b"no number"), original=(1, 2, 3))
    world.files.append("/state/replay/logs/1.replay", again.text() + b"\n")
    world.files.append("/state/replay/logs/1.replay", envelope(b"12").text() + b"\n")
    world.settle()
    (record,) = world.brokers.records("logs.rejected")
    (row,) = REJECTED_CODEC.decode(pa_binary([record.value[5:]])).batch.to_pylist()
    assert (row["line"], row["host"], row["path"]) == (b"no number", "web1", "/log/a.log")
    assert [row[f"original_{each}"] for each in ("agent", "file", "first")] == [1, 2, 3]
    assert (row["file"], row["first"], row["length"]) == (record.file, record.first, record.length)
    assert len(world.brokers.records("logs")) == 1
    assert world.only("/state/replay/logs/1.replay")["pending"] == 0


def test_settings_of_a_replay_that_cannot_work_are_refused(tmp_path: Path) -> None:
    """Settings are refused if two sources of one topic have `replay: true`, or if the schema has a
    field for the origin of a rejected line (such as `original_file`) whose type does not fit. The
    error names the topic or the field."""
    both = replace(
        settings(raw("logs", "/a", replay=True), raw("logs", "/b", replay=True)), state_dir=STATE
    )
    with pytest.raises(ConfigurationRefused, match=r"^replay: two sources of the topic logs"):
        with_replays(both)
    schema = tmp_path / "a.avsc"
    fields = [{"name": "line", "type": "string"}]
    fields.append({"name": "original_file", "type": "string", "default": ""})  # type: ignore[dict-item]
    schema.write_text(json.dumps({"type": "record", "name": "logs", "fields": fields}))
    wrong = replace(settings(raw("logs", "/a", schema=str(schema), replay=True)), state_dir=STATE)
    assert isinstance(wrong, AgentSettings)
    with pytest.raises(
        ConfigurationRefused, match=r"source of topic logs: replay: .*original_file"
    ):
        check_settings(with_replays(wrong))
