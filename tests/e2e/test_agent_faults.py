"""No line is lost or doubled because of faults of the agent, of the agent's files, or of the
services that the agent needs."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.pipeline import Writer
from support.processes import eventually
from support.promises import promise
from support.proxy import Fault, produces
from support.trials import Stage, Stories, Story, Told, Trial

STORIES = Stories()
KILLS = 3
ROTATIONS = 12
MANY_FILES = 50


@promise("all programs")
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_no_line_is_lost_or_doubled(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It causes a fault, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


# --- kills of the agent -------------------------------------------------------------------------


@STORIES.add(is_quick=True)
def agent_killed_while_it_sends(trial: Trial) -> Told:
    """No line is lost or doubled if the agent is killed with kill -9 again and again while it sends
    lines. Meanwhile the program that writes the log continues to write lines."""
    chance = random.Random(1)
    with Writer(trial.oracle, "app.log"):
        for _ in range(KILLS):
            trial.wait_appended(trial.appended() + chance.randrange(1, 3000))
            trial.pipeline.restart("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def agent_killed_between_intent_and_send(trial: Trial) -> Told:
    """An intent is a durable row in the agent's state that says which lines the agent is going to
    send. If the agent is killed before the lines of an intent have reached the broker, it sends
    these lines once after its restart."""
    trial.write("app.log", 10)
    trial.settle()
    held = trial.proxy.inject(Fault.HOLD_REQUEST, produces(trial.topic))
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.kill("agent")
    held.drop()
    assert trial.appended() == 10
    trial.pipeline.start("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == 0
    trial.expect_complete()


@STORIES.add()
def agent_killed_between_send_and_acknowledgement(trial: Trial) -> Told:
    """If the agent is killed after the broker has appended lines and before the agent has received
    the acknowledgement, the agent sends these lines again. Each line still becomes only one row."""
    held = trial.hold_answers()
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.kill("agent")
    held.drop()
    appended = trial.appended()
    assert appended > 0
    trial.pipeline.start("agent")
    trial.settle()
    assert trial.appended() == 1000 + appended
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == appended
    trial.expect_complete()


@STORIES.add()
def batch_of_a_dead_agent_arrives_late(trial: Trial) -> Told:
    """If a batch of a killed agent reaches the broker after the restarted agent has sent the same
    lines again, each line still becomes only one row."""
    held = trial.proxy.inject(Fault.HOLD_REQUEST, produces(trial.topic), times=1)
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.restart("agent")
    trial.settle()
    assert trial.appended() == 1000
    held.release()
    trial.wait_appended(1001)
    late = trial.appended() - 1000
    trial.write("app.log", 100)
    trial.settle()
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == late
    trial.expect_complete()


# --- last lines without a line ending -------------------------------------------------------------


@STORIES.add()
def last_line_without_its_end(trial: Trial) -> Told:
    """If the last line of a file has no line terminator, the agent sends the line when the file has
    not grown for a while. Text that is added to this line later becomes another row."""
    path = trial.write("app.log", 10)
    trial.oracle.put(path, "the first half")
    trial.settle()
    trial.oracle.put(path, " and the other one\n")
    trial.oracle.lines += ["the first half", " and the other one"]
    trial.write("app.log", 10)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def last_line_completed_while_the_agent_is_dead(trial: Trial) -> Told:
    """An intent is a durable row in the agent's state that says which bytes the agent is going to
    send. Here an intent covers only the first half of a line. The agent sends this half, and dies
    before the broker's acknowledgement comes. Then the rest of the line is written. After the
    restart, the agent sends the first half again, as a line of its own."""
    path = trial.write("app.log", 10)
    trial.settle()
    held = trial.hold_answers()
    trial.oracle.put(path, "the first half")
    held.wait_for_hit()
    trial.pipeline.kill("agent")
    held.drop()
    trial.oracle.put(path, " and the other one\n")
    trial.oracle.lines += ["the first half", " and the other one"]
    trial.pipeline.start("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == 1
    trial.expect_complete()


# --- changed settings ---------------------------------------------------------------------------

ONE_WORD = r"(?P<head>\S+) (?P<tail>.*)"
TWO_WORDS = r"(?P<head>\S+ \S+) (?P<tail>.*)"


@STORIES.add(parser={"type": "regex", "pattern": ONE_WORD})
def expression_changed_between_crash_and_restart(trial: Trial) -> Told:
    """An intent is a durable row in the agent's state that says which lines the agent is going to
    send. If the regular expression is changed after an intent for some lines was stored, the agent
    still parses these lines with the old expression when it sends them again. No line is
    doubled."""
    held = trial.hold_answers()
    trial.write("app.log", 300)
    held.wait_for_hit()
    trial.write("app.log", 300)
    eventually(lambda: trial.promised() == trial.oracle.bytes, what="all of it promised")
    trial.pipeline.kill("agent")
    held.drop()
    assert 0 < trial.appended() < 600
    trial.reconfigure(parser={"type": "regex", "pattern": TWO_WORDS})
    trial.pipeline.start("agent")
    trial.settle()
    old = list(trial.oracle.lines)
    trial.write("app.log", 300)
    trial.settle()
    yield
    wanted = parsed(old, ONE_WORD) + parsed(trial.oracle.lines[len(old) :], TWO_WORDS)
    rows = trial.rows()
    found = zip(rows.column("head").to_pylist(), rows.column("tail").to_pylist(), strict=True)
    assert sorted(found) == sorted(wanted)
    assert trial.loaded()["repeats"] > 0
    trial.expect_complete()


def parsed(lines: Sequence[str], pattern: str) -> list[tuple[str, ...]]:
    found = [re.fullmatch(pattern, line) for line in lines]
    assert all(found)
    return [match.groups() for match in found if match is not None]


# --- lines that do not fit ------------------------------------------------------------------------

SCHEMA = Path(__file__).with_name("line.avsc")
MISFITS = {
    "not JSON at all": "not-json",
    '{"level": "info", "code": "seven"}': "schema",
    '{"code": 7}': "schema",
    '{"level": "info", "code": 3000000000}': "schema",
}


@STORIES.add(parser={"type": "json"}, schema=str(SCHEMA))
def line_that_its_schema_refuses(trial: Trial) -> Told:
    """If a line does not fit its schema, the agent sends the whole line to the topic
    <topic>.rejected, with the line's origin and the reason. This topic is loaded and audited like
    any other topic."""
    good = [json.dumps({"level": "info", "code": code, "text": "ä"}) for code in range(300)]
    mixed = [*good[:100], *MISFITS, *good[100:], *MISFITS]
    path = trial.oracle.append("app.log", mixed)
    trial.settle()
    yield
    rows = trial.rows()
    assert sorted(rows.column("code").to_pylist()) == list(range(300))
    rejected = trial.rows(f"{trial.topic}.rejected").to_pylist()
    text = path.read_bytes()
    found = []
    for row in rejected:
        own = text[row["_offset"] : row["_offset"] + row["_length"]]
        assert own == row["line"] + b"\n"
        assert (row["first"], row["length"]) == (row["_offset"], row["_length"])
        assert (row["topic"], row["path"]) == (trial.topic, str(path))
        found.append((row["line"].decode(), row["reason"]))
    assert sorted(found) == sorted([*MISFITS.items(), *MISFITS.items()])
    trial.expect_complete()
    trial.expect_complete(f"{trial.topic}.rejected")


@STORIES.add()
def registry_down_when_the_agent_starts(trial: Trial) -> Told:
    """If the registry is down when the agent starts again, every line is delivered: at once if the
    agent's state has the schemas, and otherwise when the registry is up."""
    for name in ("agent", "registry"):
        trial.pipeline.kill(name)
    trial.write("app.log", 500)
    trial.pipeline.programs["agent"].start()
    trial.pipeline.start("registry")
    trial.pipeline.wait_healthy("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


# --- files --------------------------------------------------------------------------------------


@STORIES.add(pattern="app.log*")
def rotations_in_quick_succession(trial: Trial) -> Told:
    """If a log is rotated again and again, so that several rotations happen between two of the
    agent's scans for files, the agent reads each rotated file once."""
    chance = random.Random(2)
    for _ in range(ROTATIONS):
        path = trial.write("app.log", chance.randrange(1, 2000))
        rotate(path)
        trial.write("app.log", chance.randrange(0, 3))
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add(pattern="app.log")
def rotation_out_of_the_pattern(trial: Trial) -> Told:
    """If a file is renamed to a name that the agent's pattern does not match, the agent reads the
    file to its end. It also reads lines that are written after the rename."""
    for generation in range(3):
        path = trial.write("app.log", 500)
        wait_seen(trial, generation + 1)
        rotated = rotate(path)
        trial.oracle.append(rotated.name, [f"written to {generation} after its rename"])
    trial.write("app.log", 500)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add(pattern="app.log")
def rotations_out_of_the_pattern_in_quick_succession(trial: Trial) -> Told:
    """If files are renamed before the agent has found them, and their new names do not match the
    agent's pattern, the agent still reads each of these files once."""
    path = trial.write("app.log", 500)
    trial.settle()
    for _ in range(ROTATIONS):
        rotate(path)
        trial.write("app.log", 100)
    trial.settle()
    trial.pipeline.kill("agent")
    for _ in range(ROTATIONS):
        rotate(path)
        trial.write("app.log", 100)
    trial.pipeline.start("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add(pattern="app.log")
def generations_deleted_before_anybody_looked(trial: Trial) -> Told:
    """If rotated files are deleted before the agent has read them, their lines are not loaded, and
    the audit's verdict is "lost"."""
    path = trial.write("app.log", 500)
    trial.settle()
    trial.pipeline.kill("agent")
    lines, size = len(trial.oracle.lines), trial.oracle.bytes
    for _ in range(2):
        rotate(path)
        trial.write("app.log", 100)
    for rotated in path.parent.glob("app.log.*"):
        rotated.unlink()
    del trial.oracle.lines[lines:]
    trial.oracle.bytes = size
    rotate(path).unlink()
    trial.write("app.log", 100)
    trial.pipeline.start("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_not_complete("lost")


def wait_seen(trial: Trial, files: int) -> None:
    eventually(lambda: len(trial.ledger()) == files, what=f"the agent has seen {files} files")


def wait_closed(trial: Trial, files: int) -> None:
    eventually(
        lambda: [file["state"] for file in trial.ledger()] == ["closed"] * files,
        what=f"the agent has closed {files} files",
    )


def rotate(path: Path) -> Path:
    """Renames app.log to app.log.1, app.log.1 to app.log.2 and so on, as logrotate does."""
    last = 1
    while path.with_name(f"{path.name}.{last}").exists():
        last += 1
    for number in range(last, 1, -1):
        path.with_name(f"{path.name}.{number - 1}").rename(path.with_name(f"{path.name}.{number}"))
    return path.rename(path.with_name(f"{path.name}.1"))


@STORIES.add()
def rotation_while_the_agent_is_dead(trial: Trial) -> Told:
    """If a file is renamed while the agent is down, and the new name also matches the agent's
    pattern, the agent recognizes the file by its inode."""
    path = trial.write("app.log", 500)
    trial.settle()
    trial.pipeline.kill("agent")
    trial.write("app.log", 500)
    path.rename(path.with_name("older.log"))
    trial.write("app.log", 500)
    trial.pipeline.start("agent")
    trial.settle()
    assert len(trial.ledger()) == 2
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def file_deleted_while_it_is_open(trial: Trial) -> Told:
    """If a file is deleted while a program still writes to it, the agent reads the file as long as
    the program writes. Afterwards the agent closes the file."""
    path = trial.write("app.log", 500)
    with path.open("ab", buffering=0) as out:
        wait_seen(trial, 1)
        path.unlink()
        for number in range(500):
            line = f"line {number} of a deleted file"
            trial.oracle.lines.append(line)
            trial.oracle.bytes += out.write(f"{line}\n".encode())
        trial.settle()
    wait_closed(trial, 1)
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def file_deleted_and_written_again(trial: Trial) -> Told:
    """If a file is deleted and a new file with the same lines is created, the agent reads the new
    file as a different file. This holds even if the new file gets the same inode."""
    lines = [f"the same line {number}" for number in range(200)]
    for generation in range(3):
        path = trial.oracle.append("app.log", lines)
        trial.settle()
        path.unlink()
        wait_closed(trial, generation + 1)
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def copied_and_truncated(trial: Trial) -> Told:
    """If a log is copied and then truncated, as logrotate's copytruncate does, the lines that the
    agent read before the truncation and the lines written after it are loaded once.

    The agent cannot know whether lines were written between the copying and the truncation, so the
    audit's verdict is "lost".
    """
    path = trial.write("app.log", 1000)
    trial.settle()
    shutil.copyfile(path, f"{path}.1")
    os.truncate(path, 0)
    trial.write("app.log", 400)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_not_complete("lost")


@STORIES.add()
def truncated_before_it_was_read(trial: Trial) -> Told:
    """If a truncation removes lines before the agent has read them, the agent declares these lines
    lost. Every other line is loaded once."""
    path = trial.write("app.log", 1000)
    trial.settle()
    trial.pipeline.kill("agent")
    lines, size = len(trial.oracle.lines), trial.oracle.bytes
    trial.write("app.log", 300)
    os.truncate(path, 0)
    del trial.oracle.lines[lines:]
    trial.oracle.bytes = size
    trial.write("app.log", 400)
    trial.pipeline.start("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_not_complete("lost")


@STORIES.add(pattern="**/*.log")
def many_files(trial: Trial) -> Told:
    """On a busy host with many files, the agent reads all lines of all files. It also reads files
    in directories that are created after the agent's start."""
    for turn in range(4):
        for number in range(MANY_FILES):
            trial.write(f"app-{number % 7}/{number}.log", 20 + turn)
    trial.settle()
    assert len(trial.ledger()) == MANY_FILES
    yield
    trial.expect_exactly()
    trial.expect_complete()
