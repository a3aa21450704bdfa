"""A line becomes the same record, whether the agent processes it alone or together with other
lines."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.agent.batches.press import Press, Pressed
from skidway.agent.batches.source_recipes import recipe_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.replayed import Envelope
from skidway.agent.recipe import Recipe, Schema
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.values.intents import Reading
from support.agent_press import AGENT, DATA, REJECTED, reading, recipe, regex
from support.agent_world import Record, records_of
from support.promises import promise

GROUPS = regex(r"(?P<a>\S+) (?P<b>.*)")
CSV = {"parser": ParserSettings(type="csv", columns=["a", "b"])}
JSON_SCHEMA = {
    "type": "record",
    "name": "logs",
    "fields": [
        {"name": "a", "type": ["null", "string"], "default": None},
        {"name": "_extra", "type": {"type": "map", "values": "string"}, "default": {}},
    ],
}
SHAPE = 'drop a = "1" as one\nsample 1/2 where a = "2"\nmask b for cards, emails, keys'
SOURCES: dict[str, dict[str, Any]] = {
    "raw": {"on_error": "replace"},
    "regex": GROUPS,
    "regex of RE2": regex(r"(?P<a>\d*) ?(?P<b>(?:x|y)*.*?)", key="a"),
    "several lines": {**GROUPS, "multiline": MultilineSettings(type="start", pattern=r"^\d")},
    "json": {"parser": ParserSettings(type="json"), "schema": json.dumps(JSON_SCHEMA)},
    "csv": {**CSV, "shape": SHAPE},
    "logfmt": {"parser": ParserSettings(type="logfmt", columns=["a"]), "partitioning": "spread"},
    "cri": {"container": "cri"},
    "docker": {**GROUPS, "container": "docker"},
    "shift-jis": {**CSV, "encoding": "shift-jis"},
    "utf-16": {**GROUPS, "encoding": "utf-16le", "shape": SHAPE},
    "json after a prefix": {
        "parser": ParserSettings(
            type="regex", pattern="(?P<p>[^{]*)(?P<j>.*)", json_field="j", types={"a": "string"}
        )
    },
    "replay": {**GROUPS, "replay": True},
}
WHOLE = [
    b"1 x", b"2 4111111111111111", b"a,b", b'2,"x ""y"" a@b.de"', b'{"a": "x", "n": 1e400}',
    b'{"a": 1, "b": [2]}', b'a=1 b="x y"', b'a="x\\"y" c', b"", b"  at x", b"\xef\xbb\xbf1 x",
    b"2026-11-20T08:15:01Z stdout F text", b"2026-11-20T08:15:01Z stdout P part",
    b'{"log": "2 x\\n", "stream": "stdout", "time": "2026-11-20T08:15:01Z"}',
    b'{"log": "1 x", "stream": "stderr", "time": ""}',
]  # fmt: skip
BITS = [
    b'"', b"\\", b",", b"=", b" ", b"\t", b"\r", b"\0", b"\0" * 256, b"\xff", b"\xc2\x85", b"{",
    b"\xe2\x80\xa8", b"\x1f", b"[" * 201, b"",
]  # fmt: skip
LINE = st.builds(
    lambda line, bit, at, end: line[:at] + bit + line[at:] + end,
    st.sampled_from(WHOLE), st.sampled_from([*BITS, b"", b"", b""]), st.integers(0, 20),
    st.sampled_from([b"\n", b"\n", b"\r\n", b"\r\r\n", b"\n\n"]),
)  # fmt: skip
RANGES = st.lists(st.lists(LINE, min_size=1, max_size=5).map(b"".join), min_size=1, max_size=3)


@cache
def press_of(name: str) -> Press:
    return Press(made(name))


def made(name: str) -> Recipe:
    source = SOURCES[name]
    if "schema" not in source:
        return replace(recipe(partitions=3, **source), is_replay="replay" in source)
    like = recipe(partitions=3)
    return recipe_of(
        SourceSettings(topic="logs", paths=["/log/*"], **source),
        like.data, like.rejected, Schema(1, source["schema"]), like.rejected_schema, 900_000,
    )  # fmt: skip


def in_envelopes(data: bytes) -> bytes:
    """Returns the lines as the file of a replay has them: each in an envelope (one line of JSON),
    and with an origin of its own. Lines that begin with a brace stay as they are."""
    lines = []
    for number, line in enumerate(data.split(b"\n")):
        wrapped = Envelope("logs", line, "h", "/p", (1, 2, number), (3, 4, number)).text()
        lines.append(line if line.startswith(b"{") else wrapped)
    return b"\n".join(lines)


def pressed(press: Press, *readings: Reading) -> Pressed:
    return press.press(AGENT, readings, (DATA, REJECTED), 60_000)


def rows(found: Pressed) -> list[tuple[str, int, Record]]:
    of_batches = [(batch.tp, r) for batch in found.batches for r in records_of(batch.encoded)]
    return sorted(
        ((tp.topic, tp.partition, record) for tp, record in of_batches),
        key=lambda row: (row[2].file, row[2].first),
    )


def left_out(found: Pressed) -> list[tuple[int, int, int, str]]:
    out = found.filtered
    if out is None:
        return []
    rules = [out.rules[rule] for rule in out.rule.tolist()]
    places = (out.file.tolist(), out.first.tolist(), out.length.tolist())
    return sorted(zip(*places, rules, strict=True))


@promise("2 re-send", "2 framing")
@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=4)
@given(ranges=RANGES)
def test_each_record_is_the_same_alone_and_together(name: str, ranges: list[bytes]) -> None:
    """With each source of `SOURCES`, each line (or group of lines that the source joins) has one
    result: a record, a rejected record, or an entry in the list of lines that rules leave out. The
    result is the same whether the agent processes the line alone or together with other lines."""
    press = press_of(name)
    if name == "utf-16":
        ranges = [each.decode("utf-8", "replace").encode("utf-16-le") for each in ranges]
    if name == "replay":
        ranges = [in_envelopes(each) for each in ranges]
    readings = [reading(data, file) for file, data in enumerate(ranges, 1)]
    together = pressed(press, *readings)
    alone = []
    for each in readings:
        frames = press.framer.frame(each.data, np.array([len(each.data)]))
        for first, end in zip(frames.first.tolist(), frames.end.tolist(), strict=True):
            place = each.intent.first + first
            one = pressed(press, reading(each.data[first:end], each.intent.file, place))
            assert len(rows(one)) + len(left_out(one)) == 1
            alone.append(one)
    assert rows(together) == [row for one in alone for row in rows(one)]
    assert left_out(together) == [out for one in alone for out in left_out(one)]
