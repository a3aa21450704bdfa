from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.values import identity
from skidway.agent.values.identity import (
    Mark,
    Read,
    doubt,
    fingerprint_of,
    guard_of,
    prove,
    with_mark,
)
from skidway.agent.values.intents import crc_of
from support.promises import promise


def reader(data: bytes) -> Read:
    return lambda count, position: data[position : position + count]


OLD = b"".join(b"line %d\n" % i for i in range(400))
POSITION = 2000
EVIDENCE = fingerprint_of(reader(OLD), len(OLD)), guard_of(OLD[:POSITION])
MARKS = tuple(Mark(at, crc_of(OLD[:at])) for at in (100, 500, 1500, 2000))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (OLD, None),
        (OLD + b"more", None),
        (OLD[:POSITION], None),
        (OLD[: POSITION - 1], "cut"),
        (b"", "cut"),
        (b"X" + OLD[1:], "first bytes"),
        (OLD[:1990] + b"X" + OLD[1991:], "before the position"),
    ],
)
def test_other_bytes_are_noticed(data: bytes, words: str | None) -> None:
    """The agent has doubts about a file that is shorter than the position up to which it was read.
    It also has doubts if the file's first bytes, or the last bytes before the position, have
    changed."""
    reason = doubt(reader(data), len(data), POSITION, *EVIDENCE)
    assert reason is None if words is None else words in str(reason)


def test_a_position_without_evidence_is_doubtful() -> None:
    """A position above 0 is doubtful if its guard (the checksum of the last bytes before the
    position) covers no bytes. Then nothing proves that the bytes before the position are still the
    same."""
    guard = identity.Guard(0, 0)
    assert doubt(reader(OLD), len(OLD), POSITION, EVIDENCE[0], guard) is not None
    assert doubt(reader(OLD), len(OLD), 0, EVIDENCE[0], guard) is None


@pytest.mark.parametrize(
    ("data", "position", "same"),
    [
        (OLD, 2000, True),
        (OLD[:1999], 1500, True),
        (OLD[:600] + b"X" * 3000, 500, True),
        (OLD[:300] + b"X" * 3000, 0, True),
        (b"X" + OLD[1:], 0, False),
        (OLD[:50], 0, True),
        (b"", 0, False),
    ],
)
def test_the_highest_proven_position_is_found(data: bytes, position: int, same: bool) -> None:
    """Here, a mark is a position in a file with the checksum of the bytes before it. `prove`
    returns the position of the last mark before which all bytes of the file are unchanged. It also
    says whether the file's beginning may be the same as before. If only the bytes before the first
    mark are the same, they may be a line with which each log begins, so the returned position is
    0."""
    proven = prove(reader(data), len(data), EVIDENCE[0], MARKS)
    assert (proven.position, proven.same_beginning) == (position, same)
    assert proven.crc == crc_of(OLD[:position])


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=200))
def test_marks_are_bounded_and_denser_towards_the_end(steps: list[int]) -> None:
    """Here, a mark is a position in a file with the checksum of the bytes before it. The agent
    never keeps more than MARKS_MAX marks of a file, always keeps the newest mark, and keeps the
    marks in the order of their positions."""
    marks: tuple[Mark, ...] = ()
    position = 0
    for step in steps:
        position += step
        marks = with_mark(marks, Mark(position, position))
        assert len(marks) <= identity.MARKS_MAX
        assert marks[-1] == Mark(position, position)
        assert [m.position for m in marks] == sorted({m.position for m in marks})


def test_the_gaps_between_marks_double_towards_the_start() -> None:
    """If a file grows evenly, each gap between two neighbouring marks is as long as the gap after
    it, or twice as long. No mark is further from the mark before it than from the end of the
    file."""
    marks: tuple[Mark, ...] = ()
    for position in range(1, 5_000):
        marks = with_mark(marks, Mark(position, position))
    places = [each.position for each in marks]
    gaps = [end - begin for begin, end in pairwise(places)]
    assert all(gap in (after, 2 * after) for gap, after in pairwise(gaps))
    assert all(gap <= 5_000 - end for gap, end in zip(gaps, places[1:], strict=True))
    assert gaps[0] > 500


@promise("1 agent id")
def test_ids_fit_signed_longs() -> None:
    """The agent's ids are random numbers above zero and below 2^63."""
    ids = {identity.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(0 < each < 2**63 for each in ids)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["ab12\n", None], "ab12"),
        (["", "cd34"], "cd34"),
        (["uninitialized\n", None], "host web1"),
        ([None, None], "host web1"),
    ],
)
def test_an_id_that_many_machines_have_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str | None], expected: str
) -> None:
    """If a machine has no id of its own, its host name stands for the id. The text that all copies
    of an unbooted image have is no id."""
    paths = [tmp_path / "etc", tmp_path / "dbus"]
    for path, text in zip(paths, texts, strict=True):
        if text is not None:
            path.write_text(text)
    monkeypatch.setattr("skidway.machine_id.PATHS", tuple(paths))
    monkeypatch.setattr("socket.gethostname", lambda: "web1")
    assert identity.machine_id() == expected


def test_a_machine_is_known() -> None:
    """`machine_id` always returns the same id of this machine."""
    assert identity.machine_id() == identity.machine_id() != ""
