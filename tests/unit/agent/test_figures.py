"""Tests the agent's metrics for each topic, and the number of its pending bytes: bytes that are not
yet acknowledged, rejected, or declared lost or uncertain."""

import threading
from typing import Any

import pytest
from prometheus_client import REGISTRY, generate_latest

from skidway.agent import events, program
from skidway.agent.settings import SourceSettings
from skidway.agent.values.set_apart import Unseen
from skidway.telemetry import Health
from support.agent_world import World, raw, settings

A = "/log/a.log"


def figure(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"skidway_agent_{name}", labels) or 0


def a_world(topic: str, **source: Any) -> World:
    world = World(settings(SourceSettings(topic=topic, paths=["/log/*"], **source)))
    world.brokers.partitions = {topic: 1, f"{topic}.rejected": 1}
    return world


def test_rejected_lines_and_bytes_are_told_by_topic_and_reason() -> None:
    """The agent counts rejected lines and their bytes by data topic and reason. The bytes are those
    in the file, including line terminators."""
    world = a_world("figures-rejected", max_line_bytes=64)
    world.files.append(A, b"good\n\xff\n\xfe\xfe\r\n" + b"x" * 65 + b"\n")
    world.start()
    world.settle(10)
    for reason, lines, size in (("encoding", 2, 6), ("too-long", 1, 66)):
        labels = {"topic": "figures-rejected", "reason": reason}
        assert figure("rejected_lines_total", **labels) == lines
        assert figure("rejected_bytes_total", **labels) == size


def test_replaced_lines_are_told_by_topic() -> None:
    """If the agent replaces invalid bytes of a line, the metrics count the line as replaced, and
    not as rejected."""
    world = a_world("figures-replaced", on_error="replace")
    world.files.append(A, b"good\n\xff\n")
    world.start()
    world.settle(10)
    labels = {"topic": "figures-replaced"}
    assert figure("replaced_lines_total", **labels) == 1
    assert figure("rejected_lines_total", reason="encoding", **labels) == 0


def test_settled_bytes_are_those_that_the_checkpoint_has_passed() -> None:
    """The metric of settled bytes rises with each step of a file's checkpoint, by the bytes of this
    step."""
    world, before = a_world("figures-settled"), figure("settled_bytes_total")
    world.start()
    for data, total in ((b"one\n", 4), (b"and another\n", 16), (b"half", 16)):
        world.files.append(A, data)
        world.settle(5)
        assert figure("settled_bytes_total") - before == total


def test_a_refused_record_is_a_lost_line_with_its_bytes() -> None:
    """The metrics count a record that the broker refuses as one lost line with its bytes."""
    world = a_world("figures-refused")
    world.files.append(A, b"a\nbb\nc\n")
    world.start()
    world.brokers.refuses = lambda record: record.first == 2
    world.settle()
    labels = {"topic": "figures-refused", "certainty": "lost"}
    assert figure("set_apart_ranges_total", **labels) == 1
    assert figure("set_apart_bytes_total", **labels) == 3
    assert figure("set_apart_lines_total", **labels) == 1
    assert figure("set_apart_bytes_total", topic="figures-refused", certainty="uncertain") == 0


def _truncate_unread(world: World, data: bytes) -> None:
    """Appends bytes without a line end. As soon as the agent has found them, truncates the file."""
    world.files.append(A, data)
    for _ in range(3):
        world.tick(0.2)
    world.files.truncate(A)
    world.settle(5)


def test_lost_bytes_are_as_many_as_were_seen() -> None:
    """If a file is truncated, the metrics count as lost the bytes that the agent had found in the
    file and not delivered. The metrics count no lost lines. They count the loss once, even if the
    agent is restarted after it has reported the loss to the audit."""
    world = a_world("figures-lost")
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    _truncate_unread(world, b"23456")
    labels = {"topic": "figures-lost", "certainty": "lost"}
    assert figure("set_apart_ranges_total", **labels) == 1
    assert figure("set_apart_bytes_total", **labels) == 5
    assert figure("set_apart_lines_total", **labels) == 0
    assert [file["lost"] for file in world.ledger()] == [5]
    world.kill()
    world.start()
    world.settle(5)
    assert figure("set_apart_bytes_total", **labels) == 5


