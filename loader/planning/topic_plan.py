"""Plans the offset ranges that a load reads from one topic. The ranges begin where the newest
manifest ended. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from skidway.loader.planning import plan
from skidway.loader.planning.plan import Bounds, Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.state.manifest import Manifest


class TopicPlan:
    """Plans the offsets that a load reads from one topic. gaps: for each partition, every gap that
    an earlier manifest, the mirror or the operator has listed.

    accepted: the texts of the setting `gaps.accepted`, which list the gaps that the operator
    accepts.
    """

    def __init__(
        self, topic: SourceTopic, newest: Manifest | None, accepted: Iterable[str]
    ) -> None:
        self._topic, self._newest = topic, newest
        self._before = plan.positions(newest)
        by_hand = plan.parse_accepted(accepted)
        partitions = {*self._before, *topic.away, *(each.partition for each in topic.bounds)}
        self.gaps = {
            partition: plan.named_gaps(
                topic.name, partition, self._before.get(partition), topic.gaps, by_hand
            )
            for partition in partitions
        }

    def check(self, bucket_ms: int) -> None:
        """Raises StateRefused if the output has the rows of another topic or cluster. Raises
        ConfigurationRefused if earlier loads counted the output's rows in buckets (intervals of
        event time) of another size."""
        plan.check_identity(self._newest, self._topic.source)
        plan.check_bucket(self._newest, bucket_ms)

    def partition(self, bounds: Bounds) -> Planned:
        """Returns which offsets of the partition the load is to read. The caller must still check
        that the broker's log has the last loaded batch unchanged."""
        previous = self._before.get(bounds.partition)
        gaps = self.gaps[bounds.partition]
        return plan.plan_partition(self._topic.name, bounds, previous, gaps)

    def missing(self) -> list[Planned]:
        """Returns, for each partition that cannot be loaded now, an empty range at the offset where
        the last load ended, with the reason."""
        topic = self._topic
        return plan.missing_partitions(topic.name, self._before, topic.bounds, topic.away)
