"""Names, without I/O, the command to run next for a cause."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.topic.messages import Tier


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command for a shell. host: where to run the command; "" for the audit's host."""

    host: str
    line: str

    def __str__(self) -> str:
        return f"on {self.host}: {self.line}" if self.host else self.line


@dataclass(frozen=True, slots=True)
class Where:
    """The facts from which a command is made. host: the host of the cause. place: the cluster or
    output. brokers: the address of the brokers whose audit topics were read; "" if unknown.
    is_mirrored: whether these brokers have the topic as a mirror. mirror_host: the host of the
    mirror's counter. last: the last bucket that an acceptance covers, if it covers several."""

    tier: Tier | None = None
    host: str = ""
    place: str = ""
    brokers: str = ""
    is_mirrored: bool = False
    mirror_host: str = ""
    last: int | None = None


_ON_HOST = {
    Cause.IN_FLIGHT: "skidway agent state show",
    Cause.AGENT_HELD_UP: "skidway agent state show",
    Cause.HOST_SILENT: "systemctl start skidway-agent",
    Cause.HOST_NEVER_HEARD: "systemctl start skidway-agent",
    Cause.CLOCK: "timedatectl set-ntp true",
    Cause.STATE_COPIED: "skidway agent state show",
    Cause.WRONG_PATTERN: "skidway agent validate",
    Cause.MIRROR_BEHIND: "skidway mirror status",
    Cause.CLUSTER_SILENT: "skidway mirror status",
    Cause.LOAD_NOT_RUN: "skidway load run",
}
_OF_ROWS = (
    Cause.RECORDS_MISSING, Cause.RECORDS_DOUBLED, Cause.RECORDS_DIFFER, Cause.OUTPUT_CHANGED,
)  # fmt: skip
_ON_AUDIT = {
    Cause.TOO_YOUNG: "skidway audit why {topic} {bucket}",
    Cause.NEWER_VERSION: "skidway --version",
    Cause.REBUILDING: "skidway audit report --topic {topic}",
    Cause.SAME_HOST_NAME: "skidway audit hosts",
    Cause.FILTERED: "skidway audit report --topic {topic}",
    Cause.NO_ORIGIN: "skidway audit report --topic {topic}",
}


def next_command(cause: Cause, verdict: BucketVerdict, words: str, where: Where) -> NextCommand:
    """The command to run next for a cause why a bucket is not complete. words: the reason to state
    if this command accepts the bucket."""
    if cause in _ON_HOST:
        return NextCommand(where.host, _ON_HOST[cause])
    if cause in _ON_AUDIT:
        topic, bucket = shlex.quote(topic_name(verdict.source)), time_text(verdict.bucket)
        return NextCommand("", _ON_AUDIT[cause].format(topic=topic, bucket=bucket))
    if cause is Cause.REJECTED and where.tier is not Tier.HDFS:
        return _rejected(verdict, where)
    if cause in (Cause.COUNTER_STOPPED, Cause.TIER_ABSENT):
        return NextCommand(where.host, f"systemctl start {_counter_unit(where)}")
    if where.tier is Tier.HDFS and cause in _OF_ROWS:
        return _recount(verdict, where)
    if cause is Cause.RECORDS_MISSING:
        return _mirror_or_counter(where)
    return accept(verdict, words, where.last)


def accept(verdict: BucketVerdict, words: str, last: int | None = None) -> NextCommand:
    """The command that accepts the bucket, and all buckets up to `last`. words: the reason."""
    topic, bucket = shlex.quote(topic_name(verdict.source)), time_text(verdict.bucket)
    until = "" if last is None else f" {time_text(last)}"
    reason = shlex.quote(words)
    return NextCommand("", f"skidway audit accept {topic} {bucket}{until} --reason {reason}")


def _rejected(verdict: BucketVerdict, where: Where) -> NextCommand:
    source = verdict.source
    topic = source.topic.removesuffix(REJECTED_SUFFIX)
    if where.is_mirrored:
        topic = f"{source.cluster}.{topic}"
    servers = f" --bootstrap-server {shlex.quote(where.brokers)}" if where.brokers else ""
    return NextCommand("", f"skidway rejected show {shlex.quote(topic)}{servers}")


def _recount(verdict: BucketVerdict, where: Where) -> NextCommand:
    output, topic = where.place.rpartition("/")[0], topic_name(verdict.source)
    servers = f" --bootstrap-server {shlex.quote(where.brokers)}" if where.brokers else ""
    options = f"--output {shlex.quote(output)} --topic {shlex.quote(topic)} --tell{servers}"
    return NextCommand(where.host, f"skidway audit recount {options}")


def _mirror_or_counter(where: Where) -> NextCommand:
    """Returns the command that shows why a mirror does not advance. The status of the mirror shows
    which partitions the mirror cannot follow, even if the source cluster is the reason. If no
    mirror is known, the command shows the state of the counter.
    """
    host = where.host if where.tier is Tier.MIRROR else where.mirror_host
    if host:
        return NextCommand(host, "skidway mirror status")
    return NextCommand(where.host, f"systemctl status {_counter_unit(where)}")


def _counter_unit(where: Where) -> str:
    return f"skidway-audit-count@{where.place}" if where.place else "skidway-audit-count@CLUSTER"
