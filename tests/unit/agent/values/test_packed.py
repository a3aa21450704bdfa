"""To save memory, checkpoints and fingerprints (hashes of first bytes) store their values packed in
bytes. Each of these objects returns the values from which it was made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.values.identity import Fingerprint, Guard, Mark
from skidway.agent.values.tracked import Checkpoint

POSITIONS = st.integers(0, 2**63 - 1)
CRCS = st.integers(0, 2**32 - 1)
GUARDS = st.builds(Guard, st.integers(0, 256), CRCS)
MARKS = st.lists(st.builds(Mark, POSITIONS, CRCS), max_size=24).map(tuple)
POINTS = st.tuples(POSITIONS, CRCS, GUARDS, MARKS)
PRINTS = st.tuples(st.integers(0, 1024), st.binary(max_size=32))


@given(POINTS, POINTS)
def test_a_checkpoint_keeps_its_values(
    values: tuple[int, int, Guard, tuple[Mark, ...]],
    others: tuple[int, int, Guard, tuple[Mark, ...]],
) -> None:
    """A checkpoint returns the values from which it was made: the position, the guard (a checksum
    of the bytes before the position) and the marks (earlier positions with checksums). Two
    checkpoints are equal only if all their values are equal."""
    point = Checkpoint(*values)
    assert (point.position, point.prefix_crc, point.guard, point.marks) == values
    assert (point == Checkpoint(*others)) == (values == others)
    assert str(values[0]) in repr(point)


@given(PRINTS, PRINTS)
def test_a_fingerprint_keeps_its_values(
    values: tuple[int, bytes], others: tuple[int, bytes]
) -> None:
    """A fingerprint (a digest of a file's first bytes) returns the length and the digest from which
    it was made. Two fingerprints are equal only if both values are equal."""
    fingerprint = Fingerprint(*values)
    assert (fingerprint.length, fingerprint.digest) == values
    assert (fingerprint == Fingerprint(*others)) == (values == others)
    assert str(values[0]) in repr(fingerprint)
