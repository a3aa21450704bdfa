"""A *site*: everything in which a command may search for lines (the audit's evidence, clusters, an
output, and this host's files)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from skidway.audit.evidence.line_evidence import AnnouncedFile, DeclaredRange, LineEvidence
from skidway.audit.output import Output
from skidway.audit.tracing import host_files
from skidway.audit.tracing.host_files import HostFile, HostState
from skidway.audit.tracing.lines import REJECTED_SUFFIX, FileName
from skidway.audit.tracing.logs import SiteCluster
from skidway.audit.tracing.outputs import LoadedTopic, OutputTopics
from skidway.kafka.source import Source


@dataclass(slots=True)
class Site:
    """Everything in which a command may search for lines. tiers: which of the tiers broker, mirror
    and hdfs must have a line. host: the state of this host's agent; None if there is no agent, or
    if the command did not read its state.
    """

    evidence: LineEvidence
    clusters: Sequence[SiteCluster]
    output: Output | None
    tiers: tuple[str, ...]
    host: HostState | None = None
    _topics: OutputTopics | None = field(init=False, default=None)

    def clusters_of(self, source: Source) -> list[SiteCluster]:
        """The clusters that have a source topic or its topic of rejects, the source's own cluster
        first."""
        having = [each for each in self.clusters if each.topics_of(source)]
        return sorted(having, key=lambda each: each.name != source.cluster)

    def loaded(self, source: Source) -> list[LoadedTopic]:
        """Returns the output's topics that were loaded from this source topic, from its topic of
        rejects, or from a mirrored copy of one of the two. Raises ManifestUnreadable.
        """
        if self.output is None:
            return []
        if self._topics is None:
            self._topics = OutputTopics(self.output)
        rejects = replace(source, topic=source.topic + REJECTED_SUFFIX)
        return [*self._topics.loaded(source), *self._topics.loaded(rejects)]

    def file_here(self, agent: int, file: int) -> HostFile | None:
        """The file with this id on this host; None if it is not a file of this host's agent."""
        found = None if self.host is None else self.host.files.get(file)
        return found if found is not None and found.agent == agent else None

    def declared(self, agent: int, file: int) -> list[DeclaredRange]:
        """Returns the ranges of a file that are lost or uncertain according to the evidence or to
        this host's agent.
        """
        found = self.evidence.declared(agent, file)
        if self.host is not None and self.file_here(agent, file) is not None:
            known = {(each.first, each.end) for each in found}
            for each in self.host.declared:
                if each["file"] == file and (each["first"], each["end"]) not in known:
                    fate = str(each["fate"]).upper()
                    found.append(DeclaredRange(each["first"], each["end"], fate, each["reason"], 0))
        return found

    def text_here(self, agent: int, file: int, byte: int) -> tuple[int, bytes] | None:
        """The position and the bytes of the line that contains this byte, from the file on this
        host; None if the file cannot be read here, or ends before this byte."""
        found = self.file_here(agent, file)
        opened = None if found is None else found.opened()
        if opened is None:
            return None
        with opened:
            return host_files.line_at(opened, byte)


def name_of(each: AnnouncedFile) -> FileName:
    """The names (host, path, topic) of an announced file."""
    return FileName(each.agent, each.file, each.host, each.path, each.source, each.time_ms)


def with_topic(
    files: Iterable[AnnouncedFile], topics: Collection[str] | None
) -> list[AnnouncedFile]:
    """The files whose source topic has one of the names `topics`; all files if `topics` is None. A
    name is the topic's name in its own cluster, the name of its mirrored copy, or one of these two
    with the suffix `.rejected`."""
    return [x for x in files if topics is None or is_named(x.source, topics)]


def is_named(source: Source, topics: Collection[str]) -> bool:
    """Whether one of these names means this source topic, its topic of rejects, or a mirrored copy
    of one of these."""
    names = {source.topic, f"{source.cluster}.{source.topic}"}
    return any(each.removesuffix(REJECTED_SUFFIX) in names for each in topics)
