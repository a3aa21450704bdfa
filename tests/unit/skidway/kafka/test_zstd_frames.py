"""Tests the functions that decompress several frames of Zstandard in one call."""

from __future__ import annotations

from collections.abc import Sequence

import cramjam
import numpy as np
import pytest

from skidway.kafka.zstd_frames import content_sizes, decompress_into


def _sizes(pieces: Sequence[bytes]) -> list[int]:
    ends = np.cumsum([len(piece) for piece in pieces])
    starts = ends - [len(piece) for piece in pieces]
    return content_sizes(memoryview(b"".join(pieces)), starts, ends).tolist()


@pytest.mark.parametrize("size", [1, 255, 256, 257, 65_791, 65_792, 300_000])
def test_the_size_that_a_frame_states_is_the_size_of_its_contents(size: int) -> None:
    """`content_sizes` reads the size of each frame's content from the frame's header, without
    decompressing the frame. This works for each width of the header's size field."""
    data = np.random.default_rng(1).integers(0, 40, size).astype(np.uint8).tobytes()
    frames = [bytes(cramjam.zstd.compress(data, 1)), bytes(cramjam.zstd.compress(b"x" * 40, 1))]
    assert _sizes(frames) == [size, 40]
    room = bytearray(size + 40)
    assert decompress_into(memoryview(b"".join(frames)), memoryview(room))
    assert room == data + b"x" * 40


def test_a_frame_ends_with_its_piece() -> None:
    """Each range of bytes that is given to `content_sizes` must be exactly one frame. If the frame
    does not end at the end of the range, its size is reported as -1 (unknown), even if the next
    range looks like a frame. Otherwise two damaged batches could be taken for two intact
    batches."""
    inner = bytes(cramjam.zstd.compress(b"inside", 1))
    outer = b"\x28\xb5\x2f\xfd\x20" + bytes([len(inner)])
    outer += (1 | len(inner) << 3).to_bytes(3, "little")  # the last block, not compressed
    assert _sizes([outer + inner]) == [len(inner)]
    assert _sizes([outer, inner]) == [-1, len(b"inside")]
    assert _sizes([outer + inner + inner]) == [-1]
    assert _sizes([outer + inner[:-1], b""]) == [-1, -1]


def test_damaged_frames_do_not_fill_the_room() -> None:
    """`decompress_into` returns False if the frames are damaged, or if their contents do not fill
    the given memory exactly."""
    frame = bytearray(cramjam.zstd.compress(b"some text " * 9, 1))
    assert decompress_into(memoryview(bytes(frame)), memoryview(bytearray(90)))
    assert not decompress_into(memoryview(bytes(frame)), memoryview(bytearray(91)))
    frame[5] += 1  # changes the size that the header states
    assert not decompress_into(memoryview(bytes(frame)), memoryview(bytearray(91)))
