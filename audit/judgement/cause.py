"""The causes why a bucket is not complete. These causes are a fixed set. Every finding of the
judgement names its cause. For each cause, docs/audit.md says what it means, what to do, and when it
goes away.

The one table of causes has for each cause what it means, which program and verb tell more or end
it, and which other causes follow from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Cause(StrEnum):
    """Why a bucket is not complete, or what an operator should know about it. The value is the name
    in `skidway audit why --json`. The order is that of explanations: what is nearest to the source
    of trouble comes first, then what holds records up now, then what lasts until somebody accepts
    it."""

    COLLECTOR_STOPPED = "collector stopped"
    REBUILDING = "rebuilding"
    NEWER_VERSION = "newer version"
    NOT_VERIFIED = "not verified"
    ZOOKEEPER_AWAY = "zookeeper away"
    CLUSTER_AWAY = "cluster away"
    CLUSTER_SILENT = "cluster silent"
    REGISTRY_AWAY = "registry away"
    STATE_COPIED = "state copied"
    FILE_UNREADABLE = "file unreadable"
    SOURCE_WITHOUT_FILES = "source without files"
    AGENT_HELD_UP = "agent held up"
    MESSAGES_REFUSED = "messages refused"
    CLOCK = "clock"
    HOST_SILENT = "host silent"
    HOST_NEVER_HEARD = "host never heard"
    COUNTER_STOPPED = "counter stopped"
    COUNTER_BEHIND = "counter behind"
    PARTITION_STOPPED = "partition stopped"
    TRANSACTION_OPEN = "transaction open"
    COUNTERS_COLLIDE = "counters collide"
    TIER_ABSENT = "tier absent"
    MIRROR_BEHIND = "mirror behind"
    LOAD_NOT_RUN = "load not run"
    IN_FLIGHT = "in flight"
    TOO_YOUNG = "too young"
    DECLARED_LOSS = "declared loss"
    UNCERTAIN = "uncertain"
    READ_TWICE = "read twice"
    STATE_RESTORED = "state restored"
    MESSAGES_MISSING = "messages missing"
    MESSAGES_EXPIRED = "messages expired"
    PRUNED = "older than kept"
    COUNTER_RESTORED = "counter restored"
    GAP = "gap"
    RETENTION = "retention"
    RECORDS_MISSING = "records missing"
    RECORDS_DOUBLED = "records doubled"
    RECORDS_DIFFER = "records differ"
    OUTPUT_CHANGED = "output changed"
    RETIRED = "retired"
    WRONG_PATTERN = "wrong pattern"
    REJECTED = "rejected"
    FILTERED = "filtered"
    NO_ORIGIN = "no origin"
    SAME_HOST_NAME = "same host name"

    @property
    def rank(self) -> int:
        """The place in the order of explanations, from 0."""
        return _RANKS[self]

    @property
    def meaning(self) -> str:
        """What the cause means, as one sentence."""
        return _TABLE[self].meaning

    @property
    def run(self) -> Run | None:
        """The command to run next; None if it depends on more than the cause."""
        return _TABLE[self].run

    def explains(self, other: Cause) -> bool:
        """Whether the other cause follows from this one, so that only this one is worth telling."""
        return other in _TABLE[self].follow


class Run(NamedTuple):
    """A command, by the kind of program that it concerns. verb: noun and verb of the command; empty
    for the command that starts the program."""

    program: str
    verb: str = ""


class _Row(NamedTuple):
    meaning: str
    run: Run | None = None
    follow: tuple[Cause, ...] = ()


_RANKS = {cause: rank for rank, cause in enumerate(Cause)}
_OF_SILENCE = (
    Cause.CLUSTER_SILENT, Cause.REGISTRY_AWAY, Cause.AGENT_HELD_UP, Cause.CLOCK, Cause.HOST_SILENT,
    Cause.IN_FLIGHT, Cause.COUNTER_STOPPED, Cause.COUNTER_BEHIND, Cause.TIER_ABSENT,
    Cause.MIRROR_BEHIND,
)  # fmt: skip
"""What follows, or seems to, if nothing arrives."""
_TABLE = {
    Cause.COLLECTOR_STOPPED: _Row(
        "The collector does not run: reports and pages show what it knew when it stopped.",
        Run("collector"),
        (*_OF_SILENCE, Cause.LOAD_NOT_RUN),
    ),
    Cause.REBUILDING: _Row(
        "The audit reads its topics again, and has only a part of the evidence yet."
    ),
    Cause.NEWER_VERSION: _Row(
        "A newer version of Skidway wrote messages that this audit cannot read. If nobody has a"
        " newer version, disown them (skidway audit disown)."
    ),
    Cause.NOT_VERIFIED: _Row(
        "This program cannot check the signatures of the senders, or took messages before it could."
    ),
    Cause.ZOOKEEPER_AWAY: _Row(
        "Brokers and registries need ZooKeeper: without it, nothing is created or registered.",
        Run("zookeeper"),
        (Cause.REGISTRY_AWAY, Cause.AGENT_HELD_UP, Cause.IN_FLIGHT, Cause.TIER_ABSENT),
    ),
    Cause.CLUSTER_AWAY: _Row(
        "No program reaches the brokers of this cluster, so nothing of its hosts arrives.",
        Run("broker"),
        _OF_SILENCE,
    ),
    Cause.CLUSTER_SILENT: _Row(
        "Nothing arrives from this cluster: its mirror stopped, or its brokers.",
        Run("mirror", "mirror status"),
        _OF_SILENCE,
    ),
    Cause.REGISTRY_AWAY: _Row(
        "An agent that starts needs a schema registry for schemas that are new to it.",
        Run("registry"),
        (Cause.AGENT_HELD_UP, Cause.HOST_SILENT, Cause.IN_FLIGHT),
    ),
    Cause.STATE_COPIED: _Row(
        "Two programs run with copies of one state.", Run("agent", "agent state show")
    ),
    Cause.FILE_UNREADABLE: _Row(
        "The agent cannot read a path, so it vouches for nothing: give it the right, or leave the "
        "path out with exclude."
    ),
    Cause.SOURCE_WITHOUT_FILES: _Row(
        "No file has ever matched a source: the log is missing, or the pattern is wrong. Correct "
        "it, or say optional: true if the log may be missing.",
        Run("agent", "agent validate"),
    ),
    Cause.AGENT_HELD_UP: _Row(
        "The agent runs and cannot deliver; its /health says why.",
        Run("agent", "agent state show"),
        (Cause.IN_FLIGHT,),
    ),
    Cause.MESSAGES_REFUSED: _Row(
        "The audit refuses the sender's messages: the sender needs another key."
    ),
    Cause.CLOCK: _Row("The sender's clock is behind, or its messages arrive late."),
    Cause.HOST_SILENT: _Row(
        "No message of the host's agent arrives: the agent or its host is down.", Run("agent")
    ),
    Cause.HOST_NEVER_HEARD: _Row(
        "The roster expects the host, but no agent of it reported the topic.", Run("agent")
    ),
    Cause.COUNTER_STOPPED: _Row("The counter of this tier does not run."),
    Cause.COUNTER_BEHIND: _Row(
        "The counter of this tier was heard lately, and has not come so far yet."
    ),
    Cause.PARTITION_STOPPED: _Row(
        "The counter cannot count a partition further, and does not go on by itself: end the "
        "reason, then start the counter again."
    ),
    Cause.TRANSACTION_OPEN: _Row(
        "A producer has not ended a transaction, so nobody counts or loads what is behind it. If "
        "the producer is gone, abort it with Kafka's kafka-transactions.sh."
    ),
    Cause.COUNTERS_COLLIDE: _Row("Two counters count one partition."),
    Cause.TIER_ABSENT: _Row("No program ever counted this topic in an expected tier."),
    Cause.MIRROR_BEHIND: _Row(
        "The mirror does not have these records yet.", Run("mirror", "mirror status")
    ),
    Cause.LOAD_NOT_RUN: _Row("No load has reached these records yet.", Run("loader")),
    Cause.IN_FLIGHT: _Row(
        "The agent runs, but has not vouched for this minute yet.", Run("agent", "agent state show")
    ),
    Cause.TOO_YOUNG: _Row("Lines of this minute may still come; nothing is wrong."),
    Cause.DECLARED_LOSS: _Row("The agent declared lines lost: nobody can deliver them any more."),
    Cause.UNCERTAIN: _Row("The agent cannot know whether these lines arrived."),
    Cause.READ_TWICE: _Row("A new agent read files that another agent had delivered already."),
    Cause.STATE_RESTORED: _Row("The agent continued from an older copy of its state."),
    Cause.MESSAGES_MISSING: _Row("Messages with counts did not arrive at the audit."),
    Cause.MESSAGES_EXPIRED: _Row("Messages with counts expired before the audit read them."),
    Cause.PRUNED: _Row("Records came for a bucket whose counts are no longer kept."),
    Cause.COUNTER_RESTORED: _Row("The counter's or loader's epochs contradict each other."),
    Cause.GAP: _Row("Offsets of the log are missing or could not be read."),
    Cause.RETENTION: _Row("Records expired before they were copied, loaded or counted."),
    Cause.RECORDS_MISSING: _Row("The tier has passed these records, and lacks some of them."),
    Cause.RECORDS_DOUBLED: _Row("The tier has more records than the tier before it."),
    Cause.RECORDS_DIFFER: _Row("The tier has as many records, but not the same ones."),
    Cause.OUTPUT_CHANGED: _Row(
        "The output's files are not those that the loads committed: "
        "move copies out of the output, or restore what is gone. Then the next command counts "
        "again."
    ),
    Cause.RETIRED: _Row("Only retired places could confirm the counts."),
    Cause.WRONG_PATTERN: _Row(
        "Most lines did not fit: correct the pattern, run skidway agent reload, "
        "replay the lines (skidway rejected export, skidway agent replay), then accept.",
        Run("agent", "agent validate"),
    ),
    Cause.REJECTED: _Row(
        "Many lines did not fit the pattern or the schema: replay them "
        "(skidway rejected export, skidway agent replay), then accept."
    ),
    Cause.FILTERED: _Row("Rules of the agents left out records on purpose."),
    Cause.NO_ORIGIN: _Row("The records came from no agent; the broker's counts are the first."),
    Cause.SAME_HOST_NAME: _Row("Several agents report under one host name."),
}
