"""Turns an error of Spark or of a task into one sentence. Spark passes on a task's error only as
part of a longer text. If a task raises a SkidwayError in the loader's own process, the resulting
error is the same as on Spark.

The JVM has the text of a Java error, so py4j asks the JVM for it. Call the functions of this module
while the JVM lives."""

from __future__ import annotations

import json
import re

from skidway import machine
from skidway.errors import SkidwayError, Unreachable

UNEXPECTED = "a task failed: "
"""A task in the loader's own process may raise an error that is no SkidwayError. Then the loader
raises an error whose message begins with these words."""

GONE = "its Java process has ended"

_FAILED = "skidway-task-failed "
_FAILURE = re.compile(_FAILED + r"(\{.*\})")
_STACK = re.compile(
    r"at [\w.$/]+\S*\(.*\)$|\.\.\. \d+ more$|Driver stacktrace:$"
    r"|Error: Could not create the Java Virtual Machine|Error: A fatal exception has occurred"
)
"""Matches lines that do not say what failed."""
_EXCEPTION = re.compile(r"[\w.$]+(?:Exception|Error): ")
_PLACE = re.compile(r"at \[")
"""Matches the line in which a parser of Java says in which file, and where in it, it stopped."""
_KILLED = re.compile(r"Application has been killed\. Reason: (.+)")
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_WARNING = re.compile(r"^\S+ \S+ (?:WARN|ERROR) +\[.*?\] \S+ - (.+)$", re.MULTILINE)
_ERROR = re.compile(
    r"^\S+ \S+ ERROR +\[.*?\] \S+ - (.+)(?:\n(?:[\w$]+\.)*([\w$]+(?:Exception|Error)\b.*))?$",
    re.MULTILINE,
)
_ERRORS_TOLD = 2
"""If Spark's Java process has ended, this many of its last errors are told. Of a directory that it
cannot use, the last error has no name, but the one before it."""

_FULL = re.compile("No space left on device|Disk quota exceeded")
_AWAY = re.compile("unresponsive|connection refused|timed out|unknownhost|no route", re.IGNORECASE)
"""Matches the reasons for which the same start may succeed later, because a server was away."""


class TaskFailed(Exception):
    """Wraps a SkidwayError of a task, so that the driver can find it in the text of Spark's
    error."""

    def __init__(self, error: SkidwayError) -> None:
        content = {"exit_code": error.exit_code, "sentence": str(error)}
        super().__init__(_FAILED + json.dumps(content))


def failure(error: Exception, temporary: str) -> SkidwayError:
    """Turns an error that Spark reports into an error of the loader. If a task raised a
    SkidwayError, Spark's text contains its message, and the result has this message. Otherwise the
    result has one sentence of Spark's text. temporary: the directories of Spark's temporary
    files."""
    text = _text(error)
    found = _FAILURE.search(text)
    if found is not None:
        content = json.loads(found[1])
        return _told(content["exit_code"], content["sentence"])
    reason = _with_room(sentence_in(text) or type(error).__name__, text, temporary)
    return SkidwayError(f"a Spark task failed: {reason}")


def not_started(master: str, error: Exception, output: str, temporary: str) -> SkidwayError:
    """Turns the error that ended a start of Spark into an error of the loader. output: what the JVM
    has written. temporary: the directories of Spark's temporary files.

    If the master of a cluster drops the application, Spark stops itself, and the start then fails
    with any error. Only Spark's log has the reason; so it is if the JVM has ended. If a name of
    this machine has no address, the error says so, because Spark's own text does not say what to do
    about it.
    """
    text = _text(error)
    killed = _KILLED.search(output)
    reason = killed[1] if killed else sentence_in(text) or type(error).__name__
    causes = _CAUSE.findall(output[: killed.start()] if killed else text)
    if reason == GONE:
        reason += _last_errors(output)
    if causes and causes[-1] not in reason:
        reason += f" ({causes[-1]})"
    reason = _with_room(reason, text, temporary)
    for lacking in machine.names():
        if lacking.advice:
            reason += f"; {lacking.says}; {lacking.advice}"
    kind = Unreachable if _AWAY.search(f"{reason}{text}") else SkidwayError
    return kind(f"Spark did not start on {master}: {reason}")


def newest_warning(output: str) -> str:
    """Returns the newest warning or error of Spark's log in what the JVM has written."""
    found = _WARNING.findall(output)
    return found[-1] if found else "no warning yet; spark.log.file can have more"


def failure_here(error: Exception) -> SkidwayError:
    """Returns the error that the loader raises if a task in its own process raises `error`."""
    if isinstance(error, SkidwayError):
        return _told(error.exit_code, str(error))
    return SkidwayError(f"{UNEXPECTED}{type(error).__name__}: {error}")


def sentence_in(text: str) -> str:
    """Returns the part of Spark's text that says what failed: the first exception if the text has a
    Java stack trace, otherwise the last line. Returns "" if the text is empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not _STACK.match(line)]
    if len(said) < len(lines):
        said = said[next((n for n, line in enumerate(said) if _EXCEPTION.search(line)), -1) :]
        place = [line for line in said[1:2] if _PLACE.match(line)]
        return " ".join([_message(said[0]), *place]) if said else ""
    return lines[-1] if lines else ""


def _message(line: str) -> str:
    """Returns the message of the last exception in a line, with the class of the exception if the
    message alone says nothing, because it is only the name of a file or host."""
    found = list(_EXCEPTION.finditer(line))
    if not found:
        return line
    message = line[found[-1].end() :]
    return message if " " in message else found[-1][0].rpartition(".")[2] + message


def _last_errors(output: str) -> str:
    """Returns a continuation of the sentence GONE: the last errors in Spark's log."""
    found = dict.fromkeys(
        f"{said.rstrip('.')} ({thrown})" if thrown else said.rstrip(".")
        for said, thrown in _ERROR.findall(output)
    )
    return f"; its last errors: {'; '.join(list(found)[-_ERRORS_TOLD:])}" if found else ""


def _with_room(reason: str, text: str, temporary: str) -> str:
    """Returns the reason, and where to make room if a disk is full. Errors of Spark name no file,
    and those of the output are a task's own errors, which name theirs. text: the whole error."""
    full = _FULL.search(f"{reason}\n{text}")
    if full is None or temporary in reason:
        return reason
    if full[0] not in reason:
        reason += f" ({full[0]})"
    return f"{reason}; make room for Spark's temporary files in {temporary} (spark.local.dir)"


def unanswered() -> tuple[type[Exception], ...]:
    """Returns the types of the errors that a call to the JVM raises if the JVM is dead or the call
    fails."""
    from py4j.protocol import Py4JError

    return Py4JError, OSError


def _text(error: Exception) -> str:
    from py4j.protocol import Py4JNetworkError

    try:
        return GONE if isinstance(error, (Py4JNetworkError, ConnectionError)) else str(error)
    except unanswered():
        return GONE


def _told(exit_code: int, sentence: str) -> SkidwayError:
    kind = Unreachable if exit_code == Unreachable.exit_code else SkidwayError
    return kind(sentence)
