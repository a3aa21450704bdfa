"""A real agent is killed while the labels of a pod change."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.settings import LabelSettings, SourceSettings
from skidway.agent.state.database import DATABASE
from skidway.audit.topic import topic
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import decode
from skidway.schemas.codec import Codec
from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.promises import promise

ROUNDS = 7
LINES = 20_000


def copies(broker: str, name: str) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yields ((file id, position of the first byte), value) of every record in a topic, including
    repeated records."""
    with Client(broker) as client:
        ends = {tp: end for tp, (_, end) in topic.bounds(client, [name]).items() if end}
        fetcher = Fetcher(client)
        for tp in ends:
            fetcher.seek(tp, 0)
        while any(fetcher.positions[tp] < end for tp, end in ends.items()):
            for part in fetcher.poll(500):
                for raw in part.batches:
                    batch = decode(raw)
                    assert batch.origins is not None
                    files, first = batch.origins.file.tolist(), batch.origins.first.tolist()
                    places = zip(files, first, strict=True)
                    yield from zip(places, batch.values.to_pylist(), strict=True)


def has_begun(process: AgentProcess, sent: int) -> bool:
    """Returns whether the agent's state says that the agent has sent, or is going to send, bytes of
    the log beyond the first `sent` bytes."""
    path = process.state / DATABASE
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as found:
            (promised,) = found.execute('SELECT max("end") FROM intents').fetchone()
            (position,) = found.execute("SELECT max(position) FROM files").fetchone()
    except sqlite3.Error:
        return False  # the agent has not made its state yet
    return max(promised or 0, position or 0) > sent


@promise("2 labels")
def test_a_record_that_is_sent_again_has_its_first_labels(
    agent: Callable[..., AgentProcess], tmp_path: Path, own_broker: SkidwayBroker
) -> None:
    """If the agent is killed again and again while it sends, and the labels are changed before each
    start, each line is delivered, and all copies of a record have the same labels."""
    log = tmp_path / "pods" / "shop_web-1_uid-1" / "app" / "0.log"
    log.parent.mkdir(parents=True)
    labels = tmp_path / "pods.json"
    process = agent(
        {
            "topic": "pods", "paths": [str(log)], "container": "cri",
            "labels": {"location": str(labels), "fields": {"release": "version"}},
        }
    )  # fmt: skip
    lines = 0
    for number in range(ROUNDS):
        if number % 3 == 2:
            labels.unlink()
        else:
            new = labels.with_suffix(".new")
            new.write_text(json.dumps({"shop/web-1": {"version": str(number)}}))
            new.rename(labels)
        before = log.stat().st_size if log.exists() else 0
        with log.open("a") as out:
            for _ in range(LINES):
                out.write(f"2026-11-21T08:15:01.5Z stdout F {lines}\n")
                lines += 1
        process.start(ready=False)
        eventually(lambda sent=before: has_begun(process, sent), what="the first bytes")
        if number < ROUNDS - 1:
            process.program.kill()
    eventually(lambda: process.settled({log: log.stat().st_size}), what="all lines")
    assert process.program.stop() == 0
    values: dict[tuple[int, int], bytes] = {}
    for place, value in copies(own_broker.address, "pods"):
        assert values.setdefault(place, value) == value, "a record was sent again as another one"
    source = SourceSettings(
        topic="pods",
        paths=["/a"],
        container="cri",
        labels=LabelSettings(location=labels, fields={"release": "version"}),
    )
    raw = pa.array([value[5:] for value in values.values()], pa.binary())
    rows = Codec(derived_schema(source)).decode(raw).batch.to_pylist()
    assert sorted(int(row["line"]) for row in rows) == list(range(lines))
    assert {row["release"] for row in rows} <= {str(number) for number in range(ROUNDS)}
    assert len({row["release"] for row in rows}) > 1


ALIASES = "l0: &l0 [x, x]\n" + "".join(
    f"l{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 9)}]\n" for number in range(1, 10)
)
ODD = (
    "db: {password: !!bool xyz}", 'db: {password: !!int ""}', "db: {password: !!timestamp x}",
    f"{ALIASES}items: [{{metadata: {{name: n, namespace: *l9}}}}]", 'db: {a: "\\UFFFFFFFF"}',
)  # fmt: skip


def peak_kib(process: AgentProcess) -> int:
    """Returns the most memory that the agent has had."""
    status = Path(f"/proc/{process.program.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_no_labels_end_or_fill_the_agent(
    agent: Callable[..., AgentProcess], tmp_path: Path
) -> None:
    """Whatever stands in the files with labels that sources name, the agent reads the logs, and a
    few lines do not fill its memory."""
    sources, sizes = [], {}
    for number, text in enumerate(ODD):
        log = tmp_path / "pods" / f"shop_web-{number}_uid-{number}" / "app" / "0.log"
        log.parent.mkdir(parents=True)
        log.write_text("2026-11-21T08:15:01.5Z stdout F line\n")
        labels = tmp_path / f"pods-{number}.json"
        labels.write_text(text)
        sources.append(
            {
                "topic": f"pods-{number}", "paths": [str(log)], "container": "cri",
                "labels": {"location": str(labels), "fields": {"release": "version"}},
            }
        )  # fmt: skip
        sizes[log] = log.stat().st_size
    process = agent(*sources)
    process.start()
    eventually(lambda: process.settled(sizes), what="all lines")
    assert process.healthy()
    assert peak_kib(process) < 512 << 10
    assert process.program.stop() == 0
