"""Tests how one source cluster is mirrored into the broker's logs, without a socket. The tests
check what is copied, which gaps (missing offsets) are written into the mirror topic's configs, and
what stops a partition. Nothing more is copied into a stopped partition. "The status" is what
`skidway mirror status` shows."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from skidway.broker import metrics
from skidway.broker.log import partition_log
from skidway.broker.log.config import LogConfig
from skidway.broker.mirror import rounds, status, topics
from skidway.broker.mirror.follower import Phase
from skidway.broker.mirror.topics import TOPICS_A_QUESTION
from skidway.broker.own_status import away
from skidway.kafka.batch import read_header
from skidway.kafka.client.fetching import Fetched
from skidway.kafka.client.following import Turn
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.gaps import Gap
from skidway.kafka.protocol.describe_configs import DescribeConfigsResult, ResourceType
from skidway.kafka.types import TopicPartition
from skidway.rare_lines import LINES_MAX
from support.mirror_world import MirrorWorld, SourceLog, batch
from support.promises import promise

LOGS = TopicPartition("logs", 0)
HERE = TopicPartition("dc1.logs", 0)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MirrorWorld:
    return MirrorWorld(tmp_path, monkeypatch)


@pytest.fixture
def logs(world: MirrorWorld) -> MirrorWorld:
    """A test environment in which a topic of ten batches is mirrored."""
    world.source.create("logs")
    fill(world, 10)
    world.follow()
    same(world)
    return world


def fill(world: MirrorWorld, batches: int, partition: int = 0) -> None:
    for _ in range(batches):
        world.source.log("logs", partition).append()


def same(world: MirrorWorld, partition: int = 0) -> None:
    """Asserts that the partition's log in the mirror equals the partition's log in the source, byte
    for byte."""
    assert world.local.batches("dc1.logs", partition) == world.source.log("logs", partition).batches


def follower(world: MirrorWorld) -> Phase:
    return world.mirror.followed.partitions[LOGS].follower.phase


# topics


def test_a_new_topic_is_made_with_its_origin_and_followed(world: MirrorWorld) -> None:
    """For a new topic of the source, a mirror topic is created. The mirror topic's configs contain
    the names and ids of the source's cluster and topic."""
    topic = world.source.create("logs", 2)
    fill(world, 3)
    fill(world, 2, 1)
    world.follow()
    assert world.local.catalog["dc1.logs"].configs == {
        "mirror.source.cluster": "dc1",
        "mirror.source.cluster.id": "source-cluster",
        "mirror.source.topic": "logs",
        "mirror.source.topic.id": topic.topic_id.hex,
    }
    same(world)
    same(world, 1)
    assert world.status["records"] == 15
    assert world.status["lag"] == 0


@promise("6 audit topic")
def test_the_audit_topic_is_mirrored_whatever_the_patterns_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only topics that match a pattern are mirrored, except the audit topic, which is always
    mirrored."""
    world = MirrorWorld(tmp_path, monkeypatch, ["logs"])
    for name in ("logs", "other", "_skidway_audit", "__consumer_offsets"):
        world.source.create(name)
    world.follow()
    assert sorted(world.local.catalog) == ["dc1._skidway_audit", "dc1.logs"]


def test_mirrors_are_not_mirrored(world: MirrorWorld) -> None:
    """Topics that the source itself mirrors from a third cluster, or from this cluster, are not
    mirrored again."""
    world.source.create("dc2.logs", mirror_source_cluster="dc2")
    world.source.create("offline.logs")
    world.source.create("dc3.logs")
    world.follow()
    assert list(world.local.catalog) == ["dc1.dc3.logs"]


def test_an_ordinary_topic_with_the_name_of_a_mirror_is_named(
    world: MirrorWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """The mirror does not copy topics of the source whose names begin with the name of this
    cluster, because these may be mirrors of this cluster's topics. If such a topic is no mirror,
    the mirror's status names it with the reason, and the broker logs one warning. A topic that is a
    mirror of this cluster's topics is not named."""
    world.source.create("offline.loop")
    world.source.create("offline.app", mirror_source_cluster="offline")
    world.source.create("app._tmp")
    world.follow()
    world.follow()
    assert list(world.local.catalog) == []
    assert world.status["left_out"] == {
        "app._tmp": "names that begin with app._ are for mirrors of internal topics",
        "offline.loop": "names that begin with offline. are for mirrors of topics of offline",
    }
    assert caplog.text.count("topic_not_mirrored") == 2


def test_a_source_that_calls_itself_otherwise_is_not_followed(world: MirrorWorld) -> None:
    """If the name that the source's brokers report for their cluster differs from the name in the
    mirror's settings, nothing is mirrored. The agents announce their files under the name that the
    brokers report, so no program would find these announcements (messages about the files) under
    the name in the settings."""
    world.source.broker_configs = {"cluster.name": "main"}
    world.source.create("logs")
    world.follow()
    assert list(world.local.catalog) == []
    assert world.stopped() == {"dc1": "its brokers call their cluster 'main' (cluster.name)"}
    world.source.broker_configs = {"cluster.name": "dc1"}
    world.follow()
    assert list(world.local.catalog) == ["dc1.logs"]
    assert world.stopped() == {}


