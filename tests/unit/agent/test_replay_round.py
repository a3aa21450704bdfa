"""If a rejected line is exported and replayed unchanged, its row has the line's own text."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.commands.replaying import NotReplayed, replay
from skidway.agent.configuration import replay_directory, replay_source, with_replays
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import SourceSettings
from skidway.agent.validation.preview import preview
from skidway.schemas.consuming.rejected_lines import is_cut, repairable
from support.agent_press import press, reading, recipe, rejected, rejected_rows
from support.agent_world import World, raw, settings

MASK = 'mask line matching "a="'
CODECS = [
    ("utf-8", "utf-8"), ("latin-1", "latin-1"), ("shift-jis", "shift-jis"), ("big5", "big5"),
    ("gb18030", "gb18030"), ("koi8-r", "koi8-r"), ("euc-jp", "euc-jp"),
    ("utf-16le", "utf-16-le"), ("utf-16be", "utf-16-be"), ("utf-16", "utf-16-le"),
    ("utf-16", "utf-16-be"),
]  # fmt: skip
WORDS = {"latin-1": "café", "koi8-r": "слово"}
"""For some encodings, a word with characters of the encoding. For all other encodings, the tests
use the word "表示"."""

ASCII = "".join(map(chr, range(32, 127)))


def source(pattern: str, encoding: str, shape: str | None = None) -> SourceSettings:
    parser = ParserSettings(type="regex", pattern=pattern)
    return raw("logs", "/log/*.log", parser=parser, encoding=encoding, shape=shape, replay=True)


def exported(data: bytes, encoding: str, shape: str | None = None) -> list[dict[str, Any]]:
    """Returns the documents that `rejected export` writes for a file of which the agent rejects
    every line."""
    world = World(settings(source(r"(?P<line>never)", encoding, shape)))
    world.files.append("/log/a.log", data)
    world.start()
    world.settle()
    return [json.loads(json.dumps(repairable(row))) for row in rejected_rows(world.brokers)]


def rows(found: list[dict[str, Any]], encoding: str, state: Path, shape: str = "") -> list[str]:
    """Replays the rejected lines in `found`, and returns the field `line` of each row that the
    agent makes from these lines."""
    corrected = source("(?s)(?P<line>.*)", encoding, shape or None)
    configured = with_replays(replace(settings(corrected), state_dir=state))
    text = "".join(json.dumps(each) + "\n" for each in found)
    replay(configured, io.StringIO(text), also_unfit=False)
    paths = sorted(replay_directory(state, "logs").glob("*.replay"))
    made = [preview(replay_source(corrected, state), x.read_bytes(), str(x)) for x in paths]
    assert not any(each.rejects for each in made)
    return [row.row["line"] for each in made for row in each.rows]


@pytest.mark.parametrize("shape", [None, MASK])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("encoding", "codec"), CODECS)
def test_an_exported_line_becomes_the_row_of_its_text(
    encoding: str, codec: str, end: str, shape: str | None, tmp_path: Path
) -> None:
    """If a rejected line is exported and replayed unchanged, its row has the line's text, whatever
    encoding, byte order and line terminators the file has, and whether or not a mask applies."""
    lines = ["慡", "", f"{WORDS.get(encoding, '表示')} a=1", ASCII]
    if not encoding.startswith(("utf", "gb")):
        del lines[0]
    mark = "\ufeff" if encoding.startswith(("utf", "gb")) else ""
    found = exported((mark + "".join(line + end for line in lines)).encode(codec), encoding, shape)
    assert [each["first"] for each in found][:1] == [0]
    assert not any("is_cut" in each for each in found)
    shown = [line.replace("a=", "[masked]") for line in lines] if shape else lines
    assert rows(found, encoding, tmp_path, shape or "") == shown


@pytest.mark.parametrize(("encoding", "codec"), CODECS)
def test_an_edited_line_is_text(encoding: str, codec: str, tmp_path: Path) -> None:
    """If a person edits an exported line, its row has the text that the person wrote, whether or
    not the export also contains the line's bytes."""
    word = WORDS.get(encoding, "表示")
    mark = "\ufeff" if encoding == "utf-16" else ""
    first, second = exported(f"{mark}{word}\n{word}\n".encode(codec), encoding)
    first["line"] = f"{word} 1"
    del second["line_base64"]
    second["line"] = f"{word} 2"
    assert rows([first, second], encoding, tmp_path) == [f"{word} 1", f"{word} 2"]


@pytest.mark.parametrize(("encoding", "wrong"), [("latin-1", "表"), ("shift-jis", "\u00a5")])
def test_text_that_the_encoding_does_not_have_is_refused(
    encoding: str, wrong: str, tmp_path: Path
) -> None:
    """If a line has characters that its source's encoding cannot represent, nothing is replayed,
    and the error names the line."""
    (found,) = exported(b"a\n", encoding)
    with pytest.raises(NotReplayed, match=rf"/log/a.log at byte 0 has .* that {encoding} does not"):
        rows([{**found, "line": wrong}], encoding, tmp_path)


def test_bytes_without_their_order_are_refused(tmp_path: Path) -> None:
    """If nothing gives the byte order of an exported line, the line is not replayed, because a
    guess might be wrong."""
    (found,) = exported("a\n".encode("utf-16-be"), "utf-16be")
    with pytest.raises(NotReplayed, match="does not say its byte order"):
        rows([{**found, "line_base64": "AGE="}], "utf-16", tmp_path)


@pytest.mark.parametrize("data", [b"\0a\n", b"\0\0a\n"])
def test_what_is_no_whole_line_is_not_replayed(data: bytes, tmp_path: Path) -> None:
    """NUL bytes in place of a line never become an empty row, even if there are only a few."""
    hole, line = exported(data, "utf-8")
    assert (hole["reason"], hole["is_cut"], line["line"]) == ("nul-bytes", True, "a")
    with pytest.raises(NotReplayed, match="line 1 does not have the whole rejected line"):
        rows([hole, line], "utf-8", tmp_path)


def test_a_line_that_does_not_fit_looks_cut() -> None:
    """A reject (the record about a rejected line) has a limited size. If even one byte of the line
    does not fit into the reject, the reject counts as cut (incomplete). This is so even if only
    masks made the line too long."""
    wholes = set()
    made = recipe(limit=20_000, max_line_bytes=100)
    (row,) = rejected(press(made, reading(b"x" * 19_900 + b"\n")))
    fitting = len(row["line"])
    for size in range(fitting - 4, fitting + 14):
        for shape, data in (
            ("", b"x" * size),
            ('mask line matching "y"', b"x" * (size - 6) + b"y"),
        ):
            made = recipe(limit=20_000, max_line_bytes=100, shape=shape or None)
            (row,) = rejected(press(made, reading(data + b"\n")))
            is_whole = row["line"] in (data, data.replace(b"y", b"[masked]"))
            assert is_cut(row) is not is_whole
            wholes.add(is_whole)
    assert wholes == {True, False}
