from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway import log
from skidway.log import REMEMBERED_ERRORS_MAX, REPEAT_AFTER_S, TEXT_MAX, JsonLines, Repeats


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Sets up a program's logging at level info, and yields the stream to which the lines are
    written. Afterwards the test run's own logging is restored."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    log.configure("broker", "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_line_has_time_level_program_event_and_fields(written: io.StringIO) -> None:
    """Each log event is one JSON object with the time, level, program, event, and the event's own
    fields."""
    log.get("broker.log").info("segment_rolled", topic="hdfs-logs", base_offset=1200)
    (line,) = lines(written)
    assert str(line.pop("time")).endswith("Z")
    assert line == {
        "level": "info",
        "program": "broker",
        "event": "segment_rolled",
        "topic": "hdfs-logs",
        "base_offset": 1200,
    }


def test_long_texts_are_cut(written: io.StringIO) -> None:
    """However long a text is that came from elsewhere, a line stays short: as a field, as bytes, in
    the text of an exception, and in what a library says."""
    long = "x" * 1_000_000
    log.get("broker").warning("refused", reason=long, raw=long.encode())
    try:
        raise ValueError(long)  # noqa: TRY301
    except ValueError as error:
        log.get("broker").error("failed", exc=error)
    logging.getLogger("library").warning("Invalid request: %s", long)
    assert [line["event"] for line in lines(written)] == ["refused", "failed", "library"]
    assert max(len(line) for line in written.getvalue().splitlines()) < 3 * TEXT_MAX
    assert str(lines(written)[0]["reason"]).endswith("xx ... (998000 more)")


def test_time_is_rfc3339_utc_with_milliseconds() -> None:
    """The times of log events are in UTC with milliseconds in three digits."""
    assert log.rfc3339(1_700_000_000.0421) == "2023-11-14T22:13:20.042Z"
    assert log.rfc3339(0) == "1970-01-01T00:00:00.000Z"


def test_lower_levels_are_silent(written: io.StringIO) -> None:
    """Log events below the configured level are not written."""
    log.configure("broker", "warning", written)
    log.get("broker").info("segment_rolled")
    assert lines(written) == []
    log.get("broker").warning("segment_cut")
    assert [line["event"] for line in lines(written)] == ["segment_cut"]


def test_any_field_becomes_json(written: io.StringIO) -> None:
    """A field of a log event may contain a path, bytes that are not UTF-8, a set or a line break.
    The event is still one line of valid JSON."""
    log.get("x").info(
        "event", path=Path("/a"), raw=b"\xff", names={"b", "a"}, text="zażółć\n", level="mine"
    )
    (line,) = lines(written)
    assert line["path"] == "/a"
    assert line["raw"] == "\\xff"
    assert line["names"] == ["a", "b"]
    assert line["text"] == "zażółć\n"
    assert (line["level"], line["level_"]) == ("info", "mine")


def test_error_carries_traceback(written: io.StringIO) -> None:
    """An error event with an exception is one line. The line contains the exception's type, text
    and traceback."""
    try:
        {}["gone"]
    except KeyError as error:
        log.get("x").error("unexpected_failure", exc=error)
    (line,) = lines(written)
    assert line["error"] == "KeyError: 'gone'"
    assert "test_error_carries_traceback" in str(line["traceback"])


def test_repeated_error_is_held_back_and_counted(written: io.StringIO) -> None:
    """If an error is repeated within a short time, the log has it only once. At the end of the
    program, the log gets the number of repeats that were left out."""
    broker = log.get("broker")
    for _ in range(5):
        broker.error("fsync_failed", path="/data/0.log")
    broker.error("fsync_failed", path="/data/1.log")
    assert [line["path"] for line in lines(written)] == ["/data/0.log", "/data/1.log"]
    log.flush()
    assert lines(written)[-1]["path"] == "/data/0.log"
    assert lines(written)[-1]["suppressed"] == 4


def test_information_is_never_held_back(written: io.StringIO) -> None:
    """Info events are written every time, even if they are repeated. Only errors and the events of
    libraries are limited."""
    for _ in range(3):
        log.get("broker").info("segment_rolled")
    assert len(lines(written)) == 3


def test_libraries_pass_from_warning_on(written: io.StringIO) -> None:
    """If a library logs the same warning again and again within a short time, the log has only one
    JSON line for it. A library's events below the level warning are not written."""
    kazoo = logging.getLogger("kazoo.client")
    kazoo.info("connecting to %s", "a")
    for _ in range(3):
        kazoo.warning("connection to %s dropped", "a")
    (line,) = lines(written)
    assert line["event"] == "library"
    assert line["logger"] == "kazoo.client"
    assert line["message"] == "connection to a dropped"


def test_unwritable_stream_drops_lines_and_says_so_later() -> None:
    """If a log line cannot be written, the program continues. The next line that can be written
    contains the number of lost lines."""

    class Full(io.StringIO):
        full = True

        def write(self, text: str) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().write(text)

    stream = Full()
    handler = JsonLines("agent", stream)
    record = logging.LogRecord("x", logging.WARNING, "", 0, "words", (), None)
    handler.emit(record)
    stream.full = False
    other = logging.LogRecord("x", logging.WARNING, "", 0, "other words", (), None)
    handler.emit(other)
    (line,) = lines(stream)
    assert line["dropped_lines"] == 1


def test_error_is_written_again_once_its_silence_is_over() -> None:
    """A repeated error is not written for a certain interval. After the interval it is written
    again, with the number of repeats that were not written."""
    repeats = Repeats()
    assert repeats.admit("a", {}, 0.0) == 0
    assert repeats.admit("a", {}, 1.0) is None
    assert repeats.admit("a", {}, REPEAT_AFTER_S - 0.1) is None
    assert repeats.admit("a", {}, REPEAT_AFTER_S) == 2
    assert repeats.expired(REPEAT_AFTER_S + 1, everything=False) == []


def test_held_back_error_is_told_by_any_later_line() -> None:
    """Repeats of an error are not written for a certain interval. After the interval their number
    is written with the next line of any kind, even if the error does not come again."""
    repeats = Repeats()
    repeats.admit("a", {"event": "a"}, 0.0)
    repeats.admit("a", {"event": "a"}, 1.0)
    assert repeats.expired(REPEAT_AFTER_S, everything=False) == [({"event": "a"}, 1)]
    assert repeats.expired(REPEAT_AFTER_S, everything=True) == []


def test_memory_of_errors_is_bounded() -> None:
    """To recognize repeats, the log remembers a limited number of errors. If there are more, it
    forgets the errors that it has remembered for the longest time."""
    repeats = Repeats()
    for number in range(REMEMBERED_ERRORS_MAX + 5):
        repeats.admit(str(number), {}, 0.0)
    assert repeats.admit("0", {}, 1.0) == 0
    assert repeats.admit(str(REMEMBERED_ERRORS_MAX), {}, 1.0) is None


def test_unknown_level_is_a_programmers_error() -> None:
    """If a program configures a log level that does not exist, an exception is raised at once."""
    with pytest.raises(ValueError, match="verbose"):
        log.configure("x", "verbose", io.StringIO())
