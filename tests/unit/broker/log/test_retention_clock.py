from __future__ import annotations

from pathlib import Path

from skidway.broker.log.config import LogConfig
from skidway.broker.log.flusher import WorkOutcome, timed
from skidway.broker.log.log_manager import LogManager
from skidway.broker.log.retention_clock import RetentionClock
from support.batches import PARTITION, append, batch, flush, open_in
from support.clock import ManualClock
from support.promises import promise

DAY_S = 86_400
DAY_MS = DAY_S * 1000


def test_it_is_the_wall_clock_as_long_as_that_does_not_jump() -> None:
    """Retention measures ages by a clock of its own. While the wall clock does not jump, this clock
    shows the same time. If NTP corrects the wall clock by a second, the clock of retention follows
    the correction."""
    clock = ManualClock()
    ages = RetentionClock(clock)
    for correction_ms in (0, 900, -1500, 0):
        clock.advance(3600)
        clock.set_time_ms(clock.time_ms() + correction_ms)
        assert ages.now_ms() == clock.time_ms()


def test_a_jump_forward_is_made_up_for_at_twice_the_speed() -> None:
    """If the wall clock jumps forward, retention's clock runs twice as fast until it agrees with
    the wall clock again. For example, after a jump of a week, it advances two days in each day, and
    agrees with the wall clock after a week."""
    clock = ManualClock()
    ages, start = RetentionClock(clock), clock.time_ms()
    clock.set_time_ms(start + 7 * DAY_MS)
    assert ages.now_ms() == start
    clock.advance(DAY_S)
    assert ages.now_ms() == start + 2 * DAY_MS
    clock.advance(6 * DAY_S)
    assert ages.now_ms() == clock.time_ms()


def test_a_jump_back_is_followed_at_once() -> None:
    """If the wall clock jumps back, retention's clock follows at once, so that nothing expires too
    early. When the wall clock is corrected again, retention's clock catches up at twice the
    speed."""
    clock = ManualClock()
    ages, start = RetentionClock(clock), clock.time_ms()
    clock.set_time_ms(start - DAY_MS)
    assert ages.now_ms() == start - DAY_MS
    clock.advance(10)
    clock.set_time_ms(start + 10_000)
    assert ages.now_ms() == start - DAY_MS + 20_000


class Worker:
    def submit(self, work: object, done: object) -> None:
        assert callable(work)
        assert callable(done)
        outcome: WorkOutcome = timed(work)
        done(outcome)


@promise("4 append time", "clocks broker")
def test_a_clock_set_ahead_deletes_and_forgets_nothing(tmp_path: Path) -> None:
    """If the wall clock is set a year ahead, no segment is deleted during the next hour, and the
    broker still recognizes a retried batch as a duplicate."""
    clock = ManualClock()
    logs = LogManager(clock, Worker())
    logs.open_directories([tmp_path])
    (tmp_path / "logs-0").mkdir()
    log = open_in(tmp_path / "logs-0", LogConfig(segment_bytes=100))
    logs.logs[PARTITION] = log
    sent = [batch(b"%d" % n * 50, producer_id=1, epoch=0, sequence=n) for n in range(3)]
    for each in sent:
        append(log, bytearray(each), clock.time_ms())
    flush(log)
    assert len(log.segments) == 3
    clock.set_time_ms(clock.time_ms() + 365 * DAY_MS)
    for _ in range(12):
        clock.advance(300)
        logs.expire(lambda _: None, DAY_MS)
    assert (len(log.segments), log.log_start_offset) == (3, 0)
    assert append(log, bytearray(sent[2]), clock.time_ms()) == 2
    logs.release()
