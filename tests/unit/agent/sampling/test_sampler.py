"""Tests the samples of a running agent in memory. In each period, the agent draws (chooses at
random) some of the ranges of bytes that it has delivered. For each drawn range, it sends a sample
to the audit. A sample has the content sums (hashes of the content) of the range's records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.agent.batches import program_versions
from skidway.agent.sampling.sampler import ATTEMPTS_MAX
from skidway.agent.settings import ParserSettings
from skidway.agent.state.database import StateDatabase
from skidway.audit.counts.content import content_sums
from skidway.audit.topic.messages import Announcement
from skidway.audit.topic.sample import Sample
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"
PERIOD_MS = 60_000
PARSER = {"type": "regex", "pattern": r"(?P<level>[A-Z]+) (?P<text>.*)"}


def world(ranges: int = 20, **others: Any) -> World:
    source = raw(parser=ParserSettings(**PARSER))  # type: ignore[arg-type]
    made = settings(source, sample_ranges=ranges, sample_interval_ms=PERIOD_MS, **others)
    return World(made)


def write(here: World, *pieces: bytes) -> None:
    """Appends the pieces to the log one by one, so that the agent reads and sends each piece
    separately."""
    for piece in pieces:
        here.files.append(A, piece)
        here.settle(3)


def end_period(here: World) -> None:
    here.tick(PERIOD_MS / 1000)
    here.settle(30, 0.5)


def samples(here: World) -> list[Sample]:
    found: list[Sample] = here.of(Sample)
    return found


def delivered(here: World, topic: str) -> list[tuple[int, bytes]]:
    """Returns, for each record that the brokers have, the position of its line in the file, and its
    content sum (a hash of its content)."""
    found = here.brokers.records(topic)
    times, lengths = (
        np.array([getattr(x, name) for x in found], np.int64) for name in ("timestamp", "length")
    )
    datums = pa.array([x.value[5:] for x in found], pa.binary())
    return list(zip([x.first for x in found], content_sums(times, lengths, datums), strict=True))


def told(found: list[Sample], topic: str) -> list[tuple[int, bytes]]:
    parts = (part for each in found for part in each.parts if part.source.topic == topic)
    return sorted(pair for x in parts for pair in zip(x.firsts, x.sums, strict=True))


def test_a_sample_has_the_sums_of_what_brokers_have() -> None:
    """When a period has ended, the agent sends samples of the ranges of bytes that it has chosen at
    random. The content sums (hashes of content) in the samples are those of the records that the
    brokers have. This is so for rejected lines, too."""
    here = world()
    here.start()
    write(here, b"INFO one\nINFO two\n", b"?? no\nWARN three\n")
    assert not samples(here)
    end_period(here)
    found = samples(here)
    assert [(x.number, x.count, x.gone, x.path) for x in found] == [(1, 2, "", A), (2, 2, "", A)]
    assert told(found, "logs") == delivered(here, "logs")
    assert len(told(found, "logs")) == 3
    assert told(found, "logs.rejected") == delivered(here, "logs.rejected")
    assert sorted((x.first, x.end) for x in found) == [(0, 18), (18, 35)]
    assert not StateDatabase(here.connection).drawn()


@promise("6 content")
def test_a_sample_has_the_path_that_was_announced() -> None:
    """If rotation has renamed the file since a range was delivered, the sample still has the
    announced host and path of the file. The loader writes the same host and path into the rows."""
    here = world()
    here.start()
    write(here, b"INFO one\n")
    here.files.rename(A, A + ".1")
    here.settle(3)
    write(here, b"INFO two\n")
    end_period(here)
    announced = {x.file: (x.host, x.path) for x in here.of(Announcement)}
    found = samples(here)
    assert [x.gone for x in found] == ["", ""]
    assert {x.file: (x.host, x.path) for x in found} == announced
    assert [x.path for x in found] == [A, A]


def test_an_agent_draws_no_more_ranges_than_it_is_told() -> None:
    """In each period, the agent sends at most `sample.ranges` samples. If the setting is 0, it
    sends none."""
    here = world(3)
    here.start()
    write(here, *(b"INFO %d\n" % number for number in range(10)))
    assert len(StateDatabase(here.connection).drawn()) == 3
    end_period(here)
    assert [(x.number, x.count) for x in samples(here)] == [(1, 3), (2, 3), (3, 3)]
    silent = world(0)
    silent.start()
    write(silent, b"INFO one\n")
    end_period(silent)
    assert not samples(silent)


def test_a_killed_agent_neither_doubles_nor_misses_a_sample() -> None:
    """The agent publishes the sample of each chosen range once, even if the agent is killed at any
    moment between the choice of the range and the publication of the sample."""
    pieces = [b"INFO %d\n" % number for number in range(6)]
    for rounds in range(8):
        here = world()
        here.start()
        for piece in pieces:
            write(here, piece)
            here.kill()
            here.start()
        here.clock.advance(PERIOD_MS / 1000)
        for _ in range(rounds):  # in these turns, nothing is acknowledged
            here.turn()
        here.kill()
        here.start()
        end_period(here)
        found = samples(here)
        assert sorted(x.number for x in found) == list(range(1, 7)), rounds
        assert len({x.key for x in found}) == 6
        assert told(found, "logs") == delivered(here, "logs")


def test_recipes_are_kept_as_long_as_drawn_ranges_need_them() -> None:
    """If the settings have changed since a range was delivered, the sample still contains the sums
    of the records that were sent. The agent keeps the old recipe (the settings by which lines
    become records) to make these records again."""
    here = world()
    here.start()
    write(here, b"INFO one\n")
    parser = ParserSettings(type="regex", pattern=r"(?P<all>.*)")
    changed = raw(parser=parser)
    here.kill()
    here.settings = settings(changed, sample_ranges=20, sample_interval_ms=PERIOD_MS)
    here.start()
    here.settle(3)
    here.kill()
    here.start()
    end_period(here)
    (found,) = samples(here)
    assert (found.gone, told([found], "logs")) == ("", delivered(here, "logs"))


def _delete(here: World) -> None:
    here.files.delete(A)
    here.settle()  # until the agent closes the deleted file


def _truncate(here: World) -> None:
    here.files.truncate(A)


def _overwrite(here: World) -> None:
    here.files.overwrite(A, 5, b"X")


@pytest.mark.parametrize("change", [_delete, _truncate, _overwrite])
def test_what_is_not_there_any_more_is_told_as_gone(change: Callable[[World], None]) -> None:
    """If the bytes of a range that was chosen for a sample were deleted, cut off or changed, the
    sample reports the range as gone, and contains no sums."""
    here = world()
    here.start()
    write(here, b"INFO one\n")
    change(here)
    end_period(here)
    (found,) = samples(here)
    assert found.gone
    assert not found.parts
    assert (found.first, found.end) == (0, 9)


def test_another_program_does_not_tell_what_it_would_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another version of the program sent the records of a range that was chosen for a sample,
    the running version reports the range as gone. It does not send sums of its own records, which
    could differ."""
    here = world()
    here.start()
    write(here, b"INFO one\n")
    here.kill()
    monkeypatch.setattr(program_versions, "program_version", lambda: "another")
    here.start()
    end_period(here)
    (found,) = samples(here)
    assert "another version" in found.gone


