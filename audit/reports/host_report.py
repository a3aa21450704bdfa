"""Reports on the state of hosts, and on the result of `skidway audit wait`, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from skidway.audit.judgement import reasons
from skidway.audit.judgement.host_proofs import Proof
from skidway.audit.judgement.hosts import MISSED, HostState, HostStatus
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report

COLUMNS = ["host", "cluster", "state", "last_heard", "sealed_to", "agent", "topics"]


def table(states: Sequence[HostState]) -> list[dict[str, Any]]:
    """A row for each host of each cluster."""
    return [
        {
            "host": state.host,
            "cluster": state.cluster,
            "state": words(state),
            "last_heard": _time(state.last_heard_ms or None),
            "sealed_to": _time(state.sealed_until),
            "agent": ", ".join(str(each.agent) for each in state.agents) or None,
            "topics": list(state.topics),
        }
        for state in states
    ]


def words(state: HostState) -> str:
    """The state of the host in words."""
    said = state.status.value
    if state.status is HostStatus.SILENT:
        said = f"silent since {report.time_text(state.last_heard_ms)}"
    if state.status is HostStatus.BEHIND:
        said = f"reports, {reasons.of_delay(state.behind_ms)}"
    if not state.expected and state.status is not HostStatus.RETIRED:
        said += " (not expected)"
    if state.namesakes:
        said += f" ({len(state.namesakes)} agents)"
    return f"{said}: {state.refusal.words}" if state.refusal else said


def sentence(states: Sequence[HostState], lacking: Sequence[str] = ()) -> str:
    """The state of all hosts in a few sentences. lacking: the hosts whose agents lack a log."""
    if not states:
        return "No host is named by a roster, and none was ever heard."
    return " ".join([_missed_sentence(states, lacking), *namesakes_sentences(states)])


def remarks(states: Sequence[HostState]) -> list[str]:
    """What a report on buckets says about hosts. The list is empty if every host that must report
    does so, and no two agents share a host name."""
    is_said = any(state.is_missed or state.namesakes for state in states)
    return [sentence(states)] if is_said else []


def _missed_sentence(states: Sequence[HostState], lacking: Sequence[str]) -> str:
    expected = [state for state in states if state.expected]
    missed = [state for state in expected if state.is_missed]
    if not missed:
        all_ = f"All {len(expected)} expected hosts report"
        return f"{all_}, but not all logs are read on {_first(lacking)}." if lacking else f"{all_}."
    verb = "does" if len(missed) == 1 else "do"
    names = _missed_names(missed)
    late = " in time" if any(state.status is HostStatus.BEHIND for state in missed) else ""
    said = f"{len(missed)} of {len(expected)} expected hosts {verb} not report{late} ({names})."
    return f"{said} Not all logs are read on {_first(lacking)}." if lacking else said


def namesakes_sentences(states: Sequence[HostState]) -> Iterator[str]:
    """Sentences about the host names under which several agents are running."""
    shared = [x for x in states if x.namesakes and x.status is not HostStatus.RETIRED]
    for state in shared[: report.REASONS_SHOWN]:
        names = reasons.some_agents(state.namesakes)
        yield f"Agents {names} report under one host name, {_who(state)}."
    if len(shared) > report.REASONS_SHOWN:
        yield f"So do those of {len(shared) - report.REASONS_SHOWN} more hosts."


def _missed_names(missed: Sequence[HostState]) -> str:
    parts = []
    for status in MISSED:
        names = [_missed_name(state) for state in missed if state.status is status]
        if names:
            parts.append(f"{status.value}: {_first(names)}")
    return "; ".join(parts)


def _first(names: Sequence[str]) -> str:
    more = len(names) - report.REASONS_SHOWN
    return ", ".join(names[: report.REASONS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _missed_name(state: HostState) -> str:
    behind = f" ({state.behind_ms // 1000} s)" if state.status is HostStatus.BEHIND else ""
    return f"{state.host}{behind}"


def status_of(state: HostState) -> Status | None:
    """Returns the bucket status that is as grave as the host's state. Returns None if the host does
    not report in time, but the audit does not expect it to report.
    """
    if state.status is HostStatus.REPORTING:
        return Status.COMPLETE
    if not state.expected:
        return None
    return Status.UNKNOWN if state.status is HostStatus.NEVER_HEARD else Status.INCOMPLETE


def status(states: Sequence[HostState], lacking: Sequence[str] = ()) -> Status:
    """The gravest of the statuses that `status_of` returns for these hosts, and at least UNKNOWN if
    the agents of some hosts lack a log; OPEN if it returns None for all hosts."""
    found = [each for x in states if (each := status_of(x)) is not None]
    return max([*found, *([Status.UNKNOWN] if lacking else [])], default=Status.OPEN)


def summary(states: Sequence[HostState], lacking: Sequence[str] = ()) -> dict[str, Any]:
    """The totals over all hosts as JSON: how many hosts are in each state, the hosts whose agents
    lack a log, and a text that says so."""
    by_state = Counter(state.status for state in states)
    return {
        "sentence": sentence(states, lacking),
        "expected": sum(state.expected for state in states),
        "missed": sum(state.is_missed for state in states),
        "lacking_logs": list(lacking),
        "by_state": {status.value: by_state.get(status, 0) for status in HostStatus},
    }


def document(
    states: Sequence[HostState],
    lacking: Sequence[str] = (),
    begin: int = 0,
    count: int | None = None,
) -> dict[str, Any]:
    """The report as JSON: totals over all hosts, and an entry for each host from index `begin` on.
    If `count` is given, there are at most `count` entries.
    """
    end = len(states) if count is None else begin + count
    return summary(states, lacking) | {
        "hosts": [host_document(state) for state in states[begin:end]]
    }


def host_document(state: HostState) -> dict[str, Any]:
    """One host of one cluster. Each time is given twice: as RFC 3339, and in ms."""
    return {
        "host": state.host,
        "cluster": state.cluster,
        "agents": [each.agent for each in state.agents],
        "namesakes": list(state.namesakes),
        "state": state.status.value,
        "expected": state.expected,
        "last_heard": _time(state.last_heard_ms or None),
        "last_heard_ms": state.last_heard_ms or None,
        "behind_ms": state.behind_ms,
        "refused": None if state.refusal is None else state.refusal.words,
        "sealed_to": _time(state.sealed_until),
        "sealed_to_ms": state.sealed_until,
        "topics": [
            {"topic": topic, "sealed_to": _time(until), "sealed_to_ms": until}
            for topic, until in state.topics.items()
        ],
    }


def wait_sentences(found: Sequence[Proof], since_ms: int, policy: Policy) -> list[str]:
    """A sentence for each host that is not proven healthy since `since_ms`. If there is no such
    host, returns one sentence about all hosts.
    """
    short = [proof for proof in found if proof.is_short]
    if short:
        return [f"{_who(proof.state)}: {report.reasons_text(proof.reasons)}." for proof in short]
    exempt = {each.tier for each in policy.exemptions}
    names = ", ".join(
        tier.value.lower() + (" (but for exempt topics)" if tier in exempt else "")
        for tier in policy.tiers
    )
    hosts = f"{len(found)} host{'s' if len(found) != 1 else ''}"
    since = report.time_text(since_ms)
    return [f"{hosts} sealed past the bucket of {since}, and complete since then in {names}."]


def wait_document(
    found: Sequence[Proof], since_ms: int, policy: Policy, waited_s: float
) -> dict[str, Any]:
    """The result of `skidway audit wait` as JSON. For each host it has all reasons why the host is
    not proven healthy.
    """
    return {
        "ok": not any(proof.is_short for proof in found),
        "since": report.time_text(since_ms),
        "since_ms": since_ms,
        "tiers": [tier.value.lower() for tier in policy.tiers],
        "seconds_waited": round(waited_s, 1),
        "hosts": [
            host_document(x.state) | {"ok": not x.is_short, "reasons": list(x.reasons)}
            for x in found
        ],
    }


def _who(state: HostState) -> str:
    return state.host if state.cluster is None else f"{state.host} ({state.cluster})"


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else report.time_text(time_ms)
