"""Settings of the audit's programs: /etc/skidway/audit.yml and the counters' files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from skidway.audit.counts import topic_patterns
from skidway.audit.counts.bucket import DEFAULT_BUCKET_MS
from skidway.audit.evidence.admission import Mode
from skidway.audit.judgement import retired_places
from skidway.audit.judgement.policy import (
    DEFAULT_CLOCK_DIFFERENCE_MS,
    DEFAULT_LATENESS_MS,
    DEFAULT_REJECTS_SHARE,
    DEFAULT_SILENCE_MS,
    Exemption,
    FreshnessTarget,
    Policy,
)
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.output.hadoop_client import HadoopSettings
from skidway.audit.signing.setting import audit_key_setting
from skidway.audit.topic.count_columns import LONGEST_MS
from skidway.audit.topic.messages import Tier
from skidway.errors import ConfigurationRefused
from skidway.host_name import host_name_setting
from skidway.http.hosts import allowed_hosts_setting
from skidway.insecure_listeners import insecure_listeners_setting, reachable, refuse
from skidway.kafka.settings import KafkaSettings
from skidway.kafka.source import DEFAULT_CLUSTER, check_cluster_name
from skidway.settings import setting
from skidway.telemetry import host_and_port

DASHBOARD_LISTENER = "127.0.0.1:8088"
METRICS_LISTENER = "127.0.0.1:9104"
TIERS = ("agent", "broker", "mirror", "hdfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSettings(KafkaSettings):
    """The settings of `skidway audit count`: what the counter counts, and where it stores its
    progress."""

    cluster_name: str | None = setting(
        "cluster.name",
        None,
        help="Name of the cluster whose topics are counted, without a dot; if not set, the brokers"
        " are asked for it.",
    )
    tier: str = setting(
        "tier",
        "broker",
        help="broker: topics that were published to this cluster; mirror: topics mirrored to it.",
        choices=("broker", "mirror"),
    )
    topics: list[str] = setting(
        "topics",
        [".*"],
        help="Topics to count: names, or regular expressions that match whole names.",
    )
    host_name: str | None = host_name_setting()
    state_dir: Path = setting(
        "state.dir", help="Directory of offsets, marks and unpublished counts."
    )
    producer: str = setting(
        "producer",
        "",
        help="Name under which the counts are numbered; default <tier>-<name of the cluster>.",
    )
    bucket_ms: int = setting(
        "bucket.ms",
        DEFAULT_BUCKET_MS,
        help="Size of the buckets of event time; must be the same everywhere.",
        at_least=1_000,
        at_most=LONGEST_MS,
    )
    commit_interval_ms: int = setting(
        "commit.interval.ms", 15_000, help="How often counts are made durable.", at_least=10
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms",
        10_000,
        help="How often a heartbeat is sent.",
        at_least=1_000,
        at_most=10_000,
    )
    audit_key_location: Path | None = audit_key_setting("count")
    metadata_max_age_ms: int = setting(
        "metadata.max.age.ms", 5_000, help="How often to look for new topics.", at_least=100
    )
    metrics_listener: str = setting(
        "metrics.listener", "127.0.0.1:9114", help="Address of /metrics and /health."
    )
    allowed_hosts: list[str] = allowed_hosts_setting()

    def check(self) -> None:
        """Raises ConfigurationRefused if an address, the cluster's name or a pattern in `topics` is
        not valid, or if `topics` is empty."""
        _ = self.kafka
        check_cluster_name(self.cluster_name)
        topic_patterns.check(self.topics)
        if not self.topics:
            raise ConfigurationRefused("topics: at least one name or pattern is needed")

    @property
    def cluster(self) -> str:
        """The cluster's name in these settings; DEFAULT_CLUSTER if the settings have no name. If
        the configuration does not name the cluster, the program asks the brokers for the name at
        its start, and adds it to the settings."""
        return self.cluster_name or DEFAULT_CLUSTER

    @property
    def producer_name(self) -> str:
        """The counter's name in its messages (the field `producer`). Two counters of one tier must
        not have the same name, because each numbers its own messages."""
        return self.producer or f"{self.tier}-{self.cluster}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings(KafkaSettings, HadoopSettings):
    """The settings of `skidway audit run` (the collector): the clusters whose audit topics the
    collector reads, the tiers and hosts that must report, and the address at which it serves its
    pages. The brokers are those of the cluster where all audit topics meet."""

    CLIENT_ID: ClassVar[str] = "skidway-audit"

    host_name: str | None = host_name_setting()
    store_dir: Path = setting(
        "store.dir",
        Path("/var/lib/skidway/audit"),
        help="Directory of the sums; can be rebuilt from the audit topics.",
    )
    listener: str = setting(
        "listener", DASHBOARD_LISTENER, help="Address of the dashboard, host:port."
    )
    insecure_listeners: bool = insecure_listeners_setting()
    metrics_listener: str = setting(
        "metrics.listener", METRICS_LISTENER, help="Address of /metrics and /health."
    )
    allowed_hosts: list[str] = allowed_hosts_setting()
    tiers: list[str] = setting(
        "tiers",
        list(TIERS),
        help="Tiers that must agree: agent, broker, mirror, hdfs; leave out what a site lacks.",
    )
    signatures: Literal["off", "warn", "require"] = setting(
        "audit.signatures",
        "off",
        help="Whether senders must sign their messages. warn: messages without a good signature"
        " count, and are named; require: they are refused, and named.",
    )
    master_keys_location: Path | None = setting(
        "audit.master.keys.location",
        None,
        help="File with the master keys, as `skidway audit keys rotate` makes it; read again when"
        " it changes. It belongs only where a collector runs.",
        example="/etc/skidway/audit.master.keys",
    )
    audit_key_location: Path | None = audit_key_setting("audit")
    exempt_mirror: list[str] = setting(
        "exempt.mirror",
        [],
        help="Topics that need not be in tier mirror, because nobody mirrors them: names"
        " <cluster>.<topic>, or regular expressions that match whole names.",
        example=[r"dc3\..+"],
    )
    exempt_hdfs: list[str] = setting(
        "exempt.hdfs",
        [],
        help="Topics that need not be in tier hdfs, because nobody loads them; written as in"
        " exempt.mirror.",
    )
    lateness_ms: int = setting(
        "lateness.ms",
        DEFAULT_LATENESS_MS,
        help="How long after its end a bucket may get lines before it counts as due; a declared"
        " loss reaches back by this time, or by the agent's lateness.ms if that is larger.",
        at_least=0,
    )
    silence_ms: int = setting(
        "silence.ms",
        DEFAULT_SILENCE_MS,
        help="An agent that has not been heard for this long counts as dead.",
        at_least=1_000,
    )
    rejects_share: float = setting(
        "rejects.share.max",
        DEFAULT_REJECTS_SHARE,
        help="The greatest share of a bucket's records, from 0 to 1, that agents or the loader may"
        " reject without a warning; 1: never warn.",
        at_least=0,
        at_most=1,
    )
    rejects_texts: bool = setting(
        "rejects.texts",
        True,
        help="Whether the pages show the text of a rejected line of each topic: at most 300 bytes"
        " of it, as its record in the topic of rejects has it, after the masks of its agent.",
    )
    clock_difference_max_ms: int = setting(
        "clock.difference.max.ms",
        DEFAULT_CLOCK_DIFFERENCE_MS,
        help="A program whose clock differs from the others' by more is named; if it is the audit's"
        " own clock, /health is 503 and reports end with status 1.",
        at_least=1_000,
    )
    bucket_ms: int = setting(
        "bucket.ms",
        DEFAULT_BUCKET_MS,
        help="Size of the buckets of event time; must be the same everywhere.",
        at_least=1_000,
        at_most=LONGEST_MS,
    )
    roster_file: Path | None = setting(
        "roster.file",
        None,
        help="File with the hosts that must report, as the inventory writes it; read again when it"
        " changes.",
    )
    roster: dict[str, str] = setting(
        "roster",
        {},
        help="Further hosts that must report, topic: host,host,...; with none here and none in the"
        " file, every agent ever heard of must report.",
    )
    retired: list[str] = setting(
        "retired", [], help="Hosts or agent ids that nobody waits for any more."
    )
    retired_places: list[str] = setting(
        "retired.places",
        [],
        help="Outputs, mirrors and clusters that no longer count: hdfs OUTPUT, mirror CLUSTER,"
        " broker CLUSTER, cluster CLUSTER (all of its places), or a whole tier by its name.",
        example=["hdfs hdfs://old:8020/logs", "mirror offline1"],
    )
    loads_every_ms: int | None = setting(
        "loads.every.ms",
        None,
        help="The longest time between loads into an output, such as 90000000 for a load every"
        " night; after it the output is called late. Without it none is, since loads have no"
        " heartbeat.",
        at_least=1_000,
    )
    start_commands: dict[str, str] = setting(
        "start.commands",
        {},
        help="Commands that start programs of which the audit knows nothing better, by kind:"
        " registry, zookeeper, broker, loader. Advice prints them; by default it names our units.",
    )
    freshness_targets: dict[str, str] = setting(
        "freshness.targets",
        {},
        help="How soon after its end a bucket should be complete, in ms, by topic (name"
        " <cluster>.<topic>, or a regular expression that matches whole names); the first that"
        " matches counts. The page compares p99 with it.",
    )
    keep_days: int = setting(
        "keep.days",
        35,
        help="How many days of buckets (by event time) the store keeps. Of older buckets, it keeps"
        " only those that are neither complete nor accepted.",
        at_least=8,
        at_most=36_500,
    )
    history_days: int = setting(
        "history.days",
        35,
        help="How many days of buckets (by event time) the history of verdicts keeps.",
        at_least=1,
        at_most=36_500,
    )

    def check(self) -> None:
        """Raises ConfigurationRefused if one of these settings is not valid: the brokers, the
        listener, tiers, retired places, freshness targets, exempt topics. Also raises it if
        `exempt.mirror` and `exempt.hdfs` leave fewer than two tiers to compare."""
        _ = self.kafka
        refuse(self.insecure(), allowed=self.insecure_listeners)
        check_tiers(self.tiers)
        retired_places.check(self.retired_places)
        self._targets()
        exempt = {each.tier.value.lower(): each.topics for each in self._exemptions()}
        for tier, texts in exempt.items():
            topic_patterns.check(texts, f"exempt.{tier}")
        if exempt and len(set(self.tiers) - set(exempt)) < 2:
            raise ConfigurationRefused(
                f"exempt.{', exempt.'.join(exempt)}: of tiers ({', '.join(self.tiers)}) at least"
                " two must be left to compare"
            )

    def insecure(self) -> list[str]:
        """Returns the dashboard's listener if other hosts can reach it: the dashboard has no
        authentication. Raises ConfigurationRefused if it is no address."""
        return reachable([(self.listener, host_and_port(self.listener, key="listener")[0])])

    def policy(self, listed: Iterable[RosterEntry] = ()) -> Policy:
        """The policy by which buckets are judged. listed: the entries of the roster's file."""
        return Policy(
            tiers=tuple(Tier(tier.upper()) for tier in self.tiers),
            lateness_ms=self.lateness_ms,
            silence_ms=self.silence_ms,
            clock_difference_ms=self.clock_difference_max_ms,
            roster=Roster([*listed, *self._entries()], self.retired),
            exemptions=self._exemptions(),
            rejects_share=self.rejects_share,
            retired_places=tuple(self.retired_places),
            loads_every_ms=self.loads_every_ms,
            bucket_ms=self.bucket_ms,
            freshness_targets=self._targets(),
        )

    @property
    def mode(self) -> Mode:
        """The setting `audit.signatures`."""
        return Mode(self.signatures)

    def _targets(self) -> tuple[FreshnessTarget, ...]:
        topic_patterns.check(list(self.freshness_targets), "freshness.targets")
        for topic, text in self.freshness_targets.items():
            if not (text.isascii() and text.isdigit() and int(text) > 0):
                raise ConfigurationRefused(
                    f"freshness.targets: {topic}: {text!r} is no number of milliseconds above 0"
                )
        return tuple(FreshnessTarget(x, int(ms)) for x, ms in self.freshness_targets.items())

    def _exemptions(self) -> tuple[Exemption, ...]:
        given = ((Tier.MIRROR, self.exempt_mirror), (Tier.HDFS, self.exempt_hdfs))
        return tuple(Exemption(tier, tuple(texts)) for tier, texts in given if texts)

    def _entries(self) -> Iterator[RosterEntry]:
        for topic, hosts in self.roster.items():
            for host in hosts.split(","):
                if host.strip():
                    yield RosterEntry(host.strip(), None, frozenset({topic}))


def check_tiers(tiers: list[str]) -> None:
    """Raises ConfigurationRefused if the list has fewer than two tiers, an unknown tier, or the
    same tier twice."""
    unknown = [tier for tier in tiers if tier not in TIERS]
    if unknown:
        raise ConfigurationRefused(f"tiers: {unknown[0]!r} is none of {', '.join(TIERS)}")
    if len(set(tiers)) < 2 or len(set(tiers)) != len(tiers):
        raise ConfigurationRefused("tiers: at least two different tiers are needed to compare")
