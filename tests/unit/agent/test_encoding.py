"""Tests what the agent does with lines that are not UTF-8, with `on_error: replace` and without it,
from the settings to the records."""

import json
from pathlib import Path

import pytest
import yaml

from skidway.agent.settings import SourceSettings
from skidway.cli import main
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from support.agent_world import World, pa_binary, raw, settings
from support.promises import promise

FIRST = TopicPartition("logs", 0)
REJECTED = TopicPartition("logs.rejected", 0)


def lines(world: World) -> list[tuple[object, object]]:
    """Returns the line and the field `encoding_replaced` of each record, in log order."""
    schema = world.destinations()[0].recipe.schema.text
    values = [record.value[5:] for record in world.brokers.records("logs")]
    found = Codec(schema).decode(pa_binary(values)).batch.to_pylist()
    return [(row["line"], row["encoding_replaced"]) for row in found]


@promise("2 encoding")
def test_killed_before_the_acknowledgement_the_same_replaced_line_is_sent_again() -> None:
    """If the agent stored an intent (a promise to send certain bytes) for a line before it was
    killed, it sends the line again with the old settings, even if on_error was changed before the
    restart."""
    replacing = settings(raw(on_error="replace"))
    world = World(replacing)
    world.kill_in_flight(b"caf\xe9\n", arrives=FIRST)
    world.settings = settings(raw())
    world.start()
    world.settle()
    first, again = world.brokers.logs[FIRST]
    assert first == again
    world.settings = replacing
    assert lines(world) == [("caf\ufffd", True)] * 2
    assert world.brokers.records("logs.rejected") == []
    (file,) = world.ledger()
    assert (file["acknowledged"], file["rejected"], file["pending"]) == (5, 0, 0)


@promise("2 re-send")
def test_a_rejected_line_that_is_sent_again_says_the_path_of_its_announcement() -> None:
    """If a rejected line is sent again after its file was renamed, its record still contains the
    announced path. A record that is sent again is always byte for byte the same."""
    world = World(settings(raw("logs", "/log/*.log", "/log/*.1")))
    world.kill_in_flight(b"caf\xe9\n", arrives=REJECTED)
    world.files.rename("/log/a.log", "/log/a.log.1")
    world.start()
    world.settle()
    first, again = world.brokers.logs[REJECTED]
    assert first == again


def configured(tmp_path: Path, **source: object) -> list[str]:
    (tmp_path / "app.log").write_bytes(b"fine\ncaf\xe9\n")
    document = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://127.0.0.1:1",
        "state.dir": str(tmp_path / "state"),
        "sources": [{"topic": "app", "paths": [str(tmp_path / "*.log")], **source}],
    }
    path = tmp_path / "agent.yml"
    path.write_text(yaml.safe_dump(document))
    return ["agent", "validate", "--config", str(path)]


def test_validate_says_in_how_many_lines_something_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `on_error: replace`, `validate` counts lines with invalid bytes as good lines. Without
    this setting, `validate` counts these lines as lines that would be rejected."""
    assert main(configured(tmp_path, on_error="replace")) == 0
    said = capsys.readouterr().out
    assert "all of 2 records fit; in 1 something is not UTF-8, replaced\n" in said
    assert main(configured(tmp_path)) == 0
    assert "1 of 2 records (50.0%) do not fit: encoding 1\n" in capsys.readouterr().out


def test_validate_refuses_what_would_leave_the_mark_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`validate` exits with status 78 and one sentence if the schema has no field
    `encoding_replaced`, which marks lines with invalid bytes. It does the same if the pattern has a
    group that is also called `encoding_replaced`."""
    schema = tmp_path / "s.avsc"
    fields = [{"name": "line", "type": "string"}]
    schema.write_text(json.dumps({"type": "record", "name": "r", "fields": fields}))
    pattern = {"type": "regex", "pattern": "(?P<encoding_replaced>.*)"}
    for source, words in (
        ({"schema": str(schema)}, "the schema has no boolean field of that name"),
        ({"parser": pattern}, "parser.pattern has a group 'encoding_replaced'"),
    ):
        assert main(configured(tmp_path, on_error="replace", **source)) == 78
        (said,) = capsys.readouterr().err.splitlines()
        assert said.startswith("skidway agent: source of topic app: ")
        assert words in said


def test_the_settings_are_utf_8_and_reject_by_default() -> None:
    """By default, the encoding is utf-8, and lines with invalid bytes are rejected without any
    replacement."""
    source = SourceSettings(topic="t", paths=["/x"])
    assert (source.encoding, source.on_error) == ("utf-8", "reject")
