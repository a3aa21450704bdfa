from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.log.expiration import bound_producers
from skidway.broker.log.producer_state import (
    InvalidProducerEpoch,
    OutOfOrderSequence,
    ProducerState,
    SequenceRefused,
    SnapshotDamaged,
    decode_snapshot,
    encode_snapshot,
)
from skidway.kafka.batch import SEQUENCE_END, BatchHeader, read_header
from support.batches import append, batch, flush, open_in
from support.promises import promise


def header(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 7, text: bytes = b""
) -> BatchHeader:
    values = [text + b"%d" % sequence] * count
    return read_header(batch(*values, producer_id=producer, epoch=epoch, sequence=sequence))


def state_with(*each: BatchHeader) -> ProducerState:
    state, offset = ProducerState(), 0
    for one in each:
        assert state.check(one) is None
        state.update(one, offset, 0)
        offset += one.count
    return state


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """An unknown producer may begin with any sequence number, because its state may have
    expired."""
    assert ProducerState().check(header(4711)) is None


def test_sequences_go_on() -> None:
    """Only a batch with the next sequence number counts as a new batch. A higher sequence number is
    out of order."""
    state = state_with(header(0, 3), header(3, 2))
    assert state.check(header(5)) is None
    with pytest.raises(OutOfOrderSequence):
        state.check(header(6))


def test_sequences_wrap() -> None:
    """The sequence number after 2^31-1 is 0."""
    state = state_with(header(SEQUENCE_END - 2, 2))
    assert state.check(header(0)) is None


def test_the_last_five_batches_are_known_again() -> None:
    """The broker recognizes a duplicate of any of a producer's last five batches, and knows the
    offset of the stored batch. An older duplicate is refused as out of order."""
    state = state_with(*[header(n) for n in range(7)])
    for n in range(2, 7):
        stored = state.check(header(n))
        assert stored is not None
        assert stored.base_offset == n
    with pytest.raises(OutOfOrderSequence):
        state.check(header(1))


def test_a_duplicate_has_the_same_bytes() -> None:
    """If a batch has the sequence number of a stored batch, but other records or another number of
    records, the broker refuses the batch."""
    state = state_with(header(0, 2), header(2))
    with pytest.raises(OutOfOrderSequence):
        state.check(header(2, text=b"other"))
    with pytest.raises(OutOfOrderSequence):
        state.check(header(0, 1))


def test_epochs_only_rise() -> None:
    """A batch with a lower producer epoch is fenced. The first batch of a higher epoch must have
    the sequence number 0."""
    state = state_with(header(0, epoch=3))
    with pytest.raises(InvalidProducerEpoch):
        state.check(header(1, epoch=2))
    with pytest.raises(OutOfOrderSequence):
        state.check(header(1, epoch=4))
    state.update(header(0, epoch=4), 10, 0)
    assert state.check(header(1, epoch=4)) is None
    with pytest.raises(InvalidProducerEpoch):
        state.check(header(1, epoch=3))


@promise("4 append time")
def test_producers_are_forgotten_by_append_time() -> None:
    """The broker forgets a producer when its last append is longer ago than a limit. The event
    times of the records do not matter. But the broker never forgets which producer id was the
    highest."""
    state = ProducerState()
    state.update(header(0, producer=1), 0, 1000)
    state.update(header(0, producer=9), 1, 2000)
    assert state.expire(2000) == 1
    assert list(state.producers) == [9]
    assert state.expire(3000) == 1
    assert state.highest_id == 9


def test_the_log_with_most_producers_forgets_if_there_are_too_many(tmp_path: Path) -> None:
    """If the broker remembers too many producers, the log that remembers the most forgets those
    that have appended nothing for longest. Other logs, and producers that go on, lose nothing."""
    folders = tmp_path / "a", tmp_path / "b"
    for each in folders:
        each.mkdir()
    crowded, other = map(open_in, folders)
    for number in range(8):
        append(crowded, batch(b"x", producer_id=number, epoch=0, sequence=0), now_ms=number)
    append(crowded, batch(b"x", producer_id=0, epoch=0, sequence=1), now_ms=9)
    append(other, batch(b"x", producer_id=7, epoch=0, sequence=0), now_ms=0)
    assert bound_producers([other, crowded], 9) is None
    assert bound_producers([other, crowded], 8) == crowded.partition
    assert [*crowded.producers.producers] == [0, 4, 5, 6, 7]
    assert [*other.producers.producers] == [7]
    assert crowded.producers.highest_id == 7


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans())))
def test_a_snapshot_decides_as_the_state_does(moves: list[tuple[int, int, bool]]) -> None:
    """A producer state that is restored from a snapshot (the file with the stored state) accepts
    and refuses exactly the same batches as the original state."""
    state, offset = ProducerState(), 0
    following = dict.fromkeys(range(6), 0)
    for producer, count, bump in moves:
        epoch = state.producers[producer].epoch if producer in state.producers else 0
        if bump:
            epoch, following[producer] = epoch + 1, 0
        one = header(following[producer], count, epoch=epoch, producer=producer)
        state.update(one, offset, offset)
        offset += count
        following[producer] += count
    again = decode_snapshot(encode_snapshot(state, 5))
    assert again.first_append_ms == 5
    assert again.state == state
    for producer in range(6):
        for sequence in range(following[producer] + 2):
            probe = header(sequence, producer=producer)
            assert decision(again.state, probe) == decision(state, probe)


def decision(state: ProducerState, one: BatchHeader) -> object:
    try:
        return state.check(one)
    except SequenceRefused as error:
        return type(error)


def test_a_damaged_snapshot_is_known() -> None:
    """A snapshot is the file with the stored state of all producers. If a snapshot has a flipped
    bit, or lacks bytes at its end, reading it raises SnapshotDamaged."""
    data = encode_snapshot(state_with(header(0), header(1)), 1)
    for at in range(len(data)):
        for bit in range(8):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            with pytest.raises(SnapshotDamaged):
                decode_snapshot(bytes(broken))
        with pytest.raises(SnapshotDamaged):
            decode_snapshot(data[:at])


def test_an_id_that_nobody_gave_leaves_room_for_those_that_will_be(tmp_path: Path) -> None:
    """If a client uses the largest possible producer id, which the broker never gave out, the
    broker accepts the client's batches, and can still give new ids to other producers later."""
    log = open_in(tmp_path)
    append(log, batch(b"a", producer_id=7, epoch=0, sequence=0))
    append(log, batch(b"b", producer_id=(1 << 63) - 1, epoch=0, sequence=0))
    assert log.producers.highest_id == 7
    assert append(log, batch(b"b", producer_id=(1 << 63) - 1, epoch=0, sequence=0)) == 1
    flush(log)
    assert open_in(tmp_path).producers.highest_id == 7
