"""Each record of several lines, and each record of a container's log, becomes one row, even if the
agent is killed while the records are being written.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.trials import Stage, Stories, Story, Told, Trial

TRACES = Path(__file__).parents[1] / "data" / "traces"
STORIES = Stories()


def write(trial: Trial, name: str, data: bytes) -> None:
    """Appends `data` to a log in two parts. The first part ends in the middle of a line. Kills and
    restarts the agent after the first part.
    """
    path = trial.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as log:
        log.write(data[: len(data) // 2])
        log.flush()
        trial.oracle.bytes += len(data)
        trial.pipeline.restart("agent")
        log.write(data[len(data) // 2 :])


def values(trial: Trial, field: str = "line") -> list[str]:
    rows = sorted(trial.rows().to_pylist(), key=lambda row: (row["_file"], int(row["_offset"])))
    return [row[field] for row in rows]


@STORIES.add(multiline={"type": "python", "timeout.ms": 5_000})
def traces(trial: Trial) -> Told:
    """A stack trace and the log line before the trace become one row."""
    sample = (TRACES / "python.txt").read_text()
    write(trial, "app.log", sample.replace("=== ", "").encode())
    trial.settle()
    yield
    expected = [each.removesuffix("\n") for each in sample.split("=== ") if each]
    assert values(trial) == expected
    trial.expect_complete()


@STORIES.add(
    pattern="pods/*/*/*.log",
    container="cri",
    multiline={"type": "java", "timeout.ms": 5_000},
)
def pods(trial: Trial) -> Told:
    """The lines that a container on Kubernetes has printed become rows, although containerd divided
    long lines into parts. The lines of a stack trace are joined. The rows name namespace, pod and
    container."""
    sample = (TRACES / "java.txt").read_text()
    wrapped = b""
    for number, line in enumerate(sample.replace("=== ", "").splitlines()):
        time = f"2026-11-20T08:15:{number:02d}.123456789Z"
        parts = [line[at : at + 60] for at in range(0, max(len(line), 1), 60)]
        for part in parts[:-1]:
            wrapped += f"{time} stdout P {part}\n".encode()
        wrapped += f"{time} stdout F {parts[-1]}\n".encode()
    write(trial, "pods/shop_web-1_3f0c/app/0.log", wrapped)
    trial.settle()
    yield
    assert values(trial) == [each.removesuffix("\n") for each in sample.split("=== ") if each]
    for field, expected in (("namespace", "shop"), ("pod", "web-1"), ("container", "app")):
        assert set(values(trial, field)) == {expected}
    assert {row["_timestamp"].second for row in trial.rows().to_pylist()} >= {0, 1}
    trial.expect_complete()


@STORIES.add(pattern="containers/*/*-json.log", container="docker")
def containers(trial: Trial) -> Told:
    """The lines that containers have printed, and that Docker's log driver json-file has stored,
    become rows."""
    size = 16_384  # after so many bytes, Docker divides a line
    texts = [f"line {number} ".ljust(size + 20, "x") for number in range(20)]
    wrapped = b""
    for number, text in enumerate(texts):
        time = f"2026-11-20T08:15:{number % 60:02d}.5Z"
        for part in (text[:size], f"{text[size:]}\n"):
            wrapped += json.dumps({"log": part, "stream": "stderr", "time": time}).encode() + b"\n"
    write(trial, "containers/abc/abc-json.log", wrapped)
    trial.settle()
    yield
    assert values(trial) == texts
    assert set(values(trial, "container_stream")) == {"stderr"}
    trial.expect_complete()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_records_of_several_lines(stage: Stage, story: Story) -> None:
    """A record of several lines becomes one row, and every byte of its file is accounted for."""
    stage.result(story)
