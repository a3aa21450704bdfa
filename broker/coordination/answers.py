"""kazoo's answers, in time; its silence as an exception of ours.

What can be asked at once is: requests are sent without waiting for each other's answers.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kazoo.exceptions import KazooException

from skidway.coordination import UNANSWERED, Coordinator
from skidway.errors import Unreachable

ASKED_AT_ONCE = 200
ANSWER_WITHIN_S = 10.0


@contextlib.contextmanager
def answered(coordinator: Coordinator) -> Iterator[Any]:
    """kazoo's client, whose silence becomes Unreachable."""
    try:
        yield coordinator.client
    except UNANSWERED as error:
        raise Unreachable(f"ZooKeeper at {coordinator.connect} does not answer") from error


def one_answer(asked: Any) -> Any:
    """The answer to one request, within the session's timeout."""
    return asked.get()


def each_answer(request: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
    """The answers to a request for each path, in their order; what ZooKeeper refused as exception.

    Silence raises what kazoo says of it.
    """
    answers: list[Any] = []
    left = iter(paths)
    while asked := [request(path) for path in itertools.islice(left, ASKED_AT_ONCE)]:
        until = time.monotonic() + ANSWER_WITHIN_S
        for each in asked:
            try:
                answers.append(each.get(timeout=max(0.0, until - time.monotonic())))
            except UNANSWERED:
                raise
            except KazooException as error:
                answers.append(error)
    return answers


def require(error: Exception, *expected: type[Exception]) -> None:
    """Raises an answer that is none of these errors."""
    if not isinstance(error, expected):
        raise error