def test_bytes_are_lost_only_once() -> None:
    """A broker refuses a record, and then the record's file is truncated before the agent has read
    the file to its end. The metrics count both the record's bytes and the unread bytes as lost, but
    no byte twice."""
    world = a_world("figures-once")
    world.files.append(A, b"a\nbb\nc\n")
    world.start()
    world.brokers.refuses = lambda record: record.first == 2
    world.settle()
    _truncate_unread(world, b"23456")
    labels = {"topic": "figures-once", "certainty": "lost"}
    assert figure("set_apart_ranges_total", **labels) == 2
    assert figure("set_apart_bytes_total", **labels) == 3 + 5
    assert [file["lost"] for file in world.ledger()] == [3 + 5]


def test_generations_that_nobody_saw_are_ranges_without_bytes() -> None:
    """If rotated files were deleted before the agent saw them, the metrics count a lost range of
    their topic, but no lost bytes, because nobody knows how many bytes the files had."""
    events.unseen(Unseen("figures-unseen", "id", "/log/a", "gone"))
    labels = {"topic": "figures-unseen", "certainty": "lost"}
    assert figure("set_apart_ranges_total", **labels) == 1
    assert figure("set_apart_bytes_total", **labels) == 0


# --- pending bytes ------------------------------------------------------------------------------


def written_and_reported(world: World) -> None:
    """Starts the agent and lets it scan its files once. Then writes a line and reports the file to
    the agent. With the fixture `quiet`, the agent's next scan comes only after an hour."""
    world.start()
    world.tick()
    world.files.append(A, b"x" * 99 + b"\n")
    world.agent.touch([A])


@pytest.fixture
def quiet() -> World:
    """An agent that searches for files at its start, and then only once an hour."""
    return World(settings(raw(), reconcile_interval_ms=3_600_000))


def test_pending_bytes_are_those_of_now(quiet: World) -> None:
    """The agent computes the pending bytes (not yet acknowledged, rejected, lost or uncertain) when
    somebody asks for them, not when it scans its files. So the pending bytes do not include bytes
    that were acknowledged since the last scan."""
    written_and_reported(quiet)
    assert quiet.agent.pending_bytes == 100
    for _ in range(10):
        quiet.tick()
    assert quiet.values() == ["x" * 99]
    assert quiet.agent.pending_bytes == 0


def test_metrics_and_health_ask_when_they_are_asked(quiet: World) -> None:
    """A request for the metrics or for /health computes the pending bytes at once, and does not
    wait for the next turn of the agent's loop."""
    written_and_reported(quiet)
    status = program.Status(Health(True, {"status": "running"}))
    assert status.answer() == Health(True, {"status": "running"})
    status.pending = lambda: quiet.agent.pending_bytes
    events.pending_from(status.pending)
    assert status.answer().detail == {"status": "running", "pending_bytes": 100}
    assert figure("pending_bytes") == 100
    for _ in range(10):
        quiet.tick()
    assert status.answer().detail["pending_bytes"] == 0
    assert b"\nskidway_agent_pending_bytes 0.0\n" in generate_latest()


def test_another_thread_can_ask_while_files_come_and_go(quiet: World) -> None:
    """Another thread can ask for the pending bytes while files are added, because the agent sums
    over a copy of the list of files."""
    quiet.start()
    quiet.tick()
    found: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            found.append(quiet.agent.pending_bytes)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for number in range(300):
            quiet.files.append(f"/log/{number}.log", b"x\n")
            quiet.agent.touch([f"/log/{number}.log"])
    finally:
        done.set()
        asking.join(60)
    found.append(quiet.agent.pending_bytes)
    assert found[-1] == 600
    assert found == sorted(found)
