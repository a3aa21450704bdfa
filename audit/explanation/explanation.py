"""Turns the findings of a verdict into explanations, without I/O. An explanation has the cause,
where the cause lies (host, file or offsets), and the command to run next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence, GapNote, LossNote
from skidway.audit.evidence.hearing import SenderName
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.explanation.agent_health import Obstacle, obstacle, unreadable
from skidway.audit.explanation.next_command import (
    Access,
    NextCommand,
    Where,
    accept,
    command_of,
    explain_bucket,
    mend_refusal,
    next_command,
)
from skidway.audit.explanation.offsets import OffsetRange, offsets_behind, senders_of
from skidway.audit.explanation.present_causes import host_in, mirror_host, nearest, present_causes
from skidway.audit.explanation.programs import programs_of
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.clocks import clocks
from skidway.audit.judgement.fileless import told_by
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.refusals import Refusals
from skidway.audit.judgement.verdict import (
    AgentVerdict,
    BucketVerdict,
    Difference,
    Finding,
    Place,
    Rejects,
    Status,
)
from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.recount_result import RecountResult
from skidway.kafka.source import Source

NO_ACCESS = Access()
_EXPIRED = "expired"
_MOST = 0.5
_OF_TOPIC = (
    Cause.COUNTER_STOPPED, Cause.COUNTER_BEHIND, Cause.MIRROR_BEHIND, Cause.LOAD_NOT_RUN
)  # fmt: skip
_OF_HOST = (Cause.HOST_SILENT, Cause.HOST_NEVER_HEARD)
_OF_PLACE = (Cause.COUNTER_STOPPED, Cause.TIER_ABSENT, Cause.LOAD_NOT_RUN)
"""Causes that lie in a sender from which nothing was heard."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes [first, end) of a file; end is None if it is not known where the bytes end."""

    first: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Location:
    """A cause, and where it lies.

    place: the cluster or output that counted, or that lacks records. agent, host: the agent
    concerned and its host, or the host of a counter or loader. file, path: the file's id, and the
    path at which it was found first. ranges: bytes of the file. offsets: offsets of partitions of
    the source topic (see `spans_buckets`).
    """

    cause: Cause
    tier: Tier | None = None
    place: str = ""
    agent: int | None = None
    host: str = ""
    file: int | None = None
    path: str = ""
    ranges: tuple[ByteRange, ...] = ()
    offsets: tuple[OffsetRange, ...] = ()

    @property
    def spans_buckets(self) -> bool:
        """Whether `offsets` are all offsets of the topic that the place has not reached, so that
        they may have records of other buckets, too."""
        return self.cause in _OF_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Location):
    """One cause why a bucket is not complete.

    status: how grave the cause is; COMPLETE for a warning, for a difference that a recount found,
    and for records that rules left out. words: the reason as reports print it. command: the command
    to run next. accept: the command that accepts the bucket, in case the bucket cannot become
    complete; None if nobody can accept this finding now.
    """

    status: Status
    words: str
    command: NextCommand
    accept: NextCommand | None = None

    @property
    def meaning(self) -> str:
        """What the cause means, as one sentence."""
        return self.cause.meaning

    @property
    def repair(self) -> NextCommand | None:
        """The command to run next; None if a person can only accept the bucket."""
        return None if self.command == self.accept else self.command


def explain(
    verdict: BucketVerdict,
    evidence: Evidence,
    policy: Policy,
    now_ms: int,
    access: Access = NO_ACCESS,
    healths: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    last: int | None = None,
) -> list[Explanation]:
    """The explanations of a bucket, sorted by gravity and then by tier. There is an explanation for
    each finding and each warning that nobody accepted, for each recount that found a difference,
    and one more if rules left out records. Remarks (findings that make no verdict worse) have no
    explanation.

    now_ms: the time that our clock shows. access: the addresses and options that the commands need.
    healths: by host, the document of its agent's /health, as far as it is known. last: the last
    bucket that the command `accept` is to cover, if the command is to cover several buckets.
    """
    explainer = _Explainer(verdict, evidence, policy, now_ms, access, healths, last)
    return _sorted(explainer.explanations())


def explain_recounts(
    source: Source, evidence: Evidence, policy: Policy, now_ms: int, access: Access = NO_ACCESS
) -> list[Explanation]:
    """Returns an explanation for each output of the topic in which the newest recount found other
    files or rows than were counted. A recount checks a whole topic, so these explanations belong to
    no bucket."""
    if all(x.is_good for x in evidence.topic(source).recounts):
        return []
    no_bucket = BucketVerdict(source, 0, 0, Status.COMPLETE, (), due=True)
    return _sorted(_Explainer(no_bucket, evidence, policy, now_ms, access, {}, None).recounts())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Location(Location):
    """A location with additions that only this module uses. words: the reason in an agent's
    /health. command: the command to run next, if the cause alone does not determine the command.
    """

    words: str = ""
    command: NextCommand | None = None


