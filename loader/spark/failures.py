"""Turns an error of Spark or of a task into one sentence. Spark passes on a task's error only as
part of a longer text. If a task raises a SkidwayError in the loader's own process, the resulting
error is the same as on Spark."""

from __future__ import annotations

import json
import re

from skidway.errors import SkidwayError, Unreachable

UNEXPECTED = "a task failed: "
"""A task in the loader's own process may raise an error that is no SkidwayError. Then the loader
raises an error whose message begins with these words."""

_FAILED = "skidway-task-failed "
_FAILURE = re.compile(_FAILED + r"(\{.*\})")
_STACK = re.compile(r"at [\w.$/]+\S*\(.*\)$|\.\.\. \d+ more$|Driver stacktrace:$")
_EXCEPTION = re.compile(r"[\w.$]+(?:Exception|Error): ")


class TaskFailed(Exception):
    """Wraps a SkidwayError of a task, so that the driver can find it in the text of Spark's
    error."""

    def __init__(self, error: SkidwayError) -> None:
        content = {"exit_code": error.exit_code, "sentence": str(error)}
        super().__init__(_FAILED + json.dumps(content))


def failure(error: Exception) -> SkidwayError:
    """Turns an error that Spark reports into an error of the loader. If a task raised a
    SkidwayError, Spark's text contains its message, and the result has this message. Otherwise the
    result has one sentence of Spark's text."""
    found = _FAILURE.search(str(error))
    if found is not None:
        content = json.loads(found[1])
        return _told(content["exit_code"], content["sentence"])
    return SkidwayError(f"a Spark task failed: {sentence_in(str(error)) or type(error).__name__}")


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
        first = next((line for line in said if _EXCEPTION.search(line)), said[-1] if said else "")
        return _EXCEPTION.split(first)[-1]
    return lines[-1] if lines else ""


def _told(exit_code: int, sentence: str) -> SkidwayError:
    kind = Unreachable if exit_code == Unreachable.exit_code else SkidwayError
    return kind(sentence)
