"""The loader may load a late line of a bucket (span of event time) when it has already forgotten
the number of the bucket's last delta (message with counts). The tests check the audit's verdict on
this bucket."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.counts.counts import Counts
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import Delta, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka import columns
from skidway.kafka.columns import Origins
from skidway.loader.state import bucket_spans
from support.fold import Fold
from support.loading import HOUR_MS, SOURCE, START_MS, datum
from support.memory_loading import AGENT, DATA, LENGTH, MemoryLoading
from support.promises import promise

TIERS = Policy(tiers=(Tier.AGENT, Tier.HDFS))
TIMES = [START_MS, START_MS + 5 * HOUR_MS, START_MS]
"""The event times of three lines. The third line is late, because it belongs to the bucket of the
first line."""


def origins(number: int) -> Origins:
    one = np.ones(1, np.int64)
    return Origins(one * AGENT, one, one * number * LENGTH, one * LENGTH)


def load_one(loading: MemoryLoading, number: int) -> None:
    """Appends the line with the index `number` to the topic, and loads this line."""
    times, value = np.array([TIMES[number]], np.int64), pa.array([datum("line")], pa.binary())
    log = loading.cluster.log(DATA)
    log.append(columns.encode(value, times, origins=origins(number)))
    loading.run()


def agent_said() -> list[Delta | Seal]:
    """Returns the agent's messages: a delta that counts the three lines, and a seal."""
    counts, until = Counts(60_000), START_MS + 7 * HOUR_MS
    for number, time_ms in enumerate(TIMES):
        counts.add(SOURCE, np.array([time_ms], np.int64), origins(number))
    sender = Sender(Tier.AGENT, "dc1", str(AGENT), "host", 1)
    (delta,) = number_deltas(sender, START_MS, 0, counts, {}).deltas
    return [delta, Seal(sender, 2, until, (SealedTopic(SOURCE, until, 1),))]


@promise("5 buckets")
@pytest.mark.parametrize("is_rebuilt", [False, True], ids=["all messages", "only the newest"])
def test_a_late_line_of_a_forgotten_bucket_is_never_complete(
    monkeypatch: pytest.MonkeyPatch, is_rebuilt: bool
) -> None:
    """If the loader has forgotten the number of a bucket's last delta, and then loads a late line
    of this bucket, the audit calls the bucket unknown. The audit does so even if it has read all of
    the loader's messages. If the loader remembers all numbers, and the audit has read all messages,
    the audit calls the bucket complete."""
    known, forgotten = MemoryLoading(), MemoryLoading()
    for number in range(len(TIMES)):
        load_one(known, number)
    monkeypatch.setattr(bucket_spans, "SPANS_MAX", 1)
    for number in range(len(TIMES)):
        load_one(forgotten, number)
    found = {}
    for name, loading in (("known", known), ("forgotten", forgotten)):
        deltas = loading.deltas()[-1:] if is_rebuilt else loading.deltas()
        evidence = Fold([*deltas, *agent_said()]).evidence()
        judged = verdicts(evidence, TIERS, START_MS + 8 * HOUR_MS)
        found[name] = min(judged, key=lambda verdict: verdict.bucket)
    assert found["forgotten"].status is Status.UNKNOWN
    assert (found["known"].status is Status.COMPLETE) is not is_rebuilt
