"""The code in docs/spark.md returns the right answer to each of the page's questions.

The tests run the code as an analyst would run it. They use the Python of a virtual environment
without activating the environment, and set no environment variables for Spark.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.topic import topic as audit_topic
from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.audit.topic.messages import Announcement, encode
from skidway.kafka.client import Client, NewTopic
from skidway.kafka.columns import Origins
from skidway.kafka.source import sources_of
from skidway.schemas.client import RegistryClient
from skidway.schemas.codec import Codec
from skidway.schemas.single_object import schema_text
from skidway.schemas.wire import add_prefix
from support import spark_script
from tests.crash.loader.conftest import AGENT, START_MS, Cluster

pytestmark = pytest.mark.java

PAGE = Path(__file__).parents[3] / "docs/spark.md"
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
SESSION = 'SparkSession.builder.config("spark.sql.session.timeZone"'
RUN = """
import json, sys
settings, blocks = map(json.loads, sys.argv[1:])
names = {"settings": settings}
answers = {}
for heading, code in blocks:
    names.pop("answer", None)
    exec(compile(code, heading, "exec"), names)
    if "answer" in names:
        answers[heading] = [list(row) for row in names["answer"].collect()]
answers["lines"] = names["lines"].count()
answers["copied"] = names["spark"].read.parquet(names["folder"] + "/app").count()
print(json.dumps(answers, default=str))
names["spark"].stop()
"""
SCHEMAS = {
    "app": {"request": "string", "level": "string", "message": "string"},
    "web": {
        "request": "string", "user": "string", "path": "string", "status": "int", "ms": "double",
    },
}  # fmt: skip


def test_every_question_has_its_answer(cluster: Cluster, tmp_path: Path) -> None:
    """All code of the page runs in the order of the page, and each question gets the right rows.
    The answers are counts, a percentile, sessions, a join, one file's lines, new errors, rejected
    lines, silent hosts and repeats. The last question is answered by a stream of windows with a
    watermark."""
    write_logs(cluster)
    blocks = code_of(PAGE.read_text(), cluster, tmp_path)
    found = spark_script.answer(RUN, json.dumps(blocks), folder=tmp_path)
    evening, night = "2023-11-14 22:00:00", "2023-11-14 23:00:00"
    assert found["1"] == [["web-1", evening, 2], ["web-2", evening, 1], ["web-1", night, 1]]
    assert found["2"] == [["/b", 2, 195.0], ["/a", 2, 19.5]]
    assert found["3"] == [
        ["ann", "2023-11-14 22:13:20", "2023-11-14 22:23:20", 2],
        ["ann", "2023-11-14 23:13:20", "2023-11-14 23:13:20", 1],
        ["bob", "2023-11-14 22:18:20", "2023-11-14 22:18:20", 1],
    ]
    twice = ["r1", "/a", 500, "disk full"]
    assert found["4"] == [twice, twice, ["r3", "/b", 503, "no route"]]
    assert found["5"] == [
        ["2023-11-14 23:13:20", "ERROR", "no route"], ["2023-11-14 23:13:50", "INFO", "again"],
    ]  # fmt: skip
    assert found["6"] == [["no route", "2023-11-14 23:13:20", 1]]
    assert found["7"] == [["web-2", "/var/log/app.log", "no-match", 1, "???"]]
    assert found["8"] == [["web-2", "2023-11-14 22:15:20"]]
    assert found["9"] == [[AGENT, 11, 20, 2]]
    assert (found["lines"], found["copied"]) == (5, 6)
    assert found["10"] == [["2023-11-14 22:13:00", 2], ["2023-11-14 22:15:00", 1]]
    assert {str(number) for number in range(1, 11)} <= set(found)


def code_of(page: str, cluster: Cluster, folder: Path) -> list[tuple[str, str]]:
    """Returns a pair (name, code) for each block of Python code on the page. The name is the number
    of the question that the block answers. If the block answers no question, the name is the
    heading of the block's section. In the code, the addresses of `cluster` and the directory
    `folder` replace those of the page. The code of the first pair is not from the page: it sets the
    variable `folder`."""
    assert page.count(SESSION) == 1
    changes = {
        "127.0.0.1:9092": cluster.broker,
        "http://127.0.0.1:8081": cluster.registry,
        '"/data/': f'"{folder}/',
        SESSION: SESSION.replace(".config", ".config(map=settings).config", 1),
    }
    for old, new in changes.items():
        page = page.replace(old, new)
    found = [("folder", f"folder = {str(folder)!r}")]
    for section in re.split(r"^##+ ", page, flags=re.MULTILINE):
        heading = section.partition("\n")[0].partition(".")[0]
        found += [
            (heading, code) for code in re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
        ]
    return found


def write_logs(cluster: Cluster) -> None:
    """Sends the logs that the page describes. They come from two hosts, have a pause of an hour,
    and contain a line that was sent twice."""
    registry = RegistryClient(cluster.registry)
    texts = {topic: record_of(fields) for topic, fields in SCHEMAS.items()}
    texts["app.rejected"] = schema_text("Rejected")
    with Client(cluster.broker) as client:
        topics = [NewTopic(topic, 2, 1) for topic in texts]
        assert client.create_topics(topics) == dict.fromkeys(texts)
        audit_topic.ensure(client, time.sleep)
        while len(sources_of(client, list(texts), "main")) < len(texts):
            client.pause(0.05)
        for file, topic, host in ((11, "app", "web-1"), (12, "app", "web-2"), (13, "web", "web-1")):
            announce(cluster, client, topic, file, host)
        for topic, text in texts.items():
            schema_id = registry.register(f"{topic}-value", text)
            for row in LINES[topic]:
                send(cluster, client, topic, Codec(text), schema_id, *row)


def record_of(fields: Mapping[str, str]) -> str:
    each = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "Line", "fields": each})


def announce(cluster: Cluster, client: Client, topic: str, file: int, host: str) -> None:
    source = sources_of(client, [topic], "main")[topic]
    path = f"/var/log/{topic}.log"
    message = Announcement(START_MS, AGENT, file, host, path, 1, file, b"", 0, source)
    cluster.publish(client, AUDIT, 0, pa.array([encode(message)], pa.binary()), None)


def send(
    cluster: Cluster, client: Client, topic: str, codec: Codec, schema_id: int, file: int,
    number: int, after_ms: int, values: Sequence[Any],
) -> None:  # fmt: skip
    """Sends one line, which is line `number` of `file`. Its event time is `after_ms` milliseconds
    after START_MS."""
    names = codec.arrow_schema.names
    batch = pa.RecordBatch.from_pylist([dict(zip(names, values, strict=True))], codec.arrow_schema)
    one = np.ones(1, np.int64)
    origins = Origins(one * AGENT, one * file, one * number * 20, one * 20)
    data = add_prefix(schema_id, codec.encode(batch))
    cluster.publish(client, topic, file % 2, data, origins, one * (START_MS + after_ms))


LINES: dict[str, list[tuple[int, int, int, Sequence[Any]]]] = {
    "app": [
        (11, 0, -MINUTE_MS, ("r0", "INFO", "started")),
        (11, 1, 0, ("r1", "ERROR", "disk full")),
        (11, 1, 0, ("r1", "ERROR", "disk full")),
        (12, 0, 2 * MINUTE_MS, ("r2", "ERROR", "disk full")),
        (11, 2, HOUR_MS, ("r3", "ERROR", "no route")),
        (11, 3, HOUR_MS + 30_000, ("r3", "INFO", "again")),
    ],
    "web": [
        (13, 0, 0, ("r1", "ann", "/a", 500, 10.0)),
        (13, 1, 5 * MINUTE_MS, ("r4", "bob", "/b", 200, 200.0)),
        (13, 2, 10 * MINUTE_MS, ("r2", "ann", "/a", 200, 20.0)),
        (13, 3, HOUR_MS, ("r3", "ann", "/b", 503, 100.0)),
    ],
    "app.rejected": [
        (
            12, 1, 0,
            ("app", "no-match", "", b"???", "web-2", "/var/log/app.log", AGENT, 12, 20, 4,
             None, None, None),
        ),
    ],
}  # fmt: skip
"""For each topic, the lines to send. Each line has a file, a line number, a time in milliseconds
after START_MS, and the values of the schema's fields."""
