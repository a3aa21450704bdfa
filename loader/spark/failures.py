"""Turns an error of Spark or of a task into one sentence. Spark passes a task's error on only as
part of a longer text. A task that fails in the loader's own process gives the same error."""

from __future__ import annotations

import json
import re

from skidway.errors import SkidwayError, Unreachable

UNEXPECTED = "a task failed: "
"""The first words of the sentence if a task in the loader's own process raises an error that the
loader does not expect."""

_FAILED = "skidway-task-failed "
_FAILURE = re.compile(_FAILED + r"(\{.*\})")
_STACK = re.compile(r"at [\w.$/]+\S*\(.*\)$|\.\.\. \d+ more$|Driver stacktrace:$")
_EXCEPTION = re.compile(r"[\w.$]+(?:Exception|Error): ")


class TaskFailed(Exception):
    """Carries a SkidwayError through Spark, as text."""

    def __init__(self, error: SkidwayError) -> None:
        content = {"exit_code": error.exit_code, "sentence": str(error)}
        super().__init__(_FAILED + json.dumps(content))


def failure(error: Exception) -> SkidwayError:
    """The task's error, if the text of Spark's error contains it; otherwise an error with one
    sentence of Spark's text."""
    found = _FAILURE.search(str(error))
    if found is not None:
        content = json.loads(found[1])
        return _told(content["exit_code"], content["sentence"])
    return SkidwayError(f"a Spark task failed: {sentence_in(str(error)) or type(error).__name__}")


def failure_here(error: Exception) -> SkidwayError:
    """The error of a task that ran in the loader's own process."""
    if isinstance(error, SkidwayError):
        return _told(error.exit_code, str(error))
    return SkidwayError(f"{UNEXPECTED}{type(error).__name__}: {error}")


def sentence_in(text: str) -> str:
    """The reason in Spark's text: the first exception in a Java stack trace, or else the last line;
    "" if the text is empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not _STACK.match(line)]
    if len(said) < len(lines):
        first = next((line for line in said if _EXCEPTION.search(line)), said[-1] if said else "")
        return _EXCEPTION.split(first)[-1]
    return lines[-1] if lines else ""


def _told(exit_code: int, sentence: str) -> SkidwayError:
    kind = Unreachable if exit_code == Unreachable.exit_code else SkidwayError
    return kind(sentence)
