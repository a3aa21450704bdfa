"""Writes log lines as JSON to standard output. Each line has a constant event name, and fields.

    {"time": "2026-01-02T03:04:05.678Z", "level": "info", "program": "broker",
     "event": "segment_rolled", "topic": "hdfs-logs", "partition": 0, "base_offset": 1200}

The level info is for a change of state, warning for a problem that the program has handled but that
somebody should watch, and error for data at risk. Nothing is logged per request. Payloads are never
logged, and texts of more than `TEXT_MAX` characters are cut. The same error (same event and fields)
is written at most once in `REPEAT_AFTER_S` seconds. The next line with this error says how many
repeats were suppressed. Lines that libraries log, from level warning on, are written as the event
"library", and their repeats are suppressed in the same way.

If the log cannot be written (a full disk behind standard output, a closed pipe), the program
continues. Lines that cannot be written are dropped, and the next line that is written says how many
were dropped.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any, TextIO

REPEAT_AFTER_S = 10.0
REMEMBERED_ERRORS_MAX = 1000
"""The log suppresses the repeats of at most this many distinct errors. If there are more errors,
the log forgets the oldest error.
"""

TEXT_MAX = 2000
"""A line has at most this many characters of a text, which may come from the network."""

LIBRARY_EVENT = "library"

LEVELS = ("info", "warning", "error")


class Log:
    """Writes the events of one module. `get` makes a `Log` for each module at little cost."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    @property
    def name(self) -> str:
        """The logger's name."""
        return self._logger.name

    def info(self, event: str, **fields: Any) -> None:
        """Writes a log line about a change of state."""
        self._write(logging.INFO, event, fields, None)

    def warning(self, event: str, **fields: Any) -> None:
        """Writes a log line about a handled problem that somebody should watch."""
        self._write(logging.WARNING, event, fields, None)

    def error(self, event: str, *, exc: BaseException | None = None, **fields: Any) -> None:
        """Writes a log line that says that data is at risk. If `exc` is given, the line has the
        traceback of `exc` as one field."""
        self._write(logging.ERROR, event, fields, exc)

    def _write(
        self, level: int, event: str, fields: dict[str, Any], exc: BaseException | None
    ) -> None:
        if self._logger.isEnabledFor(level):
            info = None if exc is None else (type(exc), exc, exc.__traceback__)
            self._logger.log(level, event, exc_info=info, extra={"skidway_fields": fields})


def get(name: str) -> Log:
    """Returns the log of a module: `log = get(__name__)`."""
    return Log(name)


def configure(program: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Sends all logs to `stream` (by default standard output) as JSON lines. Removes all other
    handlers."""
    handler = JsonLines(program, stream if stream is not None else sys.stdout)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_number(level))


def flush() -> None:
    """Writes the counts of suppressed errors that are not written yet. Call this function before
    the program ends."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, JsonLines):
            handler.flush_suppressed(everything=True)


class JsonLines(logging.Handler):
    """A logging handler that writes each record as a line of JSON, unless the line repeats a recent
    error. Any thread may call the handler, because it has a lock."""

    def __init__(self, program: str, stream: TextIO) -> None:
        super().__init__()
        self._program = program
        self._stream = stream
        self._dropped = 0
        self._repeats = Repeats()
        self.addFilter(_lets_through)

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record. Before this record, writes the errors whose suppression has ended,
        with the numbers of their repeats (`flush_suppressed`).
        """
        now = time.monotonic()
        line = self._line(record)
        suppressed: int | None = 0
        if record.levelno >= logging.ERROR or line["event"] == LIBRARY_EVENT:
            suppressed = self._repeats.admit(_identity(line), line, now)
        self.flush_suppressed(now=now)
        if suppressed is not None:
            self._put({**line, "suppressed": suppressed} if suppressed else line)

    def flush_suppressed(self, *, now: float | None = None, everything: bool = False) -> None:
        """Writes each error whose suppression has ended, with the number of the repeats that were
        suppressed. Leaves out errors that had no repeats. With `everything`, the suppression of all
        errors ends now."""
        moment = time.monotonic() if now is None else now
        for line, count in self._repeats.expired(moment, everything=everything):
            self._put({**line, "time": rfc3339(time.time()), "suppressed": count})

    def _line(self, record: logging.LogRecord) -> dict[str, Any]:
        line: dict[str, Any] = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "program": self._program,
        }
        fields = getattr(record, "skidway_fields", None)
        if fields is None:
            message = _cut(record.getMessage())
            line |= {"event": LIBRARY_EVENT, "logger": record.name, "message": message}
        else:
            line |= {"event": record.msg} | {
                name if name not in line else f"{name}_": _cut(value)
                for name, value in fields.items()
            }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = _cut(f"{record.exc_info[0].__name__}: {record.exc_info[1]}")
            told = traceback.format_exception(*record.exc_info)
            line["traceback"] = "".join(_cut(each) for each in told)
        return line

    def _put(self, line: dict[str, Any]) -> None:
        if self._dropped:
            line = {**line, "dropped_lines": self._dropped}
        try:
            self._stream.write(json.dumps(line, default=_plain, ensure_ascii=False) + "\n")
            self._stream.flush()
            self._dropped = 0
        except (OSError, ValueError):  # ValueError: the stream was closed
            self._dropped += 1


class Repeats:
    """Remembers which errors were written recently. It reads no clock: its methods get the time as
    a parameter, in seconds."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, dict[str, Any], int]] = {}

    def admit(self, identity: str, line: dict[str, Any], now: float) -> int | None:
        """Returns None if the line repeats an error that was written recently, and so must not be
        written now. Otherwise returns how many repeats of the line were suppressed before."""
        seen = self._seen.get(identity)
        if seen is not None and now - seen[0] < REPEAT_AFTER_S:
            self._seen[identity] = (seen[0], seen[1], seen[2] + 1)
            return None
        if seen is None and len(self._seen) >= REMEMBERED_ERRORS_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[identity] = (now, line, 0)
        return 0 if seen is None else seen[2]

    def expired(self, now: float, *, everything: bool) -> list[tuple[dict[str, Any], int]]:
        """Forgets errors that are no longer suppressed. Returns the errors that had repeats, each
        with the number of its repeats."""
        over = [
            identity
            for identity, (since, _, _) in self._seen.items()
            if everything or now - since >= REPEAT_AFTER_S
        ]
        taken = [self._seen.pop(identity) for identity in over]
        return [(line, count) for _, line, count in taken if count]


def rfc3339(seconds: float) -> str:
    """Formats a time as RFC 3339 with milliseconds, in UTC."""
    whole, ms = divmod(int(seconds * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{ms:03d}Z"


def _lets_through(record: logging.LogRecord) -> bool:
    return hasattr(record, "skidway_fields") or record.levelno >= logging.WARNING


def _identity(line: dict[str, Any]) -> str:
    varying = ("time", "traceback")
    return json.dumps({k: v for k, v in line.items() if k not in varying}, default=_plain)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > TEXT_MAX:
        return f"{value[:TEXT_MAX]} ... ({len(value) - TEXT_MAX} more)"
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value[:TEXT_MAX]).decode("utf-8", "backslashreplace")
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)


def _number(level: str) -> int:
    if level not in LEVELS:
        raise ValueError(f"no such log level: {level!r}")
    return logging.getLevelNamesMapping()[level.upper()]
