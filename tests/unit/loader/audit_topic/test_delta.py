"""The deltas of the tier hdfs are audit messages with the numbers of records that the loads
counted. The manifest stores the deltas, so they have the same content however often the loader
publishes them."""

from __future__ import annotations

from dataclasses import replace

from skidway.audit.counts.counts import Counts, Sums
from skidway.audit.topic.messages import Sender, Tier, decode, encode
from skidway.loader.audit_topic import delta
from skidway.loader.state.manifest import Gap, Manifest, PartitionRange
from support.loading import WHOLE

SOURCE = WHOLE.source
SENDER = Sender(Tier.HDFS, WHOLE.cluster, WHOLE.producer, "host", WHOLE.epoch)


def counted(*sums: tuple[int, int, Sums]) -> Counts:
    counts = Counts(60_000)
    for agent, bucket, each in sums:
        counts.put((SOURCE, agent, bucket), each)
    return counts


def test_messages_come_back_from_the_manifest() -> None:
    """A manifest stores the audit messages of its load. After a manifest is written and read again,
    it has exactly the same messages."""
    counts = counted((7, 0, Sums(3, 30, -5, 1, 2)), (8, 60_000, Sums(1, 10, 1 << 62)))
    ranges = [PartitionRange(0, 5, 9, (Gap(6, 7, "lost"),)), PartitionRange(1, 4, 4)]
    numbered, audit = delta.make(
        delta.Head(SENDER, 99, 4), counts, {(SOURCE, 7, 0): 2}, SOURCE, ranges
    )
    manifest = Manifest.from_json(replace(WHOLE, audit=audit).to_json(), "x")
    assert delta.messages(manifest) == list(numbered.deltas)
    assert delta.last_number(manifest) == 5
    (message,) = numbered.deltas
    assert [(each.agent, each.count, each.previous) for each in message.counts] == [
        (7, 3, 2), (8, 1, 0),
    ]  # fmt: skip
    assert [(each.partition, each.first, each.end) for each in message.ranges] == [(0, 5, 9)]
    assert [(each.first, each.end) for each in message.gaps] == [(6, 7)]
    assert decode(encode(message)) == message


def test_numbers_go_on_without_holes() -> None:
    """The deltas of successive loads have the numbers 1, 2 and so on. A load's first delta gets the
    number after that of the previous load's last delta. `last_number` reads the latter number from
    the previous load's manifest, and returns 0 if there is no previous load. `make` also returns,
    for each bucket (span of event time) that a delta counts, the number of this delta. The next
    delta that counts the bucket refers to this number."""
    assert delta.last_number(None) == 0
    ranges = [PartitionRange(0, 0, 1)]
    numbered, audit = delta.make(
        delta.Head(SENDER, 1, 0), counted((7, 0, Sums(1))), {}, SOURCE, ranges
    )
    assert (numbered.last, audit["last"]) == (1, 1)
    assert numbered.touched == {(SOURCE, 7, 0): 1}
    before = Manifest.from_json(replace(WHOLE, audit=audit).to_json(), "x")
    counts = counted((7, 0, Sums(2)), (7, 60_000, Sums(1)))
    later, audit = delta.make(
        delta.Head(SENDER, 2, delta.last_number(before)), counts, numbered.touched, SOURCE,
        [PartitionRange(0, 1, 4)],
    )  # fmt: skip
    (message,) = later.deltas
    assert (message.number, later.last, audit["last"]) == (2, 2, 2)
    assert [(each.bucket, each.previous) for each in message.counts] == [(0, 1), (60_000, 0)]
    assert later.touched == {(SOURCE, 7, 0): 2, (SOURCE, 7, 60_000): 2}
