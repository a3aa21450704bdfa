"""Decompresses many frames of Zstandard with one decoder (RFC 8878, section 3.1.1).

Making a decoder takes about 10 us, and decompressing a small frame takes a tenth of this time.
Frames that follow one another are one stream, so a single decoder can decompress all of them. The
decoder's output is then cut into the contents of the single frames, at the content sizes that the
frames state.
"""

from __future__ import annotations

import cramjam
import numpy as np

from skidway.kafka.codecs import DECOMPRESSED_BYTES_MAX
from skidway.kafka.record_layout import Bools, Bytes, Int64s

_MAGIC = 0xFD2FB528
# The largest size of a frame's header in bytes: magic 4, descriptor 1, window 1, dictionary id 4,
# content size 8.
_HEAD_BYTES_MAX = 18

# The largest ratio of a frame's stated content size to the frame's size. If a frame states more, it
# is decompressed alone, and memory for its whole content is not allocated at once.
_RATIO_MAX = 64
_BLOCK_HEADER_BYTES = 3
_RLE, _RESERVED = 1, 3  # types of blocks
_BLOCKS_MAX = 64  # a frame with more blocks is decompressed alone; 64 blocks have at most 8 MiB


def content_sizes(packed: memoryview, starts: Int64s, ends: Int64s) -> Int64s:
    """Returns, for each i, the content size that the frame in packed[starts[i]:ends[i]] states. The
    size is -1 if these bytes are not exactly one frame, if the frame uses a dictionary, or if it
    states no size or an implausible one. The caller then decompresses these bytes alone."""
    padded = np.zeros(len(packed) + _HEAD_BYTES_MAX, np.uint8)
    padded[: len(packed)] = packed
    words = np.ndarray(len(packed) + _HEAD_BYTES_MAX - 7, "<u8", padded, strides=(1,))
    head = words[starts]
    descriptor = ((head >> np.uint64(32)) & np.uint64(255)).astype(np.int64)
    single = descriptor >> 5 & 1
    field = descriptor >> 6
    known = (head & np.uint64(0xFFFFFFFF)) == _MAGIC
    # The frame must have a content size, but neither a dictionary id nor the reserved bit.
    known &= (descriptor & 0b1011 == 0) & ((field > 0) | (single == 1))
    size_bytes = np.where(field == 0, single, 1 << field)
    size_at = starts + 6 - single
    stated: Int64s = (words[size_at] & _LOW_BYTES[size_bytes]).view(np.int64)
    sizes = stated + np.where(size_bytes == 2, 256, 0)
    most = np.minimum(_RATIO_MAX * (ends - starts), DECOMPRESSED_BYTES_MAX)
    known &= (sizes >= 0) & (sizes <= most)
    known &= _filled(padded, size_at + size_bytes, ends - 4 * (descriptor >> 2 & 1), known)
    return np.where(known, sizes, -1)


def decompress_into(frames: memoryview, room: memoryview) -> bool:
    """Decompresses frames that follow one another. Returns whether the frames are sound and their
    contents fill `room` exactly."""
    try:
        written: int = cramjam.zstd.decompress_into(frames, room)
    except cramjam.DecompressionError:
        return False
    return written == len(room)


def _filled(data: Bytes, at: Int64s, ends: Int64s, known: Bools) -> Bools:
    """Returns for each frame i whether its blocks, which begin at `at[i]`, end exactly at
    `ends[i]`. If `known[i]` is False, the header of frame i has failed a check, and the result for
    this frame is False.
    """
    filled = np.zeros(len(at), np.bool_)
    rows = np.flatnonzero(known)
    at = at.copy()
    for _ in range(_BLOCKS_MAX):
        rows = rows[at[rows] + _BLOCK_HEADER_BYTES <= ends[rows]]
        if not len(rows):
            break
        place = at[rows]
        head = data[place] | data[place + 1].astype(np.int64) << 8
        head |= data[place + 2].astype(np.int64) << 16
        kind = head >> 1 & 3
        at[rows] = place + _BLOCK_HEADER_BYTES + np.where(kind == _RLE, 1, head >> 3)
        last = head & 1 == 1
        filled[rows] = last & (kind != _RESERVED) & (at[rows] == ends[rows])
        rows = rows[~last & (kind != _RESERVED)]
    return filled


_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
