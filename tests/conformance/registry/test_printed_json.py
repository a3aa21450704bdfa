"""What `consume`, `agent test` and `rejected show` print as JSON is JSON for every reader of it,
whatever the records contain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from skidway.kafka.client import Client, NewTopic
from skidway.producer import Producer
from skidway.schemas.client import RegistryClient
from skidway.schemas.codec import Codec
from skidway.schemas.wire import add_prefix
from support import foreign
from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.kafka import topic_name
from support.processes import eventually, run_skidway, running
from support.registry import Registry

JOBS = b"a took 1.5\nb took NaN\nc took Infinity\nd took -Infinity\ne took \xff\nf took much\n"
PAIRS = b"level=info user=ann dur=3\nlevel=warn user=bob user=tim\nlevel=info\n"
MAPS = {
    "type": "record",
    "name": "P",
    "fields": [
        {"name": "mb", "type": {"type": "map", "values": "bytes"}},
        {"name": "ab", "type": {"type": "array", "items": "bytes"}},
        {"name": "b", "type": "bytes"},
        {"name": "mm", "type": {"type": "map", "values": {"type": "map", "values": "int"}}},
        {"name": "em", "type": {"type": "map", "values": "int"}},
        {"name": "u", "type": ["null", "string", "long"]},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "n", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
        {"name": "f", "type": {"type": "array", "items": "float"}},
    ],
}
ROWS: list[dict[str, Any]] = [
    {
        "mb": {"k": b"\xff\xfe", "t": b"ok"}, "ab": [b"\xff\xfe", b"/g=="], "b": b"\xff\xfe",
        "mm": {"a": {"x": 1}}, "em": {}, "u": {"member1": 5}, "t": 2**62, "n": 1_001,
        "f": [float("nan"), float("inf")],
    },
    {
        "mb": {}, "ab": [], "b": b"/g==", "mm": {}, "em": {"\u2028\"\\": -1},
        "u": {"member0": "\x00\x7f\u2028"}, "t": 0, "n": 0, "f": [-float("inf"), 0.5],
    },
]  # fmt: skip
SHOWN = [
    {
        "mb_base64": {"k": "//4=", "t": "b2s="}, "ab_base64": ["//4=", "L2c9PQ=="],
        "b_base64": "//4=", "mm": {"a": {"x": 1}}, "em": {}, "u": {"member0": None, "member1": 5},
        "t": 2**62, "n": "1970-01-01T00:00:00.000001001Z", "f": ["NaN", "Infinity"],
    },
    {
        "mb": {}, "ab": [], "b": "/g==", "mm": {}, "em": {"\u2028\"\\": -1},
        "u": {"member0": "\x00\x7f\u2028", "member1": None}, "t": "1970-01-01T00:00:00Z",
        "n": "1970-01-01T00:00:00Z", "f": ["-Infinity", 0.5],
    },
]  # fmt: skip
TIMES = [("a", 1.5), ("b", "NaN"), ("c", "Infinity"), ("d", "-Infinity")]
EXTRA = [{"dur": "3", "user": "ann"}, {"user": "tim"}, {}]


@pytest.fixture
def printed(registry: Registry, skidway_broker: SkidwayBroker, tmp_path: Path) -> dict[str, Any]:
    """Returns the JSON documents that each command has printed, as texts."""
    jobs, pairs, maps = (topic_name(name) for name in ("jobs", "pairs", "maps"))
    for name, data in (("jobs.log", JOBS), ("pairs.log", PAIRS)):
        (tmp_path / name).write_bytes(data)
    pattern = r"(?P<job>\S+) took (?P<s>\S+)"
    sources = [
        {"topic": jobs, "paths": [str(tmp_path / "jobs.log")],
         "parser": {"type": "regex", "pattern": pattern, "types": {"s": "double"}}},
        {"topic": pairs, "paths": [str(tmp_path / "pairs.log")],
         "parser": {"type": "logfmt", "columns": ["level"]}},
    ]  # fmt: skip
    agent = AgentProcess(tmp_path, skidway_broker.address, registry.url, sources)
    sizes = {tmp_path / "jobs.log": len(JOBS), tmp_path / "pairs.log": len(PAIRS)}
    with running(agent.program, agent.healthy):
        eventually(lambda: agent.settled(sizes))
    codec = Codec(MAPS)
    batch = pa.RecordBatch.from_pylist(ROWS, codec.arrow_schema)
    id_ = RegistryClient(registry.url).register(f"{maps}-value", json.dumps(MAPS))
    with Client(skidway_broker.address) as client, Producer(skidway_broker.address) as producer:
        assert client.create_topics([NewTopic(maps, 1, 1)]) == {maps: None}
        eventually(lambda: client.metadata([maps]).topics[maps].partitions)
        for value in add_prefix(id_, codec.encode(batch)).to_pylist():
            producer.send(maps, value)

    def lines(*arguments: str) -> list[str]:
        done = run_skidway(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]  # not splitlines: a text may have U+2028

    at = ("--bootstrap-server", skidway_broker.address)
    found: dict[str, Any] = {}
    for name, topic, count in (("jobs", jobs, 4), ("pairs", pairs, 3), ("maps", maps, 2)):
        what = ("--topic", topic, "--from-beginning", "--max", str(count))
        consume = ("consume", *what, "--registry", registry.url, *at)
        found[name], found[f"{name} with offsets"] = lines(*consume), lines(*consume, "--json")
    test = ("agent", "test", "--config", str(agent.config), "--json")
    found["jobs tested"] = lines(*test, str(tmp_path / "jobs.log"))
    found["pairs tested"] = lines(*test, str(tmp_path / "pairs.log"))
    found["rejected"] = ["\n".join(lines("rejected", "show", jobs, "--json", *at))]
    return found


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=_no_json)


def _no_json(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


def test_each_value_is_json(printed: dict[str, list[str]]) -> None:
    """NaN, infinities, times out of range, nanoseconds, bytes, maps and control characters have one
    form in every command that prints JSON, and none hides its neighbours."""
    found = {name: [strict(text) for text in texts] for name, texts in printed.items()}
    assert found["maps"] == [each["value"] for each in found["maps with offsets"]] == SHOWN
    for name, rows in (
        ("jobs", found["jobs"]),
        ("jobs with offsets", [each["value"] for each in found["jobs with offsets"]]),
        ("jobs tested", [each["row"] for each in found["jobs tested"] if "row" in each]),
    ):
        assert [(row["job"], row["s"]) for row in rows] == TIMES, name
    for rows in (
        found["pairs"],
        [each["value"] for each in found["pairs with offsets"]],
        [each["row"] for each in found["pairs tested"]],
    ):
        assert [row["_extra"] for row in rows] == EXTRA
    rejects = [each for each in found["jobs tested"] if "rejected" in each]
    assert [each["line"] for each in rejects] == ["e took \ufffd", "f took much"]
    (rejected,) = found["rejected"]
    assert [(each.get("line"), each.get("line_base64")) for each in rejected] == [
        (None, "ZSB0b29rIP8="), ("f took much", None),
    ]  # fmt: skip


def by_jq(texts: list[str]) -> list[Any]:
    return outputs([foreign.jq(), "-c", "."], "\n".join(texts))


def by_node(texts: list[str]) -> list[Any]:
    script = (
        "const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "for (const text of texts) console.log(JSON.stringify(JSON.parse(text)))"
    )
    return outputs([foreign.node(), "-e", script], json.dumps(texts))


def by_polars(texts: list[str]) -> list[Any]:
    script = (
        "import io, json, polars, sys\n"
        "for text in json.load(sys.stdin):\n"
        "    print(json.dumps(polars.read_json(io.BytesIO(text.encode())).to_dicts()))"
    )
    env = {**os.environ, "PYTHONPATH": str(foreign.readers())}
    found = outputs([sys.executable, "-c", script], json.dumps(texts), env)
    return [
        rows if text.startswith("[") else rows[0] for text, rows in zip(texts, found, strict=True)
    ]


def outputs(command: list[str], given: str, env: dict[str, str] | None = None) -> list[Any]:
    """Runs a reader, and returns the JSON value of each line that it prints."""
    done = subprocess.run(command, input=given.encode(), capture_output=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]


@pytest.mark.foreign
def test_other_readers_take_it(printed: dict[str, list[str]]) -> None:
    """jq, Node and polars read what the commands print, with the same values. (jq and Node round
    every number of more than 53 bits. polars makes no difference between null and nothing, and a
    column of texts and numbers is one of texts.)"""
    for name, texts in printed.items():
        wanted = rounded([strict(text) for text in texts])
        for read in (by_jq, by_node, by_polars):
            assert rounded(read(texts)) == wanted, (name, read.__name__)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return repr(float(value)) if is_number else value
