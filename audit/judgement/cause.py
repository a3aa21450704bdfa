"""The causes why a bucket is not complete. These causes are a fixed set. Every finding of the
judgement names its cause. For each cause, docs/audit.md says what it means, what to do, and when it
goes away.
"""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Why a bucket is not complete, or what an operator should know about it. The value is the name
    in `skidway audit why --json`."""

    TOO_YOUNG = "too young"
    IN_FLIGHT = "in flight"
    AGENT_HELD_UP = "agent held up"
    FILE_UNREADABLE = "file unreadable"
    SOURCE_WITHOUT_FILES = "source without files"
    HOST_SILENT = "host silent"
    HOST_NEVER_HEARD = "host never heard"
    CLUSTER_SILENT = "cluster silent"
    CLOCK = "clock"
    DECLARED_LOSS = "declared loss"
    UNCERTAIN = "uncertain"
    READ_TWICE = "read twice"
    STATE_RESTORED = "state restored"
    STATE_COPIED = "state copied"
    MESSAGES_MISSING = "messages missing"
    MESSAGES_EXPIRED = "messages expired"
    NEWER_VERSION = "newer version"
    REBUILDING = "rebuilding"
    PRUNED = "older than kept"
    TIER_ABSENT = "tier absent"
    COUNTER_STOPPED = "counter stopped"
    COUNTER_RESTORED = "counter restored"
    COUNTERS_COLLIDE = "counters collide"
    GAP = "gap"
    RETENTION = "retention"
    MIRROR_BEHIND = "mirror behind"
    LOAD_NOT_RUN = "load not run"
    RECORDS_MISSING = "records missing"
    RECORDS_DOUBLED = "records doubled"
    RECORDS_DIFFER = "records differ"
    OUTPUT_CHANGED = "output changed"
    RETIRED = "retired"
    REJECTED = "rejected"
    WRONG_PATTERN = "wrong pattern"
    FILTERED = "filtered"
    NO_ORIGIN = "no origin"
    SAME_HOST_NAME = "same host name"

    @property
    def meaning(self) -> str:
        """What the cause means, as one sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Cause.TOO_YOUNG: "Lines of this minute may still come; nothing is wrong.",
    Cause.IN_FLIGHT: "The agent runs, but has not vouched for this minute yet.",
    Cause.AGENT_HELD_UP: "The agent runs and cannot deliver; its /health says why.",
    Cause.FILE_UNREADABLE: "The agent cannot read a path, so it vouches for nothing: "
    "give it the right, or leave the path out with exclude.",
    Cause.SOURCE_WITHOUT_FILES: "No file has ever matched a source: the log is missing, or the "
    "pattern is wrong. Correct it, or say optional: true if the log may be missing.",
    Cause.HOST_SILENT: "No message of the host's agent arrives: the agent or its host is down.",
    Cause.HOST_NEVER_HEARD: "The roster expects the host, but no agent of it reported the topic.",
    Cause.CLUSTER_SILENT: "Nothing arrives from this cluster: its mirror stopped, or its brokers.",
    Cause.CLOCK: "The sender's clock is behind, or its messages arrive late.",
    Cause.DECLARED_LOSS: "The agent declared lines lost: nobody can deliver them any more.",
    Cause.UNCERTAIN: "The agent cannot know whether these lines arrived.",
    Cause.READ_TWICE: "A new agent read files that another agent had delivered already.",
    Cause.STATE_RESTORED: "The agent continued from an older copy of its state.",
    Cause.STATE_COPIED: "Two programs run with copies of one state.",
    Cause.MESSAGES_MISSING: "Messages with counts did not arrive at the audit.",
    Cause.MESSAGES_EXPIRED: "Messages with counts expired before the audit read them.",
    Cause.NEWER_VERSION: "A newer version of Skidway wrote messages that this audit cannot read.",
    Cause.REBUILDING: "The audit reads its topics again, and has only a part of the evidence yet.",
    Cause.PRUNED: "Records came for a bucket whose counts are no longer kept.",
    Cause.TIER_ABSENT: "No program ever counted this topic in an expected tier.",
    Cause.COUNTER_STOPPED: "The counter of this tier does not run.",
    Cause.COUNTER_RESTORED: "The counter's or loader's epochs contradict each other.",
    Cause.COUNTERS_COLLIDE: "Two counters count one partition.",
    Cause.GAP: "Offsets of the log are missing or could not be read.",
    Cause.RETENTION: "Records expired before they were copied, loaded or counted.",
    Cause.MIRROR_BEHIND: "The mirror does not have these records yet.",
    Cause.LOAD_NOT_RUN: "No load has reached these records yet.",
    Cause.RECORDS_MISSING: "The tier has passed these records, and lacks some of them.",
    Cause.RECORDS_DOUBLED: "The tier has more records than the tier before it.",
    Cause.RECORDS_DIFFER: "The tier has as many records, but not the same ones.",
    Cause.OUTPUT_CHANGED: "The output's files are not those that the loads committed: "
    "move copies out of the output, or restore what is gone. Then the next command counts again.",
    Cause.RETIRED: "Only retired places could confirm the counts.",
    Cause.REJECTED: "Many lines did not fit the pattern or the schema: replay them "
    "(skidway rejected export, skidway agent replay), then accept.",
    Cause.WRONG_PATTERN: "Most lines did not fit: correct the pattern, run skidway agent reload, "
    "replay the lines (skidway rejected export, skidway agent replay), then accept.",
    Cause.FILTERED: "Rules of the agents left out records on purpose.",
    Cause.NO_ORIGIN: "The records came from no agent; the broker's counts are the first.",
    Cause.SAME_HOST_NAME: "Several agents report under one host name.",
}
