"""Tests which counts the audit uses if a counter or a loader has begun a new epoch."""

from __future__ import annotations

from dataclasses import replace

from skidway.audit.judgement.verdict import Status
from support.audit_senders import BROKER
from support.one_bucket import (
    HDFS,
    count,
    delta,
    good,
    verdict,
)
from support.promises import promise


@promise("6 epochs")
def test_a_higher_epoch_of_a_counter_replaces_the_lower() -> None:
    """The counts of the higher epoch of a counter or loader (here of a loader) replace those of its
    lower epoch, because the program counted everything again in the higher epoch. The counts of the
    two epochs are not added."""
    new = replace(HDFS, epoch=2)
    assert verdict([*good(), delta(new, 1, count())]).status is Status.COMPLETE
    behind = verdict([*good(), delta(new, 1)])
    assert behind.status is Status.INCOMPLETE


def test_a_counters_copy_that_ran_is_mended_by_a_new_epoch() -> None:
    """If two copies of a counter ran at the same time, a new epoch repairs the counts: the counter
    counts everything again, and the new counts replace those of both copies."""
    copy = [*good(), delta(BROKER, 1, count(3))]
    assert verdict(copy).status is Status.UNKNOWN
    assert verdict([*copy, delta(replace(BROKER, epoch=2), 1, count())]).status is Status.COMPLETE


@promise("6 epochs")
def test_an_epoch_that_is_used_again_is_never_passed_over() -> None:
    """Usually the counts of a loader's higher epoch replace those of a lower epoch. But an operator
    may have deleted the output and begun it again, so that the loader used the lower epoch a second
    time. Then perhaps only the new counts of the lower epoch are valid, so the audit calls the
    bucket unknown."""
    higher = replace(HDFS, epoch=2)
    found = verdict([*good(), delta(higher, 1, count())])
    assert found.status is Status.COMPLETE
    found = verdict([*good(), delta(higher, 1, count()), delta(HDFS, 1, count(3))])
    assert found.status is Status.UNKNOWN
    assert any("used epoch 1 again, which epoch 2 replaces" in each for each in found.reasons)
