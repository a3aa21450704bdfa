"""Names, without I/O, the command to run next for a cause."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.explanation.programs import Programs, installed_as
from skidway.audit.judgement.cause import Cause, Run
from skidway.audit.judgement.refusals import Refusal
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.topic.messages import Tier
from skidway.invocation import COMMAND, Invocation
from skidway.kafka.source import Source


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command for a shell. host: where to run the command; "" for the audit's host. since: the
    time from which on the command says something new; "" if it says something new at once."""

    host: str
    line: str
    since: str = ""

    def __str__(self) -> str:
        if self.since:
            return f"from {self.since} on: {self.line}"
        return f"on {self.host}: {self.line}" if self.host else self.line


@dataclass(frozen=True, slots=True)
class Access:
    """The addresses and options that the printed commands need, so that people can run them
    unchanged.

    here: the name of the audit's host, where the commands without a host run. brokers: the address
    of the brokers whose audit topics were read; "" if unknown. options: the options by which
    further commands of `skidway audit` find the same settings and the same evidence. call,
    directory: the words that run `skidway` here, and the directory in which the options are valid
    (see skidway.invocation). starts: by kind of program, the commands that start those that tell
    the audit nothing. stopped: words that say since when the collector does not run; "" if it runs.
    """

    here: str = ""
    brokers: str = ""
    options: tuple[str, ...] = ()
    call: str = COMMAND
    directory: str = ""
    starts: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""

    def audit(self, verb: str, *words: str) -> str:
        """Returns a command of the audit that finds the same settings and evidence."""
        own = Invocation(self.call, options=self.options, directory=self.directory)
        return own.command(verb, *words)

    def on_settings(self, verb: str, *words: str) -> str:
        """Like `audit`, for a command that reads no evidence."""
        pairs = zip(self.options[::2], self.options[1::2], strict=True)
        kept = [x for pair in pairs if pair[0] in ("--config", "--set") for x in pair]
        return replace(self, options=tuple(kept)).audit(verb, *words)

    @classmethod
    def of(cls, started: Invocation, here: str, brokers: str, starts: Mapping[str, str]) -> Access:
        """Returns what the commands need that a running collector prints: the settings with which
        it was started."""
        return cls(here, brokers, started.options, started.call, started.directory, starts)

    def brokers_from(self, host: str) -> tuple[str, ...]:
        """Returns the option --bootstrap-server for a command on a host; empty if no broker's
        address is known. If `host` is not the audit's host, each loopback address is replaced by
        the name of the audit's host.
        """
        if not self.brokers:
            return ()
        if host in ("", self.here) or not self.here:
            return "--bootstrap-server", self.brokers
        named = ",".join(_LOOPBACK.sub(f"{self.here}:", x) for x in self.brokers.split(","))
        return "--bootstrap-server", named


@dataclass(frozen=True, slots=True)
class Where:
    """The facts from which a command is made. host: the host of the cause. place: the cluster or
    output. access: the addresses and options that the command needs. is_mirrored: whether the
    brokers in `access` have the topic as a mirror topic. mirror_host: the host of the mirror's
    counter. last: the last bucket that an acceptance covers, if it covers several. due: the time
    from which on the bucket can be judged and accepted; None if this time has passed. clusters: the
    clusters that the place may be if `place` is empty. programs: how the site's programs were
    started."""

    tier: Tier | None = None
    host: str = ""
    place: str = ""
    access: Access = field(default_factory=Access)
    is_mirrored: bool = False
    mirror_host: str = ""
    last: int | None = None
    due: int | None = None
    clusters: tuple[str, ...] = ()
    programs: Programs = field(default_factory=Programs)


SET_CLOCK = "timedatectl set-ntp true"
"""The command for a host whose clock is wrong, or whose messages are late, because a wrong clock
may be the reason."""
_LOOPBACK = re.compile(r"^(?:127\.[0-9.]+|localhost|\[::1\]):")
_OF_ROWS = (
    Cause.RECORDS_MISSING, Cause.RECORDS_DOUBLED, Cause.RECORDS_DIFFER, Cause.OUTPUT_CHANGED,
)  # fmt: skip
_OF_COUNTER = {
    Cause.COUNTER_STOPPED: "start", Cause.TIER_ABSENT: "start", Cause.PARTITION_STOPPED: "restart"
}  # fmt: skip
_ON_AUDIT = {
    Cause.REBUILDING: ("audit report", "--topic", "{topic}"),
    Cause.COUNTER_BEHIND: ("audit report", "--topic", "{topic}"),
    Cause.TRANSACTION_OPEN: ("audit report", "--topic", "{topic}"),
    Cause.PRUNED: ("audit report", "--history", "--topic", "{topic}", "--bucket", "{bucket}"),
    Cause.SAME_HOST_NAME: ("audit hosts",),
    Cause.FILTERED: ("audit report", "--topic", "{topic}"),
    Cause.NO_ORIGIN: ("audit report", "--topic", "{topic}"),
}


