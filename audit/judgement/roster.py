"""The roster says which hosts must report which topics of which cluster. Only `read_file` does I/O.

The roster's entries come both from the settings of the audit (`roster`, `retired`) and from a file
(`roster.file`), which the operator's inventory writes. The collector reads this file again when it
changes. For example:

    hosts:
      - {host: app1, cluster: dc1, topics: [nginx, auth]}
      - {host: app1, cluster: dc2, topics: [nginx]}
      - {host: app7, cluster: dc1, retired: true}

`host` is the name that the agent announces (its `host.name`); a host may report to several
clusters. The file names topics as the agent's sources do, without a mirror's prefix. The name of a
topic also means the topic with its rejected lines. If an entry has no topics, the host must report
every topic that its agent ever mentioned. If an entry retires a host, the audit does not wait for
the host in that cluster, even if other entries name the host. An entry of the settings names no
cluster and applies to every cluster. If no host must report, the roster is called silent. In this
case, the audit expects every agent that ever sent a message, except retired agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skidway import settings
from skidway.errors import ConfigurationRefused
from skidway.kafka.source import check_cluster_name
from skidway.settings import setting

_HOST = re.compile(r"[!-+\--~]{1,255}")
"""A host name consists of printable ASCII characters, without space and comma."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class RosterEntry:
    """One host of one cluster. cluster: None means every cluster. topics: an empty set means every
    topic that the host's agent mentions."""

    host: str
    cluster: str | None = None
    topics: frozenset[str] = frozenset()
    retired: bool = False


class Roster:
    """All entries of the roster. retired: the hosts and agent ids (in decimal) that the setting
    `retired` names."""

    def __init__(self, entries: Iterable[RosterEntry] = (), retired: Iterable[str] = ()) -> None:
        self._gone = frozenset(retired)
        self._entries = tuple(dict.fromkeys(entries))
        retired_of = {(x.cluster, x.host) for x in self._entries if x.retired}
        retired_of |= {(None, name) for name in self._gone}
        self._retired = frozenset(retired_of)
        expected: dict[tuple[str | None, str], frozenset[str]] = {}
        for entry in self._entries:
            key = entry.cluster, entry.host
            if not self.is_retired(*key):
                expected[key] = expected.get(key, frozenset()) | entry.topics
        self._expected: Mapping[tuple[str | None, str], frozenset[str]] = expected
        hosts: dict[tuple[str | None, str], set[str]] = {}
        for (cluster, host), topics in expected.items():
            for topic in topics:
                hosts.setdefault((cluster, topic), set()).add(host)
        self._hosts = hosts

    @property
    def is_silent(self) -> bool:
        """Whether the roster names no host that must report. If so, the audit expects every agent
        that ever sent a message, except retired agents."""
        return not self._expected

    @property
    def has_retired(self) -> bool:
        """Whether the roster retires any host or agent."""
        return bool(self._retired)

    def is_retired(self, cluster: str | None, host: str, agent: int = 0) -> bool:
        """Whether the audit no longer waits for this host of this cluster, or for this agent."""
        if not self._retired:
            return False
        names = {(cluster, host), (None, host)}
        return bool(names & self._retired) or (agent != 0 and str(agent) in self._gone)

    def hosts(self, cluster: str, topic: str) -> frozenset[str]:
        """The hosts for which the roster names this topic, except retired hosts."""
        found = self._hosts.get((cluster, topic), set()) | self._hosts.get((None, topic), set())
        return frozenset(x for x in found if not self.is_retired(cluster, x))

    def expects(self, cluster: str, topic: str, host: str) -> bool:
        """Whether this host must report this topic. Must be called only if a message of the host's
        agent mentions the topic.
        """
        if self.is_retired(cluster, host):
            return False
        if self.is_silent:
            return True
        lists = [self._expected.get((where, host)) for where in (cluster, None)]
        return any(topics is not None and (not topics or topic in topics) for topics in lists)

    def waits_for(self, cluster: str | None, host: str) -> bool:
        """Whether the audit waits for this host. Must be called only if an agent of the host has
        sent messages, or if the roster names the host.
        """
        if self.is_retired(cluster, host):
            return False
        return self.is_silent or any((x, host) in self._expected for x in (cluster, None))

    def topics(self, cluster: str | None, host: str) -> frozenset[str]:
        """The topics that the roster names for a host of a cluster; empty if the roster names no
        topic for the host."""
        lists = [self._expected.get((where, host), frozenset()) for where in (cluster, None)]
        return lists[0] | lists[1]

    def clusters(self, host: str) -> frozenset[str | None]:
        """The clusters for which the roster names a host, even if only to retire the host there.
        None means any cluster."""
        return frozenset(x.cluster for x in self._entries if x.host == host)

    def names(self, host: str) -> bool:
        """Whether the setting `retired` or any entry names this host, even an entry that retires
        the host."""
        return host in self._gone or any(x.host == host for x in self._entries)

    def __iter__(self) -> Iterator[RosterEntry]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Roster):
            return NotImplemented
        return (set(self._entries), self._gone) == (set(other._entries), other._gone)

    def __hash__(self) -> int:
        return hash((frozenset(self._entries), self._gone))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """One host in a roster file."""

    host: str = setting("host", help="The name that its agent announces (host.name).")
    cluster: str = setting("cluster", help="The cluster (cluster.name) that its agent sends to.")
    topics: list[str] = setting("topics", [], help="Names of the topics that it must report.")
    retired: bool = setting("retired", False, help="Whether nobody waits for it any more.")

    def check(self) -> None:
        """Raises ConfigurationRefused if the entry has a name that no host, cluster or topic can
        have."""
        check_host(self.host)
        check_cluster_name(self.cluster)
        for topic in self.topics:
            if not _TOPIC.fullmatch(topic):
                raise ConfigurationRefused(
                    f"host {self.host}: {topic[:100]!r} is no topic's name (patterns are not"
                    " possible here)"
                )

    @property
    def entry(self) -> RosterEntry:
        """The host as a RosterEntry."""
        return RosterEntry(self.host, self.cluster, frozenset(self.topics), self.retired)


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterDocument:
    """A roster file."""

    hosts: list[HostEntry] = setting("hosts", help="The hosts, each with its cluster and topics.")

    def check(self) -> None:
        """Raises ConfigurationRefused if the file names a host of a cluster twice."""
        seen: set[tuple[str, str]] = set()
        for each in self.hosts:
            if (each.cluster, each.host) in seen:
                raise ConfigurationRefused(
                    f"host {each.host} of cluster {each.cluster} is named twice"
                )
            seen.add((each.cluster, each.host))


def check_host(name: str) -> None:
    """Raises ConfigurationRefused if the name cannot be a host's name."""
    if not _HOST.fullmatch(name):
        raise ConfigurationRefused(
            f"{name[:100]!r} is no host's name: 1 to 255 printable characters, no space, no comma"
        )


def read_file(path: Path) -> tuple[RosterEntry, ...]:
    """Returns the entries of a roster file. If the file cannot be read or has a mistake, raises
    ConfigurationRefused, which names the file, and the line or the host.
    """
    document = settings.load(RosterDocument, path)
    return tuple(each.entry for each in document.hosts)