class _Explainer:
    def __init__(
        self,
        verdict: BucketVerdict,
        evidence: Evidence,
        policy: Policy,
        now_ms: int,
        access: Access,
        healths: Mapping[str, Mapping[str, Any]],
        last: int | None,
    ) -> None:
        self._last = last
        self._healths = healths
        self._verdict = verdict
        self._evidence = evidence
        self._policy = policy
        self._now_ms = now_ms
        self._access = access
        self._topic = evidence.topic(verdict.source)
        self._wrong_clocks = clocks(evidence, policy, now_ms).wrong
        self._present = present_causes(evidence, policy, now_ms, access)
        self._programs = programs_of(evidence.statuses, access.starts)
        self._refusals = Refusals(evidence)

    def explanations(self) -> Iterator[Explanation]:
        for finding in self._verdict.findings:
            yield from self._of(finding, _Location(finding.cause))
        for agent in self._verdict.agents:
            for each in agent.findings:
                finding = _closer(each, agent)
                yield from self._of(finding, _of_agent(finding, agent))
        for warning in self._verdict.warnings:
            if warning.acceptance is None:
                yield self._made(warning, self._of_warning(warning))
        yield from self.recounts()
        if filtered := self._verdict.filtered:
            rules = ", ".join(f"{x.rule} {x.records:,}" for x in filtered)
            words = f"rules left out {sum(x.records for x in filtered):,} records ({rules})"
            finding = Finding(Status.COMPLETE, words, Cause.FILTERED)
            yield self._made(finding, _Location(Cause.FILTERED, Tier.AGENT))

    def recounts(self) -> Iterator[Explanation]:
        for result in self._topic.recounts:
            if not result.is_good:
                yield self._made(*self._of_recount(result))

    def _of(self, finding: Finding, where: _Location) -> Iterator[Explanation]:
        if finding.status > Status.COMPLETE and finding.acceptance is None:
            yield self._made(finding, self._held_up(self._placed(finding, where)))

    def _made(self, finding: Finding, where: _Location) -> Explanation:
        source = self._verdict.source
        is_mirrored = Tier.MIRROR in self._policy.tiers_of(source)
        at = Where(
            where.tier, where.host, where.place, self._access, is_mirrored, self._mirror_host,
            self._last, self._due, self._mirrors, self._programs,
        )  # fmt: skip
        command = where.command or next_command(where.cause, self._verdict, finding.reason, at)
        accepting = accept(self._verdict, finding.reason, self._access, self._last)
        words = f"{finding.reason}; {where.words}" if where.words else finding.reason
        can_accept = (
            self._verdict.due
            and (finding.status > Status.OPEN or finding.cause is Cause.REJECTED)
            and self._is_acceptable
            and not (self._evidence.rebuilding or self._evidence.unread)  # `accept` refuses all
        )
        if command == accepting and not self._is_acceptable:
            command = self._elsewhere(finding.about)
            words = f"{words}; nothing was counted in this bucket, so nothing of it can be accepted"
        elif command == accepting and not can_accept:  # a person can only run `why` again later
            command = next_command(Cause.TOO_YOUNG, self._verdict, finding.reason, at)
        return Explanation(
            where.cause,
            where.tier,
            where.place,
            where.agent,
            where.host,
            where.file,
            where.path,
            where.ranges,
            where.offsets,
            status=finding.status,
            words=words,
            command=command,
            accept=accepting if can_accept else None,
        )

    @property
    def _due(self) -> int | None:
        """The time from which on the bucket can be judged; None if this time has passed. Times are
        shown in seconds, so a part of a second counts as a whole second."""
        if self._verdict.due:
            return None
        due = self._verdict.bucket + self._verdict.bucket_ms + self._policy.lateness_ms
        return -(-due // 1000) * 1000

    @cached_property
    def _is_acceptable(self) -> bool:
        """Whether `skidway audit accept` knows the bucket: the ledger has counts of the bucket, or
        a declared loss names the bucket."""
        bucket = self._verdict.bucket, self._verdict.bucket_ms
        is_known = bucket in self._topic.tallies or bucket in self._topic.lossy
        return is_known or self._verdict.records > 0

    def _elsewhere(self, about: object) -> NextCommand:
        """Takes the subject (`about`) of a finding that nobody can accept in this bucket. Returns
        the command that explains another bucket, in which the finding can be accepted. For a
        declared loss, this is the bucket that the loss names; for any other finding, the topic's
        oldest bucket that somebody should look at."""
        first, end = self._verdict.bucket, self._verdict.bucket + self._verdict.bucket_ms
        named = about.loss.to_bucket if isinstance(about, LossNote) else None
        bucket = None if named is None or first <= named < end else time_text(named)
        return explain_bucket(topic_name(self._verdict.source), bucket, self._access)

    def _held_up(self, where: _Location) -> _Location:
        """If the cause follows from something that does not answer at present, returns that one."""
        agent = None if where.agent is None else str(where.agent)
        found = nearest(self._present, where.cause, self._verdict.source.cluster, agent)
        if found is None:
            return self._refused(where)
        return _Location(
            found.cause, found.tier, ", ".join(found.clusters), where.agent, found.host,
            words=found.words, command=found.command,
        )  # fmt: skip

    def _refused(self, where: _Location) -> _Location:
        found = None
        if where.cause in _OF_HOST:
            found = self._refusals.of_host(self._verdict.source.cluster, where.host)
        elif where.cause in _OF_PLACE and where.tier is not None:
            found = self._refusals.of_place(where.tier, where.place)
        if found is None:
            return where
        command = mend_refusal(found, self._access)
        return replace(where, cause=Cause.MESSAGES_REFUSED, words=found.words, command=command)

    def _placed(self, finding: Finding, where: _Location) -> _Location:
        """Returns `where`, and adds what the subject of the finding (`finding.about`, for example a
        declared loss) shows about where the cause lies. If the evidence shows a more precise cause,
        the result has this cause.
        """
        about = finding.about
        of_kind: dict[type[object], Callable[[Any, _Location], _Location]] = {
            LossNote: self._of_loss,
            GapNote: self._of_gap,
            Difference: self._of_difference,
            Place: self._of_absent,
        }
        if type(about) in of_kind:
            return of_kind[type(about)](about, where)
        if isinstance(about, SenderKey):
            return self._of_counter(finding, self._of_sender(about, where))
        if isinstance(about, str):
            return replace(where, tier=Tier.AGENT, host=about)
        if where.cause is Cause.TOO_YOUNG:
            return _Location(Cause.TOO_YOUNG)
        if where.cause in (Cause.IN_FLIGHT, Cause.HOST_SILENT):
            return self._of_unsealed(where)
        if where.cause is Cause.SOURCE_WITHOUT_FILES:
            told = told_by(self._evidence, where.agent or 0, self._data_topic)
            words = "; ".join(each.words for each in told)
            return replace(where, words=words, path=told[0].paths[0] if told else "")
        if where.cause is Cause.READ_TWICE:
            return self._of_rereading(finding, where)
        return where

    def _of_rereading(self, finding: Finding, where: _Location) -> _Location:
        for topic in self._evidence.topics.values():
            for each in topic.rereadings.get(where.agent or 0, ()):
                if each.reason == finding.reason:
                    return replace(where, path=each.path, ranges=(ByteRange(0, None),))
        return where

    def _of_unsealed(self, where: _Location) -> _Location:
        """Looks for a more precise cause why an agent has not sealed the bucket. Returns `where`
        with this cause; returns `where` unchanged if no such cause is known.
        """
        name = Tier.AGENT, str(where.agent)
        health = self._healths.get(where.host)
        found = self._unread(where)
        if found is None and health is not None:
            found = obstacle(health, self._data_topic)
        if found is not None:
            return replace(
                where, cause=found.cause, words=found.words, path=found.path,
                command=self._command_of(found, where),
            )  # fmt: skip
        if name in self._wrong_clocks:
            return replace(where, cause=Cause.CLOCK)
        if not self._is_silent(name):
            return where
        return replace(where, cause=Cause.HOST_SILENT)

    def _command_of(self, found: Obstacle, where: _Location) -> NextCommand:
        host = host_in(found.address, where.host) if found.address else where.host
        if found.line:
            return NextCommand(host, found.line)
        return command_of(self._programs, found.run, host, found.address or str(where.agent))

    @property
    def _data_topic(self) -> str:
        return self._verdict.source.topic.removesuffix(REJECTED_SUFFIX)

    def _unread(self, where: _Location) -> Obstacle | None:
        report = self._evidence.source_reports.get(where.agent or 0)
        if report is None or self._is_silent((Tier.AGENT, str(where.agent))):
            return None
        paths = (x for x in report.unread if x.holds and x.topic == self._data_topic)
        return next((unreadable(x.path, x.reason) for x in paths), None)

    def _of_counter(self, finding: Finding, where: _Location) -> _Location:
        """Looks for a more precise cause of a finding that no message of a counter has come since
        the bucket was due. Returns `where` with this cause, or unchanged if no such cause is known.
        """
        if finding.cause is not Cause.COUNTER_STOPPED or not isinstance(finding.about, SenderKey):
            return where
        if not self._is_silent(finding.about[:2]):
            return replace(where, cause=Cause.COUNTER_BEHIND)
        return where

    @cached_property
    def _mirrors(self) -> tuple[str, ...]:
        """The clusters that may have the mirror of the topic if no counter of a mirror is known:
        the clusters from which loaders read, without the topic's own cluster."""
        found = {x.cluster for key, x in self._evidence.senders.items() if key.tier is Tier.HDFS}
        return tuple(sorted(found - {self._verdict.source.cluster}))

    @cached_property
    def _mirror_host(self) -> str:
        return mirror_host(self._evidence, self._policy, self._now_ms)

    def _of_loss(self, note: LossNote, where: _Location) -> _Location:
        loss = note.loss
        path = self._topic.paths.get((loss.agent, loss.file), "")
        for topic in self._evidence.topics.values():
            path = path or topic.paths.get((loss.agent, loss.file), "")
        if not path and loss.reason.startswith("/"):  # the reason names a file that was never read
            path = loss.reason.partition(":")[0]
        host = self._evidence.hosts.get(loss.agent, where.host)
        ranges = (ByteRange(loss.first, loss.end),)
        return replace(
            where, tier=Tier.AGENT, host=host, agent=loss.agent, file=loss.file, path=path,
            ranges=ranges,
        )  # fmt: skip

    def _of_gap(self, note: GapNote, where: _Location) -> _Location:
        gap = note.gap
        offsets = (OffsetRange(gap.partition, gap.first, gap.end),)
        cause = Cause.RETENTION if _EXPIRED in gap.reason else Cause.GAP
        return replace(self._of_sender(note.sender, where), cause=cause, offsets=offsets)

    def _of_sender(self, key: SenderKey, where: _Location) -> _Location:
        numbers = self._evidence.senders.get(key)
        host, cluster = (numbers.host, numbers.cluster) if numbers else ("", "")
        place = key.producer if key.tier is Tier.HDFS else cluster
        if key.tier is Tier.AGENT:
            host, place = where.host or host, ""
        return replace(where, tier=key.tier, place=place, host=host)

    def _of_difference(self, about: Difference, where: _Location) -> _Location:
        place = about.place
        where = replace(where, tier=place.tier, place=place.name, host="")
        senders = senders_of(self._evidence, self._topic, place)
        if senders:
            where = self._of_sender(senders[-1], where)
        gaps = [x for x in self._topic.gaps if x.sender in senders]
        if where.cause is not Cause.RECORDS_MISSING:
            return replace(where, cause=self._cause_of_more(where.cause, place))
        held = self._held(senders)
        if held is not None:
            return replace(where, cause=held[0], words=held[1])
        behind = offsets_behind(self._evidence, self._topic, place)
        if senders and place.tier is not Tier.HDFS and self._is_silent(senders[-1][:2]):
            return replace(where, cause=Cause.COUNTER_STOPPED, offsets=behind)
        if behind:
            closer = {Tier.MIRROR: Cause.MIRROR_BEHIND, Tier.HDFS: Cause.LOAD_NOT_RUN}
            cause = closer.get(place.tier, Cause.COUNTER_BEHIND)
            return replace(where, cause=cause, offsets=behind)
        if gaps:
            return self._of_gap(max(gaps, key=lambda x: x.time_ms), where)
        return replace(where, cause=self._cause_of_more(where.cause, place))

    def _held(self, senders: Sequence[SenderKey]) -> tuple[Cause, str] | None:
        """Returns what has held up these counters since before the bucket was due, as cause and
        words: a partition at which one of them has stopped, or a transaction, behind which nobody
        counts or loads. Returns None if there is neither."""
        due = self._verdict.bucket + self._verdict.bucket_ms + self._policy.lateness_ms
        told = {name: x.held for name, x in self._topic.transactions.items()}
        held = {name: x for name, x in told.items() if x is not None and x.since_ms < due}
        for key in senders:
            if key.producer in held and held[key.producer].reason:
                return Cause.PARTITION_STOPPED, reasons.of_held_counter(key, held[key.producer])
        is_open = [x for x in held.values() if not x.reason]
        if not is_open:
            return None
        return Cause.TRANSACTION_OPEN, reasons.of_held(min(is_open, key=lambda x: x.since_ms))

    def _cause_of_more(self, cause: Cause, place: Place) -> Cause:
        if place.tier is not Tier.HDFS:
            return cause
        bad = (x for x in self._topic.recounts if not x.is_good)
        return Cause.OUTPUT_CHANGED if any(place.name.startswith(x.output) for x in bad) else cause

    def _of_absent(self, place: Place, where: _Location) -> _Location:
        where = replace(where, tier=place.tier, place=place.name, host="")
        known = [key for key in self._evidence.senders if key.tier is place.tier]
        if place.tier is Tier.BROKER:
            cluster = self._verdict.source.cluster
            known = [key for key in known if self._evidence.senders[key].cluster == cluster]
            where = replace(where, place=cluster)
        if place.tier is Tier.HDFS:
            behind = offsets_behind(self._evidence, self._topic, place)
            where = replace(where, cause=Cause.LOAD_NOT_RUN, offsets=behind)
        if not known:
            return where
        newest = max(known, key=lambda key: self._evidence.heard_ms(key[:2]))
        placed = self._of_sender(newest, where)
        if place.tier is not Tier.HDFS and self._is_silent(newest[:2]):
            return replace(placed, cause=Cause.COUNTER_STOPPED)
        held = self._held([newest])
        if held is not None:
            return replace(placed, cause=held[0], words=held[1])
        if place.tier is Tier.MIRROR:
            return replace(placed, cause=Cause.MIRROR_BEHIND)
        if where.cause is Cause.COUNTER_STOPPED:
            return replace(placed, cause=Cause.COUNTER_BEHIND)
        return replace(placed, place=place.name) if place.tier is Tier.HDFS else placed

    def _of_recount(self, result: RecountResult) -> tuple[Finding, _Location]:
        said = "; ".join(result.reasons) or f"{result.faults + result.differences} differences"
        words = f"the recount of {time_text(result.time_ms)} found: {said}"
        finding = Finding(Status.COMPLETE, words, Cause.OUTPUT_CHANGED)
        place = f"{result.output}/{topic_name(self._verdict.source)}"
        return finding, _Location(Cause.OUTPUT_CHANGED, Tier.HDFS, place, host=result.host)

    def _of_warning(self, warning: Finding) -> _Location:
        about = warning.about
        if isinstance(about, Rejects) and about.place is not None:
            senders = senders_of(self._evidence, self._topic, about.place)
            where = _Location(warning.cause, about.place.tier, about.place.name)
            return self._of_sender(senders[-1], where) if senders else where
        is_most = isinstance(about, Rejects) and about.rejects > _MOST * about.records
        cause = Cause.WRONG_PATTERN if is_most else warning.cause
        counted = [x for x in self._verdict.agents if x.agent != NO_AGENT and _most(x)]
        if not counted:
            return _Location(cause, Tier.AGENT)
        most = max(counted, key=_most)
        return _Location(cause, Tier.AGENT, agent=most.agent, host=most.host)

    def _is_silent(self, name: SenderName) -> bool:
        heard_ms = self._evidence.heard_ms(name)
        return self._now_ms - heard_ms > self._policy.silence_ms


def _of_agent(finding: Finding, verdict: AgentVerdict) -> _Location:
    if verdict.agent == NO_AGENT:
        return _Location(finding.cause)
    return _Location(finding.cause, Tier.AGENT, agent=verdict.agent, host=verdict.host)


def _closer(finding: Finding, verdict: AgentVerdict) -> Finding:
    """Returns the finding, perhaps with a more precise cause. Suppose that a tier has counted more
    records than an agent, or other records, and that the agent has not sealed the bucket. Then the
    only reason for the difference may be that the agent's newest messages (some counts and the
    seal) have not arrived yet. So the finding gets the cause of the missing seal. Returns any other
    finding unchanged.
    """
    if finding.cause in (Cause.RECORDS_DOUBLED, Cause.RECORDS_DIFFER):
        for other in verdict.findings:
            if other.cause in (Cause.IN_FLIGHT, Cause.HOST_SILENT, Cause.CLOCK):
                return replace(finding, cause=other.cause, about=None)
    return finding


def _sorted(found: Iterable[Explanation]) -> list[Explanation]:
    return sorted(dict.fromkeys(found), key=lambda x: (-x.status, _order(x.tier)))


def _order(tier: Tier | None) -> int:
    return -1 if tier is None else list(Tier).index(tier)


def _most(verdict: AgentVerdict) -> int:
    return max((x.count for x in verdict.sums.values() if x is not None), default=0)
