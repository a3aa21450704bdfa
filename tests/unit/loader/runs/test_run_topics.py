"""Tests the problems that a run finds in the cluster. A problem of one topic stops neither the run
nor the other topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from skidway.kafka.client import EARLIEST
from skidway.kafka.client.cluster import Broker, Cluster, ListedOffset, Partition, TopicMetadata
from skidway.kafka.errors import BrokerUnreachable, ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from skidway.loader.runs.run_topics import look
from skidway.loader.settings import LoaderSettings
from skidway.loader.state.manifest import Gap
from support.promises import promise

MIRROR = {
    "mirror.source.cluster": "dc1", "mirror.source.topic": "logs",
    "mirror.gaps": "0:5-9:expired,0:20-30:expired",
}  # fmt: skip


class TwoLeaders:
    """A client of a cluster with the mirror topic `logs`, which has two partitions. The leader of
    each partition in `silent` does not answer."""

    def __init__(self, *silent: int) -> None:
        self._silent = silent

    def metadata(self, topics: Sequence[str] | None = None) -> Cluster:
        brokers = {0: Broker(0, "host", 9092), 1: Broker(1, "dead", 9092)}
        partitions = (Partition(0, 0, 0, (0,), (0,)), Partition(1, 1, 0, (1,), (1,)))
        return Cluster(
            "c", 0, brokers, {"logs": TopicMetadata("logs", None, ErrorCode.NONE, partitions)}
        )

    def broker_configs(self, *_keys: str) -> dict[str, str]:
        return {}

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        return dict.fromkeys(names, MIRROR)

    def list_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, object]:
        if any(tp.partition in self._silent for tp in times):
            raise BrokerUnreachable("dead:9092 did not answer")
        return {tp: ListedOffset(0 if at == EARLIEST else 7, -1, -1) for tp, at in times.items()}


class Client:
    """A client of a cluster with the topics `good` and `bad`, each with one partition. The
    partition of `bad` has no leader."""

    def __init__(self, *, gone: bool = False, unreachable: bool = False) -> None:
        self._gone, self._unreachable = gone, unreachable

    def metadata(self, topics: Sequence[str] | None = None) -> Cluster:
        empty = self._gone and topics is not None
        return Cluster(
            "c", 0, {0: Broker(0, "host", 9092)},
            {name: topic(name, empty and name == "bad") for name in topics or ("bad", "good")},
        )  # fmt: skip

    def broker_configs(self, *_keys: str) -> dict[str, str]:
        return {"cluster.name": "offline"}

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        return {name: {} for name in names}

    def list_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, object]:
        if self._unreachable:
            raise BrokerUnreachable("no broker answered")
        if any(tp.topic == "bad" for tp in times):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "bad-0 has no leader now")
        return {tp: ListedOffset(0 if at == EARLIEST else 7, -1, -1) for tp, at in times.items()}


def topic(name: str, empty: bool) -> TopicMetadata:
    return TopicMetadata(
        name, None, ErrorCode.NONE, () if empty else (Partition(0, 0, 0, (0,), (0,)),)
    )


def settings() -> LoaderSettings:
    return LoaderSettings(
        bootstrap_servers="x:1", schema_registry_url="http://x", topics=["bad", "good", "logs"],
        output_url="/out",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gone", "sentence"), [(False, "bad-0 has no leader now"), (True, "has no partitions now")]
)
def test_a_topic_in_trouble_does_not_stop_the_others(gone: bool, sentence: str) -> None:
    """If a partition of a topic has no leader, or if a topic is deleted while the run reads the
    cluster's metadata, this is a problem of that topic alone. It does not stop the other topics."""
    session = look(settings(), Client(gone=gone))  # type: ignore[arg-type]
    (good,) = session.topics
    assert (good.name, good.bounds[0].high_watermark) == ("good", 7)
    ((name, problem),) = session.troubles.items()
    assert name == "bad"
    assert sentence in str(problem)


@promise("5 silent leader")
def test_a_leader_that_does_not_answer_keeps_back_its_own_partitions_only() -> None:
    """If the metadata still names a dead leader, only the partitions of this leader are not
    loaded."""
    (logs,) = look(settings(), TwoLeaders(1)).topics  # type: ignore[arg-type]
    assert [each.partition for each in logs.bounds] == [0]
    assert logs.away == {1: "dead:9092 did not answer"}
    with pytest.raises(BrokerUnreachable):
        look(settings(), TwoLeaders(0, 1))  # type: ignore[arg-type]


@promise("5 gaps")
def test_the_mirror_itself_names_the_gaps_that_may_be_passed() -> None:
    """The loader reads from the config of the mirrored topic which gaps (missing offsets that the
    mirror has listed) a load may skip."""
    (logs,) = look(settings(), TwoLeaders()).topics  # type: ignore[arg-type]
    assert logs.gaps == {0: (Gap(5, 9, "expired"), Gap(20, 30, "expired"))}


def test_an_unreachable_cluster_stops_the_run() -> None:
    """If no broker answers, the whole run ends with the error BrokerUnreachable."""
    with pytest.raises(BrokerUnreachable):
        look(settings(), Client(unreachable=True))  # type: ignore[arg-type]
