"""Tests what the collector reports about itself. The tests use no cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

from skidway.audit.collector.collector import JUDGED_WITHIN_S, _Expected, _Loop
from skidway.audit.collector.roster_file import LOOK_EVERY_S
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.verdict import Status
from skidway.audit.settings import AuditSettings
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import TOPIC, Delta, Heartbeat, Sender, Tier, encode
from skidway.audit.topic.topic import DamagedBatch
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.one_bucket import LATENESS, NOW, good
from support.promises import promise

HOUR = 3_600_000


class Collector:
    """A collector with a clock that tests set. It receives only the messages that tests give it."""

    def __init__(self, folder: Path, **others: Any) -> None:
        settings = AuditSettings(bootstrap_servers="a:1", store_dir=folder, **others)
        self.clock, self.ledger = ManualClock(), Ledger()
        self.loop = _Loop(settings, _Expected(settings, self.clock), self.ledger, self.clock)

    def hear(self, *ahead_ms: int) -> None:
        """Gives the collector one heartbeat of each host, without a delay. `ahead_ms` contains how
        far each host's clock is ahead of the collector's clock."""
        now_ms = self.clock.time_ms()
        for number, ahead in enumerate(ahead_ms, start=1):
            sender = Sender(Tier.AGENT, "dc1", str(number), f"app{number}", 1)
            where = Heard("t", "i", 0, number, now_ms + ahead, now_ms, is_live=True)
            value = encode(Heartbeat(sender, 0, now_ms + ahead))
            self.ledger.take_records([(value, where)], {}, now_ms)

    def health(self) -> tuple[bool, dict[str, Any]]:
        self.loop._judge()
        self.loop._examine()
        return self.loop.health.ok, dict(self.loop.health.detail)

    def statuses(self) -> Mapping[Status, int]:
        [topic] = self.loop.standing.topics
        return topic.by_status


def _metric(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"skidway_audit_{name}", labels)


@promise("clocks measured")
def test_a_host_with_a_wrong_clock_is_in_health_and_metrics_until_it_is_set(tmp_path: Path) -> None:
    """If a host's clock is wrong, health and metrics report the host until the clock is corrected.
    The collector stays healthy meanwhile."""
    collector = Collector(tmp_path)
    collector.hear(0, HOUR, 0)
    is_well, detail = collector.health()
    assert is_well
    assert detail["clocks"] == ["The clock of the agent on app2 is 3600 s ahead of the others."]
    labels = {"tier": "agent", "host": "app2", "producer": "2"}
    assert (_metric("wrong_clocks"), _metric("clock_ahead_seconds", **labels)) == (1, 3600)
    collector.clock.advance(600)
    collector.hear(0, 0, 0)
    assert "clocks" not in collector.health()[1]
    assert (_metric("wrong_clocks"), _metric("clock_ahead_seconds", **labels)) == (0, None)


@promise("6 rebuilt store")
def test_a_rebuild_is_said_at_once(tmp_path: Path) -> None:
    """When the collector begins to rebuild its store, the last verdicts become invalid at once,
    even if the next judgement is not due yet. When the rebuild ends, new verdicts are made at once.
    """
    collector, topic = Collector(tmp_path), TopicPartition(TOPIC, 0)
    collector.hear(0)
    collector.health()
    for end, is_rebuilding in ((5, True), (0, False)):
        collector.ledger.rebuild({topic: end})
        collector.loop._examine()
        assert bool(collector.loop.standing.rebuilding) is is_rebuilding
        said = collector.loop.health.detail["verdict"]
        assert said.startswith("Rebuilding") is is_rebuilding


def test_how_much_clocks_may_differ_is_a_setting(tmp_path: Path) -> None:
    """A setting says by how much the clock of a host may differ from the audit's clock before the
    audit reports the host's clock as wrong. By default, a difference of 60 s is allowed."""
    for others, allowed_ms in (({}, 60_000), ({"clock_difference_max_ms": 10_000}, 10_000)):
        for ahead_ms, named in ((allowed_ms, 0), (allowed_ms + 1, 1)):
            collector = Collector(tmp_path, **others)
            collector.hear(0, ahead_ms, 0)
            assert len(collector.health()[1].get("clocks", [])) == named, (ahead_ms, others)