def test_more_topics_than_fit_one_question_are_all_asked_about(
    world: MirrorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In regular rounds, the mirror asks for the configs of the source's topics. One round asks for
    the configs of all topics, once each, even if this needs several requests."""
    names = [f"t{number}" for number in range(2 * TOPICS_A_QUESTION + 5)]
    for name in names:
        world.source.create(name)
    asked: list[str] = []
    configs = world.source._configs

    def noted(kind: int, name: str, found: dict[str, str]) -> DescribeConfigsResult:
        if kind == ResourceType.TOPIC:
            asked.append(name)
        return configs(kind, name, found)

    monkeypatch.setattr(world.source, "_configs", noted)
    world.round()
    assert sorted(asked) == sorted(names)
    for _ in range(5):
        world.round()
    assert sorted(world.local.catalog) == sorted(f"dc1.{name}" for name in names)


def test_a_topic_whose_configs_cannot_be_read_is_named_and_asked_for_again(
    world: MirrorWorld,
) -> None:
    """Without the configs of a source's topic, nobody can know whether the topic is a mirror
    itself. So a topic whose configs cannot be read is not copied, and the mirror's status names it.
    The other topics are mirrored meanwhile. When the configs can be read, the mirroring of this
    topic begins."""
    secret = world.source.create("secret")
    world.source.create("logs")
    secret.describe_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    world.follow()
    assert list(world.local.catalog) == ["dc1.logs"]
    assert "TOPIC_AUTHORIZATION_FAILED" in world.status["left_out"]["secret"]
    secret.describe_error = ErrorCode.NONE
    world.follow()
    assert "dc1.secret" in world.local.catalog
    assert world.status["left_out"] == {}


def test_a_topic_that_cannot_be_made_is_named_and_tried_again(world: MirrorWorld) -> None:
    """If a mirror's topic cannot be created because ZooKeeper cannot be reached, the mirror's
    status says so, and the mirror tries again. No record is lost."""
    world.source.create("logs")
    world.local.zookeeper_is_away = True
    world.follow()
    assert "ZooKeeper" in world.status["left_out"]["dc1.logs"]
    world.local.zookeeper_is_away = False
    fill(world, 2)
    world.follow()
    same(world)
    assert world.status["left_out"] == {}


def test_a_name_too_long_for_a_mirror_is_named(world: MirrorWorld) -> None:
    """A topic is not mirrored if the name of its mirror topic would be longer than Kafka allows.
    The mirror's status says so."""
    world.source.create("x" * 249)
    world.follow()
    assert "longer than 249" in world.status["left_out"]["x" * 249]


def test_an_ordinary_topic_in_the_mirrors_place_is_named(world: MirrorWorld) -> None:
    """If there is an ordinary topic with the name that a mirror topic would have, the mirror writes
    nothing to it, and its status says so."""
    world.local.add("dc1.logs")
    world.source.create("logs")
    fill(world, 1)
    world.follow()
    assert world.stopped() == {"dc1.logs": "dc1.logs exists here and is no mirror of logs"}
    assert world.local.batches("dc1.logs") == []
    assert world.status["missed"] == {"dc1.logs": world.source.log("logs").end}
    assert world.status["begin_again"] == {}, "the topic belongs to somebody else"


def test_configs_that_a_client_made_up_do_no_harm(world: MirrorWorld) -> None:
    """The mirror never writes to a topic that has only some of a mirror's configs. If a topic has
    all of these configs, but its name is not a mirror's name, the mirror does not write to it,
    either."""
    world.local.add("half", mirror_source_cluster="dc1")
    world.local.add("copy", mirror_source_cluster="dc1", mirror_source_topic="logs")
    world.source.create("logs")
    fill(world, 1)
    world.follow()
    same(world)
    assert world.local.batches("copy") == world.local.batches("half") == []
    assert sorted(world.status["left_out"]) == ["copy", "half"]


def test_partitions_that_come_later_are_followed(logs: MirrorWorld) -> None:
    """A partition that is added to the source's topic later is mirrored from its first record
    on."""
    logs.source.topics["logs"].logs.append(type(logs.source.log("logs"))())
    fill(logs, 4, 1)
    logs.follow()
    same(logs, 1)


def test_a_topic_made_again_stops_by_name_and_nothing_is_mixed(logs: MirrorWorld) -> None:
    """If the source's topic is deleted and created again, mirroring of the topic stops. No record
    of the new topic is appended, whatever offsets the new topic has."""
    before = logs.local.batches("dc1.logs")
    logs.source.create("logs")
    fill(logs, 20)
    logs.round()
    assert "made again" in logs.stopped()["dc1.logs"]
    assert logs.local.batches("dc1.logs") == before


def test_a_stopped_topic_shows_what_the_source_has_of_it(logs: MirrorWorld) -> None:
    """For a topic that is stopped, the lag is the number of records that the source has now, also
    if the source gets more of them, or deletes some. The status has the command after which the
    mirror begins the topic again."""
    topic = logs.source.create("logs")
    fill(logs, 20)
    logs.round()
    count = topic.logs[0].end
    assert logs.status["missed"] == {"dc1.logs": count}
    assert (logs.status["lag"], logs.status["lag_unknown"]) == (count, 0)
    assert logs.status["begin_again"]["dc1.logs"].endswith(
        "topics delete dc1.logs --yes --bootstrap-server offline:9092"
    )
    fill(logs, 5)
    topic.logs[0].start = count
    logs.round()
    assert logs.status["lag"] == topic.logs[0].end - count > 0
    logs.source.topics.pop("logs")
    logs.round()
    assert logs.status["missed"] == {}


def test_a_topic_made_again_between_two_rounds_is_noticed_without_one(logs: MirrorWorld) -> None:
    """The mirror checks the ids of the source's topics in regular rounds. If a topic is deleted and
    created again between two rounds, the mirror's fetches get an error in the meantime. After such
    an error the mirror's last batch is compared with the source's batch at the same offsets. The
    source now has another batch there, so the mirror stops copying the partition."""
    before = logs.local.batches("dc1.logs")
    old = logs.source.topics.pop("logs")
    logs.settle(0.2)
    made = logs.source.create("logs")
    made.topic_id = old.topic_id
    for number in range(20):
        made.logs[0].append(salt=1000 + number)
    logs.settle()
    assert "diverged" in logs.stopped()["dc1.logs-0"]
    assert logs.local.batches("dc1.logs") == before


def test_the_topic_that_was_stopped_for_its_id_goes_on_when_it_is_back(logs: MirrorWorld) -> None:
    """If the source suddenly returns a different id for a topic, the mirroring of the topic stops.
    The mirroring continues when the source returns the old id again."""
    topic = logs.source.topics["logs"]
    right, topic.topic_id = topic.topic_id, uuid.uuid4()
    logs.round()
    assert "made again" in logs.stopped()["dc1.logs"]
    topic.topic_id = right
    fill(logs, 2)
    logs.round()
    same(logs)
    assert logs.stopped() == {}


def test_another_cluster_under_the_same_address_is_not_followed(logs: MirrorWorld) -> None:
    """If another cluster answers at the source's address, the mirror notices the other cluster id,
    and copies nothing."""
    logs.source.cluster_id = "other"
    fill(logs, 2)
    before = logs.local.batches("dc1.logs")
    logs.start()
    logs.round()
    assert "another cluster" in logs.stopped()["dc1.logs"]
    assert logs.local.batches("dc1.logs") == before


def test_a_topic_that_the_source_cannot_tell_about_is_not_taken_for_another(
    logs: MirrorWorld,
) -> None:
    """If the source returns an error in place of a topic's id, nothing of the topic is copied for
    the moment. The mirror's status shows the error, and does not call the topic stopped. The
    mirroring continues when the source returns the id again."""
    logs.source.topics["logs"].error = ErrorCode.LEADER_NOT_AVAILABLE
    logs.round()
    assert logs.stopped() == {}
    assert "LEADER_NOT_AVAILABLE" in logs.status["left_out"]["dc1.logs"]
    logs.source.topics["logs"].error = ErrorCode.NONE
    fill(logs, 2)
    logs.round()
    same(logs)


def test_a_topic_deleted_in_the_source_keeps_what_was_mirrored(logs: MirrorWorld) -> None:
    """If a topic is deleted in the source, the mirror keeps the topic's records, and its status
    shows that the topic is gone. The mirror continues if the same topic comes back."""
    topic = logs.source.topics.pop("logs")
    logs.round()
    assert "no topic logs any more" in logs.status["left_out"]["dc1.logs"]
    assert logs.client.positions == {}
    assert len(logs.local.batches("dc1.logs")) == 10
    logs.source.topics["logs"] = topic
    fill(logs, 1)
    logs.round()
    same(logs)


def test_a_topic_deleted_here_is_written_to_no_more(logs: MirrorWorld) -> None:
    """If a mirror topic is deleted while its batches are being fetched, these batches reach neither
    the deleted topic's log nor the log of a new topic with the same name."""
    fill(logs, 1)
    logs.turn()
    logs.client.serve()
    logs.client.deliver()
    old = logs.local.replicas[HERE].log
    end = old.log_end_offset
    logs.local.delete("dc1.logs")
    logs.local.add(
        "dc1.logs", mirror_source_cluster="dc1", mirror_source_topic="logs",
        mirror_source_topic_id=logs.source.topics["logs"].topic_id.hex,
    )  # fmt: skip
    logs.turn()
    assert old.log_end_offset == end
    assert logs.local.batches("dc1.logs") == []
    logs.round()
    same(logs)


# interruptions


def test_after_a_start_the_batch_below_is_compared(logs: MirrorWorld) -> None:
    """After a restart the mirror's last batch is compared with the source's batch at the same
    offsets. The batch is not written a second time, and the mirror continues."""
    logs.start()
    fill(logs, 3)
    logs.round()
    same(logs)
    assert logs.status["records"] == 9


def test_a_source_with_other_records_stops_by_name(logs: MirrorWorld) -> None:
    """If the source's log was truncated and filled with other records under the same topic id, the
    mirror stops copying the partition, and copies none of the other records."""
    before = logs.local.batches("dc1.logs")
    log = logs.source.log("logs")
    log.cut(0)
    for number in range(15):
        log.append(salt=500 + number)
    logs.client.lose()
    logs.settle()
    assert "diverged" in logs.stopped()["dc1.logs-0"]
    assert logs.local.batches("dc1.logs") == before
    assert logs.status["stopped_count"] == 1


def test_a_source_that_ends_below_us_stops_by_name(logs: MirrorWorld) -> None:
    """If the source's log ends at a lower offset than the mirror's, the source has lost records
    that the mirror has. The mirror stops copying the partition, and an operator has to look at
    it."""
    logs.source.log("logs").cut(9)
    logs.client.lose()
    logs.settle()
    assert "ends at offset 9, below the mirror's end 30" in logs.stopped()["dc1.logs-0"]
    logs.round()
    assert logs.status["missed"] == {"dc1.logs-0": 9}, "perhaps all of them are other records"
    assert "topics delete dc1.logs " in logs.status["begin_again"]["dc1.logs-0"]


def test_a_source_that_lost_records_and_got_others_before_we_asked_is_compared(
    logs: MirrorWorld,
) -> None:
    """The source may have lost records and got other records before the mirror asks for the
    source's first and last offset. Then both offsets look right, although the source's records are
    not those of the mirror. So the mirror compares its last batch with the source's batch at the
    same offsets, and stops copying the partition."""
    log = logs.source.log("logs")
    before = logs.local.batches("dc1.logs")
    log.cut(9)
    logs.client.lose()
    while not logs.client.asked:  # until the mirror asks for the source's first and last offset
        logs.client.serve()
        logs.client.deliver()
        logs.turn()
        logs.clock.advance(0.1)
    for number in range(20):
        log.append(salt=900 + number)
    logs.settle()
    assert "diverged" in logs.stopped()["dc1.logs-0"]
    assert logs.local.batches("dc1.logs") == before


def test_what_came_just_before_the_connection_ended_is_followed_by_a_check(
    logs: MirrorWorld,
) -> None:
    """After every lost connection the mirror's last batch is compared with the source's batch at
    the same offsets, even if no fetch was open when the connection ended."""
    log = logs.source.log("logs")
    fill(logs, 1)
    logs.client.serve()
    logs.client.lose(after_last_answer=True)
    logs.client.fetches.clear()
    logs.turn()
    assert follower(logs) is Phase.FOLLOWING
    log.batches[-1] = log.batches[-1][:61] + b"?" * (len(log.batches[-1]) - 61)
    log.cut(30)
    log.append(salt=77)
    log.append(salt=78)
    before = logs.local.batches("dc1.logs")
    logs.settle()
    assert "diverged" in logs.stopped()["dc1.logs-0"]
    assert logs.local.batches("dc1.logs") == before


def test_a_lost_connection_costs_nothing_but_a_look(logs: MirrorWorld) -> None:
    """After a lost connection, batches that were on the way are fetched again, and each batch is
    appended only once."""
    for _ in range(5):
        fill(logs, 2)
        logs.client.serve()
        logs.client.lose()
        logs.settle(2)
    same(logs)


def test_a_source_that_is_down_is_shown_and_awaited(
    logs: MirrorWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """While a source is down, the mirror's status shows it as unreachable, since when, and its
    partitions as waiting, not as stopped. The broker logs once that the source is away, and once
    that it answers again."""
    caplog.set_level("INFO")
    since = logs.clock.time_ms()
    logs.client.is_down = True
    logs.client.lose()
    logs.round()
    logs.round()
    assert logs.status["reachable"] is False
    assert since <= logs.status["away_since_ms"] <= logs.clock.time_ms()
    said = away(logs.status)
    assert said is not None
    assert said.sentence.startswith("Cluster dc1 does not answer since ")
    assert "connection" in logs.status["waiting"]["dc1.logs-0"]
    assert logs.status["stopped"] == {}
    fill(logs, 3)
    logs.client.is_down = False
    logs.round()
    same(logs)
    assert logs.status["reachable"] is True
    assert logs.status["waiting"] == {}
    assert away(logs.status) is None
    events = [x.message for x in caplog.records if x.message.startswith("mirror_source_")]
    assert events == ["mirror_source_away", "mirror_source_answers"]


def test_metrics_count_more_than_the_status_lists(
    world: MirrorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists of a mirror's status have a limit. The counts of waiting partitions and of gaps, in
    the status and in the metrics, include the entries beyond this limit."""
    monkeypatch.setattr(status, "REASONS_MAX", 1)
    world.source.create("logs", 2)
    fill(world, 1)
    fill(world, 1, 1)
    world.follow()
    for partition in (0, 1):
        world.source.log("logs", partition).append(skip=4)
    world.settle()
    world.client.is_down = True
    world.client.lose()
    world.round()
    for partition in world.mirror.followed.partitions.values():
        partition.unverifiable = 10
    found = world.status
    assert len(found["waiting"]) == len(found["gaps"]) == len(found["unverifiable"]) == 1
    assert (found["waiting_count"], found["gap_count"]) == (2, 2)
    samples = {
        sample.name: sample.value
        for metric in metrics._of_mirrors([found])
        for sample in metric.samples
    }
    assert samples["skidway_broker_mirror_waiting"] == 2
    assert samples["skidway_broker_mirror_gaps"] == 2


def test_a_batch_damaged_on_the_way_is_never_appended(logs: MirrorWorld) -> None:
    """A batch that is damaged on the way is never appended, but the batches before it are appended.
    The mirror's status shows the damage until the batch arrives undamaged."""
    fill(logs, 3)
    log = logs.source.log("logs")
    whole, log.batches[11] = log.batches[11], log.batches[11][:-1] + b"?"
    logs.settle(3)
    assert logs.local.batches("dc1.logs") == log.batches[:11]
    assert "damaged: CRC-32C" in logs.status["waiting"]["dc1.logs-0"]
    log.batches[11] = whole
    logs.settle(3)
    same(logs)


def test_a_refusal_that_may_pass_is_waited_for(logs: MirrorWorld) -> None:
    """If the source refuses fetches of a partition for a time, the mirror shows the partition as
    waiting, and not as stopped. It continues when the source accepts fetches again."""
    logs.source.fetch_error[LOGS] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    fill(logs, 2)
    logs.settle(3)
    assert "TOPIC_AUTHORIZATION_FAILED" in logs.status["waiting"]["dc1.logs-0"]
    del logs.source.fetch_error[LOGS]
    logs.settle(3)
    same(logs)


def test_a_source_that_answers_errors_at_once_is_not_asked_all_the_time(logs: MirrorWorld) -> None:
    """If the source answers every request immediately, but with an error, the mirror waits longer
    and longer between its requests."""
    logs.source.offsets_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    logs.source.fetch_error[LOGS] = ErrorCode.OFFSET_OUT_OF_RANGE
    asked = logs.client._tickets
    logs.settle(20)
    assert 10 < logs.client._tickets - asked < 60
    assert "NOT_LEADER_OR_FOLLOWER" in logs.status["waiting"]["dc1.logs-0"]
    logs.source.offsets_error = ErrorCode.NONE
    asked = logs.client._tickets
    logs.settle(20)
    assert 10 < logs.client._tickets - asked < 120
    assert logs.status["waiting"]["dc1.logs-0"]


# gaps


def test_a_gap_is_named_before_anything_behind_it_is_copied(logs: MirrorWorld) -> None:
    """The mirror first writes a gap (a range of missing offsets) into the topic's config, and only
    then copies the records after the gap."""
    fill(logs, 10)
    logs.source.log("logs").expire(45)
    logs.local.zookeeper_is_away = True
    before = logs.local.batches("dc1.logs")
    logs.client.lose()
    reasons = []
    for _ in range(20):
        logs.settle(0.5)
        assert logs.local.batches("dc1.logs") == before
        reasons.append(logs.status["waiting"].get("dc1.logs-0", ""))
    assert any("cannot be written down" in reason for reason in reasons)
    logs.local.zookeeper_is_away = False
    logs.settle()
    assert logs.local.named("dc1.logs") == [Gap(0, 30, 45, "expired")]
    assert logs.local.batches("dc1.logs") == [*before, *logs.source.log("logs").batches]
    assert logs.status["gaps"] == {"dc1.logs-0": ["30-45 expired"]}
    assert logs.status["waiting"] == {}


def test_gaps_of_several_partitions_at_once_are_all_named(world: MirrorWorld) -> None:
    """If several partitions have gaps (ranges of missing offsets) at the same time, all gaps are
    written into the config, and none overwrites another."""
    world.source.create("logs", 3)
    for partition in range(3):
        fill(world, 5, partition)
        world.source.log("logs", partition).expire(3 + 3 * partition)
    world.follow()
    assert sorted(world.local.named("dc1.logs")) == [
        Gap(0, 0, 3, "expired"), Gap(1, 0, 6, "expired"), Gap(2, 0, 9, "expired")
    ]  # fmt: skip
    for partition in range(3):
        same(world, partition)


def test_a_gap_whose_naming_was_cut_short_is_named_once(logs: MirrorWorld) -> None:
    """The mirror may write a gap (a range of missing offsets) into the config, and restart before
    it copies a later batch. It then does not write a second gap. If more records have expired in
    the source meanwhile, it enlarges the first gap."""
    fill(logs, 5)
    logs.source.log("logs").expire(36)
    logs.client.lose()
    while not logs.local.jobs:
        logs.client.serve()
        logs.client.deliver()
        logs.turn()
        logs.clock.advance(0.1)
    logs.local.work()
    logs.local.posted.clear()
    logs.source.log("logs").expire(39)
    logs.start()
    logs.round()
    assert logs.local.named("dc1.logs") == [Gap(0, 30, 39, "expired")]
    assert len(logs.local.batches("dc1.logs")) == 12


def test_a_hole_between_batches_is_named(logs: MirrorWorld) -> None:
    """If offsets are missing within the source's log, for example after compaction, they are
    written into the config as a gap, and copying continues after the gap."""
    fill(logs, 1)
    logs.source.log("logs").append(skip=4)
    fill(logs, 1)
    logs.settle()
    assert logs.local.named("dc1.logs") == [Gap(0, 33, 37, "missing-in-source")]
    same(logs)


def test_too_many_gaps_stop_the_partition(logs: MirrorWorld) -> None:
    """If a topic would get more gaps (ranges of missing offsets) than its config may contain, the
    mirror stops copying the partition with the latest gap. The reason is that the source seems to
    lose records again and again."""
    logs.local.gaps_max = 1
    logs.source.log("logs").append(skip=1)
    logs.source.log("logs").append(skip=1)
    logs.settle()
    assert logs.stopped() == {"dc1.logs-0": "too many gaps"}
    end = logs.mirror.followed.partitions[LOGS].follower.log_end
    logs.round()
    missed = logs.source.log("logs").end - end
    assert logs.status["missed"] == {"dc1.logs-0": missed}, "what is here is not missed"
    assert logs.status["lag"] == missed > 0


def test_a_batch_below_that_expired_is_named_unverifiable(logs: MirrorWorld) -> None:
    """If the mirror's last batch has expired in the source, but the source still has every later
    batch, the mirror continues. Its status shows the offset at which it could not compare its last
    batch with the source's."""
    logs.source.log("logs").expire(30)
    logs.start()
    fill(logs, 2)
    logs.round()
    assert logs.status["unverifiable"] == {"dc1.logs-0": 30}
    assert logs.local.named("dc1.logs") == []
    assert len(logs.local.batches("dc1.logs")) == 12


def test_a_source_whose_log_starts_inside_a_batch_is_followed(world: MirrorWorld) -> None:
    """If the source's log starts inside a batch, as it does after Apache Kafka's DeleteRecords,
    that batch is mirrored whole."""
    world.source.create("logs")
    fill(world, 4)
    world.source.log("logs").expire(7)
    world.follow()
    assert world.local.named("dc1.logs") == [Gap(0, 0, 6, "expired")]
    same(world)
    assert world.status["waiting"] == {}


def test_bounds_that_come_after_an_interruption_decide_nothing(logs: MirrorWorld) -> None:
    """The mirror asks for the first and last offset of the source's log. If the mirror is
    interrupted before the answers come, it asks again. A late answer to the first request is then
    ignored, because the mirror may be at another position by then."""
    logs.source.fetch_error[LOGS] = ErrorCode.OFFSET_OUT_OF_RANGE
    logs.client.lose()
    until_asked(logs)  # the mirror asks for the first offset in the source's log
    logs.client.serve()
    logs.client.deliver()
    until_asked(logs)  # the mirror asks for the log's end; this answer will come late
    logs.client.serve()
    late = list(logs.client.answers)
    logs.client.answers.clear()
    log = logs.source.log("logs")
    fill(logs, 2)
    del logs.source.fetch_error[LOGS]
    assert late[0].response.topics[0].partitions[0].offset == 30
    logs.mirror.positions.recheck(logs.mirror.followed.partitions[LOGS])
    logs.settle()
    same(logs)
    logs.client.inbox.extend(late)
    logs.settle()
    assert logs.stopped() == {}
    assert logs.local.batches("dc1.logs") == log.batches


def until_asked(world: MirrorWorld) -> None:
    """Runs turns of the loop until the source has a request to answer."""
    while not world.client.asked:
        world.client.serve()
        world.client.deliver()
        world.turn()
        world.clock.advance(0.1)


def test_what_came_in_one_turn_behind_a_seek_is_not_taken(logs: MirrorWorld) -> None:
    """Two answers for one partition may come in one turn, for example after the partition's leader
    has moved. If the first answer is damaged, the second answer is dropped, too, because the mirror
    must first fetch the damaged batch again."""
    fill(logs, 3)
    one, two, three = logs.source.log("logs").batches[10:]
    broken = memoryview(one[:-1] + b"?")
    answers = [
        Fetched(LOGS, 39, 0, [broken], True),
        Fetched(LOGS, 39, 0, [memoryview(two), memoryview(three)], True),
    ]
    turn, logs.client.turn = logs.client.turn, lambda: Turn(answers, [], [], {})  # type: ignore[method-assign]
    logs.mirror.turn()
    logs.client.turn = turn  # type: ignore[method-assign]
    logs.settle(3)
    same(logs)
    assert logs.local.named("dc1.logs") == []
    assert logs.status["unverifiable"] == {}


# our own disk


def test_a_write_that_is_taken_back_is_fetched_again(logs: MirrorWorld) -> None:
    """Batches that could not be written because the disk was full are fetched again, so that they
    are not missing in the mirror."""
    logs.disk.is_full = True
    fill(logs, 6)
    logs.settle(5)
    assert len(logs.local.batches("dc1.logs")) == 10
    assert logs.status["records"] == 30
    assert "refused a write" in logs.status["waiting"]["dc1.logs-0"]
    logs.disk.is_full = False
    logs.settle(5)
    same(logs)
    assert logs.status["records"] == 48


def test_a_full_disk_does_not_make_the_source_send_without_end(logs: MirrorWorld) -> None:
    """While the mirror's disk is full, the mirror waits longer and longer between its fetches, so
    that the source does not send the same batches all the time."""
    logs.disk.is_full = True
    fill(logs, 2)
    sent: set[int] = set()
    for _ in range(600):
        sent.update(each.id for each in logs.client.fetches)
        logs.client.serve()
        logs.client.deliver()
        logs.turn()
        logs.clock.advance(0.05)
    assert 15 < len(sent) < 100


def test_a_write_taken_back_while_a_gap_is_named_leaves_no_hole(logs: MirrorWorld) -> None:
    """While the mirror records a gap (a range of missing offsets) in the topic's config, its log
    writes the batches before the gap. If this write fails, the mirror fetches these batches again,
    so that they are not missing."""
    fill(logs, 2)
    logs.source.log("logs").append(skip=5)
    logs.disk.is_full = True
    logs.client.serve()
    logs.client.deliver()
    logs.turn()
    assert logs.local.jobs, "the gap is on its way to ZooKeeper"
    logs.disk.is_full = False
    logs.settle()
    same(logs)
    assert logs.local.named("dc1.logs") == [Gap(0, 36, 41, "missing-in-source")]


def test_a_roll_that_fails_is_a_refused_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the mirror's log cannot begin a new segment (a roll), the batches for the new segment are
    fetched again, and nothing is skipped."""
    world = MirrorWorld(tmp_path, monkeypatch, defaults=LogConfig(segment_bytes=1024))
    world.source.create("logs")
    fill(world, 9)
    world.follow()
    same(world)
    world.disk.is_full = True
    fill(world, 9)
    world.settle(5)
    world.disk.is_full = False
    world.settle(5)
    same(world)
    assert len(list((tmp_path / "dc1.logs-0").glob("*.log"))) > 1


def test_a_segment_that_cannot_be_made_is_no_gap_in_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the mirror's log cannot begin a new segment (a roll), batches that were already fetched
    are not appended. They are fetched again, and their offsets are not recorded as missing."""
    world = MirrorWorld(tmp_path, monkeypatch, defaults=LogConfig(segment_bytes=1024))
    world.source.max_bytes = 120
    world.source.create("logs")
    fill(world, 10)
    world.follow()
    monkeypatch.setattr(world.disk, "write", world.disk._write)
    monkeypatch.setattr(partition_log, "write_all_at", world.disk._write)
    world.disk.is_full = True
    fill(world, 9)
    world.settle(5)
    assert "roll a segment" in world.status["waiting"]["dc1.logs-0"]
    world.disk.is_full = False
    world.settle(5)
    same(world)
    assert world.local.named("dc1.logs") == []


def test_a_log_that_cannot_be_read_is_reported_and_not_followed(logs: MirrorWorld) -> None:
    """If the mirror's own log cannot be read, there is no batch to compare with the source's batch.
    The mirror reports the log to the broker, and the broker stops the partition. The mirror copies
    nothing into this log."""
    path = logs.local.replicas[HERE].log.segments[0].path
    data = bytearray(path.read_bytes())
    data[-96:] = bytes(96)
    path.write_bytes(data)
    logs.start()
    logs.round()
    assert len(logs.local.unreadable_logs) == 1
    assert logs.mirror.followed.partitions == {}


def test_nothing_of_ours_left_to_compare_is_said(logs: MirrorWorld) -> None:
    """If the mirror's own retention has deleted the whole log, there is no batch to compare with
    the source's batch. The mirror continues, and its status says that nothing could be compared."""
    log = logs.local.replicas[HERE].log
    log.roll(0)
    log.write()
    log.flushed = log.written
    log.take_out(1)
    logs.start()
    fill(logs, 1)
    logs.round()
    assert logs.status["unverifiable"] == {"dc1.logs-0": 30}
    assert log.log_end_offset == 33


def test_an_idle_mirror_costs_the_loop_nothing(logs: MirrorWorld) -> None:
    """An idle mirror does nothing in a turn of the loop until data comes or a timer is due."""
    logs.settle()
    assert not logs.mirror.is_due
    assert read_header(logs.local.batches("dc1.logs")[0]).base_offset == 0


@pytest.mark.parametrize("base", [(1 << 53) - 1, (1 << 63) - 2])
def test_offsets_that_no_log_has_are_not_copied(logs: MirrorWorld, base: int) -> None:
    """If a source sends a batch at an offset that no log can have, the mirror appends nothing, also
    after a restart, and the status names the partition with the reason. The source's other
    partitions are mirrored."""
    other = logs.source.create("other")
    copied = logs.local.batches("dc1.logs")
    logs.source.log("logs").batches.append(batch(1, base, 2))
    other.logs[0].append()
    logs.follow()
    logs.start()
    logs.follow()
    assert logs.local.batches("dc1.logs") == copied
    assert logs.local.named("dc1.logs") == []
    assert logs.local.batches("dc1.other") == other.logs[0].batches
    assert "offset" in logs.status["waiting"]["dc1.logs-0"]


def test_a_beginning_that_no_log_has_is_no_gap(logs: MirrorWorld) -> None:
    """If a source says that a partition begins at an offset that no log can have, the mirror names
    no gap, and the status names the partition with the reason."""
    logs.source.fetch_error[LOGS] = ErrorCode.OFFSET_OUT_OF_RANGE
    logs.source.log("logs").start = logs.source.log("logs").end = (1 << 63) - 1
    logs.client.lose()
    logs.settle()
    assert logs.local.named("dc1.logs") == []
    assert str((1 << 63) - 1) in logs.status["waiting"]["dc1.logs-0"]


def test_a_topic_with_too_many_partitions_is_named_and_left_out(
    world: MirrorWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a topic of the source has more partitions than a topic may have here, it is not mirrored,
    and the log names it once, with its number of partitions. Other topics are mirrored. A mirror
    whose source topic grows beyond the limit is stopped."""
    monkeypatch.setattr(rounds, "PARTITIONS_MAX", 4)
    world.source.create("large", 5)
    grows = world.source.create("grows", 4)
    world.follow()
    world.follow()
    assert sorted(world.local.catalog) == ["dc1.grows"]
    assert caplog.text.count("topic_not_mirrored") == 1
    assert "5 partitions" in world.status["left_out"]["large"]
    grows.logs += [SourceLog()]
    world.follow()
    assert len(world.local.catalog["dc1.grows"].partitions) == 4
    assert "5 partitions" in world.stopped()["dc1.grows"]


def test_a_source_makes_only_so_many_partitions(
    world: MirrorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many topics and partitions a source has, the mirror makes at most a fixed number of
    partitions for it. The topics for which there is no room are named."""
    monkeypatch.setattr(rounds, "MIRRORED_MAX", 7)
    for number in range(4):
        world.source.create(f"t{number}", 3)
    for _ in range(3):
        world.follow()
    assert sorted(world.local.catalog) == ["dc1.t0", "dc1.t1"]
    assert sorted(world.status["left_out"]) == ["t2", "t3"]
    world.source.topics["t0"].logs += [SourceLog()]
    world.follow()
    assert len(world.local.catalog["dc1.t0"].partitions) == 4
    world.source.topics["t1"].logs += [SourceLog()]
    world.follow()
    assert "partitions of a source" in world.stopped()["dc1.t1"]


def test_a_source_that_repeats_itself_is_not_asked_all_the_time(
    logs: MirrorWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a source answers every fetch with the batch that the mirror has already, the mirror waits
    longer and longer between its fetches, and the log says so once."""
    log = logs.source.log("logs")
    monkeypatch.setattr(log, "read", lambda _offset, _max_bytes: log.batches[-1])
    log.end += 1
    logs.client.lose()
    fetches = logs.client._fetching._ids
    before = next(fetches)
    logs.settle(60)
    assert next(fetches) - before < 150
    assert "no whole batch" in logs.status["waiting"]["dc1.logs-0"]
    assert caplog.text.count("mirror_waits") == 1


def test_a_source_fills_no_log(world: MirrorWorld, caplog: pytest.LogCaptureFixture) -> None:
    """However many partitions of a source cause a line in the log, and however often the reason
    changes, the log has a fixed number of these lines in ten minutes."""
    world.source.create("logs", 20)
    fill(world, 1, 3)
    world.follow()
    for number in range(40):
        error = KafkaError(ErrorCode.POLICY_VIOLATION, f"reason {number}")
        for each in world.mirror.followed.partitions.values():
            each.follower.interrupted()
            world.mirror.followed.halted(each.tp, error)
        world.settle(1)
    assert caplog.text.count("mirror_waits") == LINES_MAX
    world.source.cluster_id = "another"
    world.follow()
    for number in range(LINES_MAX + 20):
        world.source.create(f"offline.{number}")
    world.follow()
    assert caplog.text.count("topic_not_mirrored") == LINES_MAX
    assert caplog.text.count("mirror_topic_stopped") == 1


def test_a_source_with_too_many_topics_is_not_looked_at(
    logs: MirrorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a source names more topics than a mirror looks at, the status says so, and the source is
    asked seldom. What is mirrored already is still copied, and the others when the source names
    fewer topics."""
    monkeypatch.setattr(topics, "TOPICS_MAX", 3)
    for number in range(3):
        logs.source.create(f"t{number}")
    asked = logs.client._tickets
    for _ in range(5):
        logs.round()
    fill(logs, 1)
    logs.round()
    same(logs)
    assert logs.status["reachable"] is False
    assert "names 4 topics" in logs.status["last_failure"]
    assert logs.client._tickets < asked + 5
    assert [*logs.local.catalog] == ["dc1.logs"]
    del logs.source.topics["t2"]
    logs.settle(60)
    logs.follow()
    assert sorted(logs.local.catalog) == ["dc1.logs", "dc1.t0", "dc1.t1"]
    assert logs.status["reachable"] is True
