from __future__ import annotations

import inspect

import pytest

from skidway.broker.api.errors import CODES, code_of
from skidway.broker.coordination import store
from skidway.broker.log import files, partition_log, producer_state, validation
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.errors import RETRIABLE, ErrorCode

INTERNAL = {
    store.TooManyGaps,  # the mirror, not a client, gets this error
    producer_state.SnapshotDamaged,  # recovery catches it and ignores the snapshot
    producer_state.SequenceRefused,  # only its subclasses are raised
    validation.BatchRefused,  # only its subclasses are raised
}


def exceptions() -> list[type[Exception]]:
    return [
        kind
        for module in (files, partition_log, producer_state, validation, store)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Exception)
        and kind.__module__ == module.__name__
        and kind not in INTERNAL
    ]


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_every_refusal_has_a_code(kind: type[Exception]) -> None:
    """Each exception of the broker's log, and of its access to ZooKeeper, has a Kafka error code,
    so that a client never gets the code for an unknown error."""
    assert kind in CODES


def test_what_passes_is_retriable() -> None:
    """The broker answers with a retriable error code if, and only if, the same request may succeed
    later."""
    assert code_of(Unreachable("x")) in RETRIABLE
    assert CODES[files.StorageFailed] in RETRIABLE
    assert CODES[validation.BatchTooLarge] not in RETRIABLE
    assert code_of(SkidwayError("x")) is ErrorCode.UNKNOWN_SERVER_ERROR