def test_an_unreadable_file_is_tried_again_and_then_told_as_gone() -> None:
    """If the agent cannot read a range of bytes that it has chosen for a sample, it sends the
    sample later. If the range's file stays unreadable, the agent reports the range as gone after a
    number of attempts, so that other samples do not wait forever."""
    here = world()
    here.start()
    write(here, b"INFO one\n")
    here.kill()
    here.files.by_path[A].unreadable = True
    here.start()
    end_period(here)
    assert not samples(here)
    here.files.by_path[A].unreadable = False
    here.settle(3, 11)
    assert [x.gone for x in samples(here)] == [""]

    never = world()
    never.start()
    write(never, b"INFO one\n")
    never.kill()
    never.files.by_path[A].unreadable = True
    never.start()
    never.tick(PERIOD_MS / 1000)
    never.settle(ATTEMPTS_MAX + 1, 11)
    (found,) = samples(never)
    assert "Permission denied" in found.gone


def test_a_reload_that_draws_nothing_drops_what_is_drawn() -> None:
    """If a reload sets `sample.ranges: 0`, the agent sends no more samples, and deletes the chosen
    ranges from its state. The setting must take effect at once, because a version of the audit that
    does not support samples would call every bucket unknown."""
    here = world()
    here.start()
    write(here, b"INFO one\n")
    here.reload(world(0).settings)
    end_period(here)
    assert not samples(here)
    here.kill()
    here.settings = world().settings
    here.start()
    end_period(here)
    assert not samples(here)