def test_a_collector_whose_own_clock_is_wrong_is_not_well(tmp_path: Path) -> None:
    """A collector whose own clock is wrong is unhealthy, because it cannot judge which hosts are
    silent and which buckets are due (old enough to be complete)."""
    collector = Collector(tmp_path)
    collector.hear(HOUR, HOUR, HOUR)
    is_well, detail = collector.health()
    assert not is_well
    assert "The clock of this host is 3600 s behind those of most programs" in detail["clocks"][0]
    assert _metric("own_clock_ahead_seconds") == -3600


def test_a_collector_that_read_nothing_says_so(tmp_path: Path) -> None:
    """The health of a collector that has read no message yet says that nothing was read, and gives
    no time for the last read."""
    collector = Collector(tmp_path)
    collector.clock.advance(7)
    _, detail = collector.health()
    assert detail["seconds_since_read"] is None
    assert detail["read"] == "nothing since the start, 7 s ago"


@promise("6 damaged audit topic")
def test_a_partition_that_cannot_be_read_is_in_health_and_metrics(tmp_path: Path) -> None:
    """While the collector cannot read a partition of an audit topic, it is not healthy, and its
    health and metrics say so. When it can read the partition again, it is healthy."""
    collector = Collector(tmp_path)
    error = DamagedBatch(TopicPartition(TOPIC, 0), 7, CorruptBatch("the CRC is wrong"))
    collector.loop._tell_blocked({error.tp: error})
    is_well, detail = collector.health()
    assert not is_well
    assert detail["blocked"] == [
        "_skidway_audit-0 cannot be read at offset 7: the CRC is wrong",
    ]
    assert _metric("blocked_partitions") == 1
    collector.loop._tell_blocked({})
    is_well, detail = collector.health()
    assert (is_well, detail.get("blocked"), _metric("blocked_partitions")) == (True, None, 0)


def test_it_judges_while_the_cluster_is_away(tmp_path: Path) -> None:
    """The collector continues to judge while it cannot reach the cluster. Otherwise the dashboard
    would show an old verdict forever."""
    collector = Collector(tmp_path)
    now_ms = collector.clock.time_ms()
    sender = Sender(Tier.AGENT, "dc1", "7", "app1", 1)
    source = Source("dc1", "cid", "logs", "tid")
    counted = Delta(sender, 1, now_ms, counts=(Count(source, 7, now_ms - 60_000, 60_000, 5, 5, 5),))
    collector.ledger.take([encode(counted)])
    collector.clock.advance(2)
    collector.loop._examine()
    assert collector.loop.standing.overdue == {}
    collector.clock.advance(3_600)
    collector.loop._examine()
    assert collector.loop.standing.overdue


def test_a_roster_that_changes_is_what_is_expected_from_then_on(tmp_path: Path) -> None:
    """When the roster (the list of hosts that must report) changes, the metric of expected hosts
    and the verdicts change without a restart. While the roster's file is invalid, the collector is
    unhealthy, its health gives the reason, and the earlier roster stays in use."""
    roster = tmp_path / "roster.yml"
    roster.write_text("hosts: [{host: web1, cluster: dc1}]")
    collector = Collector(tmp_path, roster_file=roster, lateness_ms=LATENESS)
    collector.clock.set_time_ms(NOW)
    collector.ledger.take([encode(x) for x in good()])
    collector.health()
    assert (_metric("expected_hosts"), collector.statuses()) == (1, {Status.COMPLETE: 1})
    roster.write_text(
        "hosts: [{host: web1, cluster: dc1}, {host: web2, cluster: dc1, topics: [logs]}]"
    )
    collector.clock.advance(LOOK_EVERY_S)
    collector.health()
    is_well, detail = collector.health()
    assert (_metric("expected_hosts"), "roster" in detail) == (2, False)
    assert collector.statuses() == {Status.OPEN: 1}
    roster.write_text("hosts: no")
    collector.clock.advance(LOOK_EVERY_S)
    collector.health()
    is_well, detail = collector.health()
    assert (is_well, _metric("expected_hosts")) == (False, 2)
    assert "hosts must be a list" in detail["roster"]
    assert collector.statuses() == {Status.OPEN: 1}


def test_a_judgement_that_does_not_end_is_in_health(tmp_path: Path) -> None:
    """While no judgement ends, /health is 503 and says for how long: the pages show old verdicts
    then. The next judgement that ends makes it 200 again."""
    collector = Collector(tmp_path)
    collector.hear(0)
    assert collector.health()[0]
    collector.clock.advance(JUDGED_WITHIN_S)
    assert not collector.loop.health.ok
    assert collector.loop.health.detail["judging"] == "no judgement has ended for 300 s"
    assert "judging" not in collector.health()[1]