def next_command(cause: Cause, verdict: BucketVerdict, words: str, where: Where) -> NextCommand:
    """Returns the command to run next if a bucket is not complete for this cause. words: the reason
    to state if this command accepts the bucket.
    """
    if cause.run is not None:
        is_of_loader = cause.run.program == "loader"
        place = where.place if is_of_loader else verdict.source.cluster
        return command_of(where.programs, cause.run, where.host, place)
    if cause is Cause.CLOCK:
        return NextCommand(where.host, SET_CLOCK)
    if cause is Cause.NEWER_VERSION:
        return NextCommand("", f"{where.access.call} --version")
    if cause is Cause.TOO_YOUNG:
        return _explain_later(verdict, where)
    if cause in _ON_AUDIT:
        topic, bucket = topic_name(verdict.source), time_text(verdict.bucket)
        known = {"{topic}": topic, "{bucket}": bucket}
        return NextCommand("", where.access.audit(*(known.get(x, x) for x in _ON_AUDIT[cause])))
    if cause is Cause.REJECTED and where.tier is not Tier.HDFS:
        return NextCommand("", rejected_show(verdict.source, where.access, where.is_mirrored))
    if cause in _OF_COUNTER:
        return NextCommand(where.host, _counter(_OF_COUNTER[cause], where))
    if where.tier is Tier.HDFS and cause in _OF_ROWS:
        return _recount(verdict, where)
    if cause is Cause.RECORDS_MISSING:
        return _mirror_or_counter(verdict, where)
    return accept(verdict, words, where.access, where.last)


def command_of(programs: Programs, run: Run, host: str, place: str = "") -> NextCommand:
    """Returns the command of a cause that names a program, with the settings of this program. host,
    place: where the program is, as far as it is known (see Programs.find)."""
    return NextCommand(*programs.command(run.program, run.verb, host, place))


def accept(
    verdict: BucketVerdict, words: str, access: Access, last: int | None = None
) -> NextCommand:
    """The command that accepts the bucket, and all buckets up to `last`. words: the reason."""
    until = () if last is None else (time_text(last),)
    named = (topic_name(verdict.source), time_text(verdict.bucket), *until)
    return NextCommand("", access.audit("audit accept", *named, "--reason", words))


def show_hosts(access: Access) -> NextCommand:
    """Returns the command that shows the state of each host."""
    return NextCommand("", access.audit("audit hosts"))


def mend_refusal(refusal: Refusal, access: Access) -> NextCommand:
    """Returns the command that prints the key which a sender needs. If it has the right key, shows
    the state of each host."""
    if not refusal.identity:
        return show_hosts(access)
    return NextCommand("", access.on_settings("audit keys derive", refusal.identity))


def explain_bucket(topic: str, bucket: str | None, access: Access) -> NextCommand:
    """Returns the command that explains a bucket, with all its causes. topic, bucket: the names as
    reports print them. If `bucket` is None, the command chooses a bucket of the topic."""
    named = (topic,) if bucket is None else (topic, bucket)
    return NextCommand("", access.audit("audit why", *named))


def rejected_show(source: Source, access: Access, is_mirrored: bool, *options: str) -> str:
    """Returns the command to run on the audit's host to see the rejected lines of a topic.
    is_mirrored: whether the brokers that the command asks have the topic as a mirror topic, whose
        name begins with the name of the source cluster.
    """
    topic = source.topic.removesuffix(REJECTED_SUFFIX)
    if is_mirrored:
        topic = f"{source.cluster}.{topic}"
    return _joined(f"{access.call} rejected show", (topic, *options, *access.brokers_from("")))


def _explain_later(verdict: BucketVerdict, where: Where) -> NextCommand:
    named = topic_name(verdict.source), time_text(verdict.bucket)
    command = explain_bucket(*named, where.access)
    return replace(command, since="" if where.due is None else time_text(where.due))


def _recount(verdict: BucketVerdict, where: Where) -> NextCommand:
    output, topic = where.place.rpartition("/")[0], topic_name(verdict.source)
    servers = where.access.brokers_from(where.host)
    options = ("--output", output, "--topic", topic, "--tell", *servers)
    found = where.programs.find("loader", where.host, where.place)
    own = installed_as("loader") if found is None else found.invocation
    call = where.access.call if found is None and where.host == where.access.here else own.call
    return NextCommand(where.host, _joined(f"{call} audit recount", options))


def _mirror_or_counter(verdict: BucketVerdict, where: Where) -> NextCommand:
    """Returns the command that shows why a mirror does not advance. The status of the mirror shows
    which partitions the mirror cannot follow, even if the cause lies in the source cluster. If no
    mirror is known, the command shows the state of the counter.
    """
    host = where.host if where.tier is Tier.MIRROR else where.mirror_host
    if host:
        run = Run("mirror", "mirror status")
        return command_of(where.programs, run, host, verdict.source.cluster)
    return NextCommand(where.host, _counter("status", where))


def _counter(action: str, where: Where) -> str:
    """Returns the command for the counter of the place. If `where` does not say which cluster the
    place is, the command names the counters of all clusters that the place may be. If no such
    cluster is known, the command lists all counters of the host."""
    clusters = (where.place,) if where.place else where.clusters
    return where.programs.counter(action, where.tier, where.host, clusters)


def _joined(command: str, words: Iterable[str]) -> str:
    return " ".join([command, *map(shlex.quote, words)])
