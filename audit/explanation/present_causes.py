"""Finds, without I/O, what is wrong at present, whichever bucket it concerns: ZooKeeper, a cluster
or a registry does not answer, a counter or a loader has stopped, a file cannot be read. Such a
cause holds up many buckets, and other causes follow from it, so it is told first, and in place of
what follows from it. It is known before any bucket is due.

Programs tell the audit what they wait for, and what they cannot read (see topic.program_status and
topic.source_report). If a whole cluster cannot be reached, its programs cannot tell; the brokers
that mirror it do.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from skidway.audit.evidence.evidence import Evidence, agent_named
from skidway.audit.evidence.hearing import SenderName
from skidway.audit.explanation.agent_health import unreadable
from skidway.audit.explanation.next_command import Access, NextCommand, command_of
from skidway.audit.explanation.present_cause import PresentCause
from skidway.audit.explanation.programs import Programs, programs_of
from skidway.audit.explanation.stopped_programs import stopped_programs
from skidway.audit.judgement.cause import Cause, Run
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.reasons import of_time
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import BrokerStatus, Kind, Obstacle, ProgramStatus
from skidway.audit.topic.source_report import UnreadPath

COLLECTOR = "collector"
"""The producer of the collector's own note. It stands only in the collector's store."""
_CAUSES = {
    Kind.ZOOKEEPER: Cause.ZOOKEEPER_AWAY,
    Kind.CLUSTER: Cause.CLUSTER_AWAY,
    Kind.REGISTRY: Cause.REGISTRY_AWAY,
    Kind.OTHER: Cause.AGENT_HELD_UP,
}
_REFUSED = "refused"
HOSTS_SHOWN = 3


def present_causes(
    evidence: Evidence, policy: Policy, now_ms: int, access: Access
) -> list[PresentCause]:
    """Returns what holds up programs now; what is nearest to the source of trouble comes first.
    What follows from another present cause is left out."""
    finder = _Finder(evidence, policy, now_ms, access)
    found = sorted(finder.found(), key=lambda x: (x.cause.rank, x.since_ms or 0, x.words))
    return [x for n, x in enumerate(found) if not any(_covers(y, x) for y in found[:n])]


def _covers(first: PresentCause, other: PresentCause) -> bool:
    is_within = bool(other.clusters) and {*other.clusters} <= {*first.clusters}
    is_same_place = not first.clusters or is_within
    return first.cause.explains(other.cause) and first.agents is None and is_same_place


class _Finder:
    """Finds the present causes. Whether a sender is silent is asked as of the time at which a
    record was last read: while nothing can be read, nobody is silent for that reason."""

    def __init__(self, evidence: Evidence, policy: Policy, now_ms: int, access: Access) -> None:
        self._evidence = evidence
        self._policy = policy
        self._now_ms = min(now_ms, evidence.taken_ms or now_ms)
        self._access = access
        self._programs: Programs = programs_of(evidence.statuses, access.starts)

    def found(self) -> Iterator[PresentCause]:
        if self._access.stopped:
            command = command_of(self._programs, Run("collector"), "")
            own = replace(command, host="")  # the command that reads its store runs on its host
            yield PresentCause(Cause.COLLECTOR_STOPPED, self._access.stopped, (), own)
        away = {x.clusters: x for x in self._of_clusters()}
        yield from away.values()
        unreached = {cluster for clusters in away for cluster in clusters}
        yield from self._of_brokers(unreached)
        yield from self._of_agents(unreached)
        yield from self._of_files()
        now_ms = self._now_ms
        yield from stopped_programs(
            self._evidence, self._policy, now_ms, self._programs, self._access
        )
        for cluster in self._silent_clusters() - unreached:
            yield self._silent(cluster)

    def _of_clusters(self) -> Iterator[PresentCause]:
        """The clusters that a broker which mirrors them, or the collector, does not reach."""
        for note, status in self._told():
            found = [(note.host, x) for x in status.obstacles]
            found += [(x.host, each) for x in status.brokers for each in x.obstacles]
            for host, each in found:
                if each.kind is Kind.CLUSTER:
                    yield self._away(note, each, host)

    def _away(self, note: Note, obstacle: Obstacle, host: str) -> PresentCause:
        """If nobody listens at the address, the brokers do not run. In other cases, the network may
        be the reason, and the mirror's status says more."""
        clusters = () if note.producer == COLLECTOR else (obstacle.name,)
        if _REFUSED in obstacle.words or note.producer == COLLECTOR:
            command = command_of(self._programs, Run("broker"), host, obstacle.name)
        else:
            run = Run("mirror", "mirror status")
            command = command_of(self._programs, run, host, obstacle.name)
        return PresentCause(
            Cause.CLUSTER_AWAY, obstacle.sentence, clusters, command, obstacle.since_ms, None,
            command.host, Tier.MIRROR if clusters else None,
        )  # fmt: skip

    def _of_brokers(self, away: Container[str]) -> Iterator[PresentCause]:
        """What brokers wait for, apart from the clusters that they mirror."""
        same: dict[tuple[Kind, str], list[tuple[Note, BrokerStatus, Obstacle]]] = {}
        for note, status in self._told():
            for broker in status.brokers if note.cluster not in away else ():
                for each in broker.obstacles:
                    if each.kind is not Kind.CLUSTER:
                        told = same.setdefault((each.kind, each.name), [])
                        told.append((note, broker, each))
        for told in same.values():
            _, broker, first = min(told, key=lambda x: x[2].since_ms or 0)
            clusters = tuple(sorted({x[0].cluster for x in told}))
            yield self._made(clusters, first, broker.host, None)

    def _of_agents(self, away: Container[str]) -> Iterator[PresentCause]:
        """What agents wait for. Agents that wait for the same are held up by one cause."""
        same: dict[tuple[str, Kind, str], list[tuple[Note, Obstacle]]] = {}
        for note, status in self._told():
            if note.cluster not in away and note.producer != COLLECTOR:
                for each in status.obstacles:
                    same.setdefault((note.cluster, each.kind, each.name), []).append((note, each))
        for told in same.values():
            note, first = min(told, key=lambda x: x[1].since_ms or 0)
            hosts = sorted({x.host for x, _ in told})
            more = f" and {len(hosts) - HOSTS_SHOWN} more" if len(hosts) > HOSTS_SHOWN else ""
            words = f"{first.sentence} (held up: {', '.join(hosts[:HOSTS_SHOWN])}{more})"
            agents = frozenset(x.producer for x, _ in told)
            made = self._made((note.cluster,), first, note.host, agents)
            yield replace(made, words=words, tier=Tier.AGENT)

    def _made(
        self,
        clusters: tuple[str, ...],
        obstacle: Obstacle,
        host: str,
        agents: frozenset[str] | None,
    ) -> PresentCause:
        cause = _CAUSES[obstacle.kind]
        assert cause.run is not None
        where = host if cause.run.verb else host_in(obstacle.name, host)
        command = command_of(self._programs, cause.run, where, clusters[0])
        return PresentCause(
            cause, obstacle.sentence, clusters, command, obstacle.since_ms, agents, command.host
        )

    def _of_files(self) -> Iterator[PresentCause]:
        """The paths that agents cannot read, so that they seal nothing; one cause for a cluster."""
        found: dict[str, list[tuple[str, str, UnreadPath]]] = {}
        for key, numbers in self._evidence.senders.items():
            agent = agent_named(key.producer)
            report = self._evidence.source_reports.get(agent)
            if key.tier is not Tier.AGENT or report is None or self._is_silent(key[:2]):
                continue
            host = self._evidence.hosts.get(agent, numbers.host)
            if self._policy.roster.is_retired(numbers.cluster, host, agent):
                continue
            for each in report.unread:
                if each.holds and self._is_asked(each.topic):
                    told = (host, key.producer, each)
                    found.setdefault(numbers.cluster, []).append(told)
        for cluster, paths in found.items():
            ordered = sorted(paths, key=lambda x: (x[0], x[2].topic, x[2].path))
            host, _, first = ordered[0]
            others = len({(each, x.path) for each, _, x in paths}) - 1
            more = f" (and {others:,} more paths)" if others else ""
            yield PresentCause(
                Cause.FILE_UNREADABLE, f"{first.topic} on {host}: {first.words}{more}", (cluster,),
                NextCommand(host, unreadable(first.path, first.reason).line),
                agents=frozenset(x for _, x, _ in paths), host=host, tier=Tier.AGENT,
            )  # fmt: skip

    def _is_asked(self, topic: str) -> bool:
        return self._evidence.asked is None or topic in self._evidence.asked

    def _silent(self, cluster: str) -> PresentCause:
        mirror = self._mirror_host
        heard = [
            self._evidence.heard_ms(key[:2])
            for key, x in self._evidence.senders.items()
            if x.cluster == cluster
        ]
        words = f"Nothing has arrived from cluster {cluster} since {of_time(max(heard))}"
        run = Cause.CLUSTER_SILENT.run
        assert run is not None
        command = command_of(self._programs, run, mirror, cluster)
        return PresentCause(
            Cause.CLUSTER_SILENT, words, (cluster,), command, max(heard), None, command.host,
            Tier.MIRROR,
        )  # fmt: skip

    def _silent_clusters(self) -> set[str]:
        """The clusters all of whose agents and counters are silent, if there is at least one
        counter, and a counter of a mirror that is not silent. Then the cluster itself or the
        network is probably the reason. Silent agents alone show only that their hosts are silent.
        """
        if not self._mirror_host:
            return set()
        retired = retired_by(self._policy.retired_places, self._evidence.retirements)
        speaks: dict[str, bool] = {}
        counted = set()
        for key, x in self._evidence.senders.items():
            if key.tier in (Tier.AGENT, Tier.BROKER) and not retired.holds_cluster(x.cluster):
                is_heard = not self._is_silent(key[:2])
                speaks[x.cluster] = speaks.get(x.cluster, False) or is_heard
                if key.tier is Tier.BROKER:
                    counted.add(x.cluster)
        return {x for x in counted if not speaks[x]}

    @cached_property
    def _mirror_host(self) -> str:
        return mirror_host(self._evidence, self._policy, self._now_ms)

    def _told(self) -> Iterator[tuple[Note, ProgramStatus]]:
        for note, status in self._programs.told:
            names = [(tier, note.producer) for tier in Tier]
            known = [x for x in names if x in self._evidence.last_seen]
            if not known or not all(map(self._is_silent, known)):
                yield note, status

    def _is_silent(self, name: SenderName) -> bool:
        return self._now_ms - self._evidence.heard_ms(name) > self._policy.silence_ms


def mirror_host(evidence: Evidence, policy: Policy, now_ms: int) -> str:
    """Returns the host of the counter of tier mirror that was heard last; "" if all such counters
    are silent, or if there are none.
    """
    found = {
        evidence.heard_ms(key[:2]): x.host
        for key, x in evidence.senders.items()
        if key.tier is Tier.MIRROR and now_ms - evidence.heard_ms(key[:2]) <= policy.silence_ms
    }
    return found[max(found)] if found else ""


def nearest(
    found: Sequence[PresentCause], cause: Cause, cluster: str, agent: str | None
) -> PresentCause | None:
    """Returns the first present cause from which a finding with this cause follows."""
    for each in found:
        if each.holds_up(cluster, agent) and each.cause.explains(cause):
            return each
    return None


def host_in(address: str, host: str) -> str:
    """Returns the host in the first of these addresses, as the program on `host` knows it."""
    first = address.split(",")[0].rpartition("//")[2].partition("/")[0]
    named = first.rpartition(":")[0].strip("[]") or first
    is_loopback = named in ("localhost", "::1", "") or named.startswith("127.")
    return host if is_loopback else named
