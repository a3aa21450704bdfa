"""The tests write files in UTF-16 and check which records the agent makes from them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from skidway.agent.settings import MultilineSettings
from skidway.cli import main
from skidway.errors import ConfigurationRefused
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from support.agent_press import rejected_rows
from support.agent_world import World, pa_binary, raw, settings
from support.promises import promise
from support.randomness import Seeds

PATH = "/log/a.log"
FIRST = TopicPartition("logs", 0)
LINES = ["plain", "", "\u0a0a\u0d0d", "\U0001f40a \u4e00", "\u0a00\u000b", "x" * 300]


def running(encoding: str, **source: object) -> World:
    world = World(settings(raw(encoding=encoding, **source)))
    world.start()
    return world


def written(world: World, data: bytes, seed: int) -> None:
    """Appends `data` to the file in pieces of random sizes, and lets the agent read in between."""
    draw = random.Random(seed)
    at = 0
    while at < len(data):
        size = draw.choice([1, 2, 3, 5, 64, 1000])
        world.files.append(PATH, data[at : at + size])
        at += size
        if draw.random() < 0.3:
            world.tick(0.05)
    world.settle()


@promise("2 byte order")
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("is_told", [True, False])
def test_utf16_lines_are_delivered_however_they_are_written(
    codec: str, is_told: bool, seeds: Seeds
) -> None:
    """Every line of a UTF-16 file is delivered as the text that Python's codec makes of this line,
    even if programs write only a part of a character at a time. The byte order comes from the
    setting `encoding`, or from the file's byte order mark. The mark is not a part of the first
    line."""
    for seed in seeds(range(4)):
        lines = random.Random(seed).choices(LINES, k=12)
        world = running(codec.replace("16-", "16") if is_told else "utf-16")
        text = "".join(line + ("\r\n" if len(line) % 2 else "\n") for line in lines)
        written(world, ("\ufeff" + text).encode(codec), seed)
        assert world.values() == lines
        assert world.only()["pending"] == 0


def test_a_file_without_a_mark_is_little_endian() -> None:
    """With `encoding: utf-16`, a file without a byte order mark is read as little-endian."""
    world = running("utf-16")
    written(world, "a\nb\n".encode("utf-16-le"), 0)
    assert world.values() == ["a", "b"]


@promise("2 byte order")
def test_after_a_kill_the_middle_of_the_file_is_read_in_the_same_order() -> None:
    """An intent is a stored promise to send certain bytes. After a kill, the agent sends the bytes
    of an intent in the middle of a big-endian file again, and then reads the lines after these
    bytes. It uses the file's byte order for both steps, although the byte order mark is only at the
    beginning of the file."""
    world = running("utf-16")
    world.files.append(PATH, "\ufeffone\n".encode("utf-16-be"))
    world.settle()
    world.kill_in_flight("two\n".encode("utf-16-be"), arrives=FIRST)
    world.start()
    world.files.append(PATH, "three\n".encode("utf-16-be"))
    world.settle()
    assert world.values() in (["one", "two", "two", "three"], ["one", "two", "three"])
    assert world.only()["acknowledged"] == len("\ufeffone\ntwo\nthree\n") * 2


def test_a_mark_in_the_middle_of_a_file_stays_in_the_text() -> None:
    """A byte order mark that is not at the beginning of the file is a character of its line."""
    world = running("utf-16")
    for line in ("\ufeffa\n", "\ufeffb\n", "c\n"):
        written(world, line.encode("utf-16-le"), 0)
    assert world.values() == ["a", "\ufeffb", "c"]


@promise("2 byte order")
def test_half_a_mark_decides_nothing() -> None:
    """While a file has only one byte, the agent does not decide the file's byte order yet."""
    world = running("utf-16")
    data = "\ufeffa\n".encode("utf-16-be")
    world.files.append(PATH, data[:1])
    world.hold(3)
    world.files.append(PATH, data[1:])
    world.settle()
    assert world.values() == ["a"]


@promise("2 encoding")
def test_a_utf8_mark_is_no_part_of_the_first_line() -> None:
    """The agent removes a UTF-8 byte order mark from the beginning of a file's first line, but
    nowhere else. The origin of the first record includes the mark's bytes."""
    world = running("utf-8")
    for line in ("\ufeffa\n", "\ufeffb\n"):
        written(world, line.encode(), 1)
    assert world.values() == ["a", "\ufeffb"]
    assert [record.length for record in world.brokers.records("logs")] == [5, 5]


