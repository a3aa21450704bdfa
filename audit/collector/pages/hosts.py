"""The page of hosts and senders, and the table of silent hosts on the first page."""

from __future__ import annotations

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Rows, Table
from skidway.audit.explanation.next_command import (
    SET_CLOCK,
    NextCommand,
    command_of,
    mend_refusal,
)
from skidway.audit.explanation.present_causes import nearest
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause, Run
from skidway.audit.judgement.hosts import HostState, HostStatus
from skidway.audit.judgement.sender_states import SenderState
from skidway.audit.reports import host_report

HOSTS_SHOWN = 200
"""The page shows at most this many hosts. Expected hosts that do not report come first."""
SENDERS_SHOWN = 100


def silent_table(facts: Facts, shown_max: int) -> Table:
    """Returns a table of the expected hosts that do not report. Hosts that have been silent longest
    come first. While the collector's store is being rebuilt, the table is empty, because the store
    may not have the newest messages of a host yet."""
    rebuilding = facts.evidence.rebuilding
    missed = sorted((x for x in facts.hosts if x.is_missed), key=lambda x: x.last_heard_ms)
    missed = [] if rebuilding else missed
    expected = sum(x.expected for x in facts.hosts)
    return Table(
        "silent_hosts",
        f"{len(missed)} of {words.counted(expected, 'expected host')} "
        + ("does not report" if len(missed) == 1 else "do not report"),
        (
            Column("host", "Host"),
            Column("state", "State"),
            Column("topics", "Topics", rank=3),
            Column("command", "Next", "code"),
        ),
        tuple(
            (
                Cell(state.host, href=words.link("/hosts", q=state.host)),
                _state(state, facts.now_ms),
                Cell(", ".join(state.topics) or "all of its topics"),
                Cell(next_step(facts, state)),
            )
            for state in missed
        ),
        empty=f"Not known: {reasons.of_rebuilding(rebuilding)}."
        if rebuilding
        else f"None: {words.counted(expected, 'expected host')} reported within "
        f"{words.duration(facts.policy.silence_ms / 1000)}.",
        shown_max=shown_max,
        href="/hosts",
    )


def hosts_table(facts: Facts, text: str = "") -> Table:
    """Returns a table of all hosts whose names contain the text. Expected hosts that do not report
    come first."""
    return Table(
        "hosts",
        "Hosts that the roster names or that were heard",
        (
            Column("host", "Host"),
            Column("cluster", "Cluster", rank=2),
            Column("state", "State"),
            Column("last_heard", "Last heard", "time"),
            Column("sealed_to", "Vouched until", "time", 2),
            Column("topics", "Topics", rank=3),
            Column("agents", "Agent", rank=4),
        ),
        Rows(hosts_with(facts, text), lambda x: _row(x, facts.now_ms)),
        empty="No host is named by a roster, and none was ever heard."
        if not text
        else "No host has a name like this.",
        shown_max=HOSTS_SHOWN,
    )


def hosts_with(facts: Facts, text: str) -> list[HostState]:
    """Returns the hosts whose names contain the text. First come the expected hosts that are silent
    or behind, or were never heard.
    """
    return sorted(named(facts, text), key=lambda x: not x.is_missed)


def named(facts: Facts, text: str) -> list[HostState]:
    """Returns the hosts whose names contain the text. The order of the hosts does not depend on
    what the hosts send. So if a program fetches a long list in several parts, no host is missing or
    doubled, even if hosts fall silent between two requests.
    """
    return [x for x in facts.hosts if text.lower() in x.host.lower()]


def senders_table(facts: Facts) -> Table:
    """Returns a table with a row for each sender of counts."""
    return Table(
        "senders",
        f"{words.counted(len(facts.senders), 'sender')} of counts",
        (
            Column("tier", "Tier"),
            Column("host", "Host", rank=2),
            Column("name", "Name"),
            Column("last_seen", "Last heard", "time"),
            Column("epoch", "Epoch", "number", 4),
            Column("last", "Last number", "number", 4),
            Column("state", "State"),
        ),
        Rows(facts.senders, lambda x: _sender(x, facts.now_ms)),
        empty="Nobody has sent counts yet.",
        shown_max=SENDERS_SHOWN,
    )


def _sender(state: SenderState, now_ms: int) -> tuple[Cell, ...]:
    return (
        Cell(state.key.tier.value.lower()),
        Cell(state.numbers.host),
        Cell(state.key.producer),
        Cell(words.near(state.last_seen_ms, now_ms), state.last_seen_ms),
        Cell(str(state.key.epoch), state.key.epoch),
        Cell(f"{state.numbers.last:,}", state.numbers.last),
        Cell(state.words, status=state.status if state.status in words.GLYPHS else ""),
    )


def _row(state: HostState, now_ms: int) -> tuple[Cell, ...]:
    sealed, heard = state.sealed_until, state.last_heard_ms
    return (
        Cell(state.host),
        Cell(state.cluster or ""),
        _state(state, now_ms),
        Cell(words.near(heard, now_ms), heard) if heard else Cell("never"),
        Cell("not all topics") if sealed is None else Cell(words.near(sealed, now_ms), sealed),
        Cell(", ".join(state.topics)),
        Cell(", ".join(str(each.agent) for each in state.agents)),
    )


def _state(state: HostState, now_ms: int) -> Cell:
    found = host_report.status_of(state)
    status = "" if found is None else found.word
    if state.status is HostStatus.SILENT and state.expected:
        since = words.near(state.last_heard_ms, now_ms)
        more = f": {state.refusal.words}" if state.refusal else ""
        return Cell(f"silent since {since}{more}", state.last_heard_ms, status=status)
    return Cell(host_report.words(state), status=status)


def next_step(facts: Facts, state: HostState) -> str:
    """Returns the command to run next for a host that does not report as it should, with the name
    of the host on which to run the command. If the host is silent because its messages are refused,
    or because something else does not answer, the command is for that."""
    if state.refusal is not None:
        return str(mend_refusal(state.refusal, facts.access))
    if state.status is HostStatus.BEHIND:
        return str(NextCommand(state.host, SET_CLOCK))
    agent = str(state.agents[0].agent) if state.agents else None
    cluster = state.cluster or ""
    nearer = nearest(facts.present, Cause.HOST_SILENT, cluster, agent)
    if nearer is not None and state.status is HostStatus.SILENT:
        return str(nearer.command)
    return str(command_of(facts.programs, Run("agent"), state.host, cluster))
