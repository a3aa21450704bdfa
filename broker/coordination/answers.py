"""Waits for kazoo's answers, up to a time limit. In a block of `with answered(...)`, a missing
answer raises Unreachable; elsewhere it raises kazoo's error.

If requests do not depend on each other, the module sends up to ASKED_AT_ONCE of them before it
waits for the first answer.
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
    """Yields kazoo's client for a `with` block. Raises Unreachable if ZooKeeper does not answer a
    request that is made in the block.
    """
    try:
        yield coordinator.client
    except UNANSWERED as error:
        raise Unreachable(f"ZooKeeper at {coordinator.connect} does not answer") from error


def one_answer(asked: Any) -> Any:
    """Waits for the answer to one request, for the session's timeout at most, and returns it.
    asked: kazoo's result object of the request."""
    return asked.get()


def each_answer(request: Callable[[str], Any], paths: Sequence[str]) -> list[Any]:
    """Makes a request for each path. Returns the answers in the order of the paths. If ZooKeeper
    refuses a request, the list has the exception instead of an answer.

    Raises kazoo's error, not Unreachable, if ZooKeeper does not answer.
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
    """Raises `error` unless it has one of the expected types."""
    if not isinstance(error, expected):
        raise error