@promise("2 encoding")
@pytest.mark.parametrize(
    ("text", "replaced"),
    [("\ud83d", "\ufffd"), ("x\udc0a", "x\ufffd"), ("\udc0a\ud83d", "\ufffd\ufffd")],
)
def test_unpaired_surrogates_are_rejected_or_replaced(text: str, replaced: str) -> None:
    """A line with an unpaired surrogate is rejected, and the rejected record has the line's bytes.
    With `on_error: replace`, this line becomes a record with U+FFFD in place of the surrogate. In
    both cases the lines before and after this line are delivered unchanged."""
    bad = text.encode("utf-16-le", "surrogatepass")
    data = "a\n".encode("utf-16-le") + bad + "\nb\n".encode("utf-16-le")
    world = running("utf-16le")
    written(world, data, 2)
    assert world.values() == ["a", "b"]
    (row,) = rejected_rows(world.brokers)
    assert (row["reason"], row["line"], row["first"]) == ("encoding", b"\xff\xfe" + bad, 4)
    world = running("utf-16le", on_error="replace")
    written(world, data, 2)
    values = pa_binary([record.value[5:] for record in world.brokers.records("logs")])
    codec = Codec(world.destinations()[0].recipe.schema.text)
    assert codec.decode(values).batch.to_pydict() == {
        "line": ["a", replaced, "b"], "encoding_replaced": [False, True, False]
    }  # fmt: skip
    assert rejected_rows(world.brokers) == []


@promise("2 encoding")
def test_half_a_code_unit_at_the_end_is_rejected_and_waits_for_nothing() -> None:
    """If a file ends with half a code unit and no longer changes, the last record is rejected with
    all its bytes. The next byte that is written to the file counts as the beginning of a code
    unit."""
    world = running("utf-16le")
    written(world, "a\nb".encode("utf-16-le") + b"c", 3)
    (row,) = rejected_rows(world.brokers)
    assert (row["reason"], row["line"]) == ("encoding", b"\xff\xfeb\0c")
    written(world, "d\n".encode("utf-16-le"), 3)
    assert world.values() == ["a", "d"]
    assert world.only()["pending"] == 0


def test_lines_of_utf16_are_joined() -> None:
    """With `multiline`, lines of a UTF-16 file are joined to one record."""
    world = running("utf-16", multiline=MultilineSettings(type="indented", timeout_ms=500))
    written(world, "\ufeffa\n b\nc\n".encode("utf-16-be"), 4)
    assert world.values() == ["a\n b", "c"]


@promise("2 over-long line")
def test_a_long_line_of_utf16_is_rejected_and_the_next_is_delivered() -> None:
    """A UTF-16 line that is too long to be read at once is rejected, and the line after it is
    delivered. This is so even if two adjacent characters of the long line contain the bytes of a
    line feed."""
    world = running("utf-16le")
    world.files.append(PATH, ("\u0a0a" * 800_000 + "\nb\n").encode("utf-16-le"))
    world.settle()
    assert world.values() == ["b"]
    (row,) = rejected_rows(world.brokers)
    assert (row["reason"], row["length"]) == ("too-long", 1_600_002)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16le", "utf-16be"])
@pytest.mark.parametrize("container", ["cri", "docker"])
def test_containers_do_not_write_utf16(encoding: str, container: str) -> None:
    """The agent refuses a source with both a UTF-16 encoding and the setting `container`. The error
    names both settings."""
    source = raw(encoding=encoding, container=container)
    with pytest.raises(ConfigurationRefused, match=f"encoding: {encoding} .* container"):
        source.check()


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_validate_and_test_read_utf16(
    codec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`validate`, `test` and `guess` read a UTF-16 file in the byte order that its byte order mark
    gives. `validate` also reads the last lines of a large file in this byte order."""
    text = "\ufeff" + "".join(f"id {number}\n" for number in range(100_000)) + "x"
    log = tmp_path / "a.log"
    log.write_bytes(text.encode(codec) + b"-")
    source = {
        "topic": "app", "paths": [str(log)], "encoding": "utf-16",
        "parser": {"type": "regex", "pattern": r"id (?P<number>\d+)"},
    }  # fmt: skip
    document = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://127.0.0.1:1",
        "state.dir": str(tmp_path / "state"),
        "sources": [source],
    }
    path = tmp_path / "agent.yml"
    path.write_text(yaml.safe_dump(document))
    assert main(["agent", "validate", "--config", str(path)]) == 0
    assert "all of 2,000 records fit" in capsys.readouterr().out
    assert main(["agent", "test", str(log), "--config", str(path)]) == 0
    assert ", 0 rejected" in capsys.readouterr().out
    assert main(["agent", "guess", str(log)]) == 0
    assert "encoding: utf-16" in capsys.readouterr().out
