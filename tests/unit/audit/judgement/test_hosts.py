"""Tests which state the audit derives for a host from a few messages: for example, whether the host
reports, is silent, or is retired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skidway.audit.judgement.hosts import AgentState, HostState, HostStatus, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.reports import host_report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Heartbeat, Message, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import NEVER_SEALED, SealedTopic
from skidway.kafka.source import Source
from support.fold import Fold, in_one_log
from support.promises import promise

NGINX = Source("dc1", "c1", "nginx", "n1")
AUTH = Source("dc1", "c1", "auth", "a1")
ELSEWHERE = Source("dc2", "c2", "nginx", "n2")
APP1 = Sender(Tier.AGENT, "dc1", "1", "app1", 1)
APP2 = Sender(Tier.AGENT, "dc1", "2", "app2", 1)
NOW = 10_000_000
SILENCE = 600_000


def seal(sender: Sender, number: int, *sources: Source, until: int = NOW, time: int = NOW) -> Seal:
    return Seal(sender, number, time, tuple(SealedTopic(x, until, number - 1) for x in sources))


def states(
    messages: list[Message], *entries: RosterEntry, retired: Sequence[str] = ()
) -> list[HostState]:
    policy = Policy(silence_ms=SILENCE, roster=Roster(entries, retired))
    return survey(Fold(messages).evidence(), policy, NOW)


def expected(host: str, cluster: str = "dc1", *topics: str) -> RosterEntry:
    return RosterEntry(host, cluster, frozenset(topics))


def agents(state: HostState) -> list[int]:
    return [each.agent for each in state.agents]


def test_a_host_that_reports() -> None:
    """The state of a host names its cluster, its agent and its topics, and the time up to which all
    these topics are sealed."""
    said = [seal(APP1, 1, NGINX, until=NOW - 5), seal(APP1, 2, AUTH, until=NOW - 9)]
    [found] = states([*said], expected("app1", "dc1", "nginx", "auth"))
    topics: dict[str, int | None] = {"auth": NOW - 9, "nginx": NOW - 5}
    assert found == HostState(
        "dc1", "app1", HostStatus.REPORTING, expected=True, agents=(AgentState(1, topics),),
        last_heard_ms=NOW, topics=topics,
    )  # fmt: skip
    assert found.sealed_until == NOW - 9


def test_a_topic_that_was_never_sealed_is_the_host_s_all_the_same() -> None:
    """A host's state includes a topic that the agent could never seal, because it could not read
    one of the topic's files. The host as a whole then counts as not sealed."""
    said = [seal(APP1, 1, NGINX), seal(APP1, 2, AUTH, until=NEVER_SEALED)]
    [found] = states([*said])
    assert found.topics == {"auth": None, "nginx": NOW}
    assert found.sealed_until is None


def test_a_topic_that_was_made_again_keeps_its_last_seal() -> None:
    """A topic was deleted and created again, and the agent has not sealed the new topic yet. The
    host's state then shows the time of the old topic's last seal, even if a later seal of the agent
    names the new topic as one that is not sealed yet."""
    again = replace(NGINX, topic_id="n9")
    said = [seal(APP1, 1, NGINX, until=NOW - 7), seal(APP1, 2, again, until=NEVER_SEALED)]
    [found] = states([*said])
    assert found.topics == {"nginx": NOW - 7}


def test_a_silent_host_is_missed() -> None:
    """An expected host that is silent counts as missed (it does not report as it should), and its
    state says since when it has been silent."""
    said = [seal(APP1, 1, NGINX, time=NOW - SILENCE - 1)]
    [found] = states([*said], expected("app1"))
    assert (found.status, found.is_missed) == (HostStatus.SILENT, True)
    assert host_report.words(found) == "silent since 1970-01-01T02:36:39Z"
    assert (
        states([seal(APP1, 1, NGINX, time=NOW - SILENCE)], expected("app1"))[0].is_missed is False
    )


def test_a_host_that_was_never_heard_is_missed() -> None:
    """A host that is in the roster and never sent a message counts as missed (it does not report as
    it should), with the state "never heard"."""
    found = states([seal(APP1, 1, NGINX)], expected("app1"), expected("app9", "dc1", "nginx"))
    assert [x.host for x in found if x.is_missed] == ["app9"]
    assert host_report.sentence(found) == (
        "1 of 2 expected hosts does not report (never heard: app9)."
    )


def test_a_retired_host_is_named_as_such_and_not_missed() -> None:
    """A host counts as retired if the roster file or the settings name it as retired, or if the
    settings name its agent's id as retired. It then does not count as missed (a host that does not
    report as it should)."""
    old = [seal(APP1, 1, NGINX, time=1)]
    for given in (
        states([*old], RosterEntry("app1", "dc1", retired=True)),
        states([*old], retired=["app1"]),
        states([*old], retired=["1"]),
    ):
        assert [(x.status, x.is_missed) for x in given] == [(HostStatus.RETIRED, False)]


def test_a_host_that_comes_back_is_expected_again() -> None:
    """If the roster file no longer names a host as retired, the audit expects the host again."""
    old = [seal(APP1, 1, NGINX, time=1)]
    assert states([*old], expected("app1"))[0].is_missed


def test_without_a_roster_every_host_ever_heard_of_is_expected() -> None:
    """Without a roster, the audit expects every host that ever sent a message. With a roster, a
    host that is not in the roster is shown, but does not count as missed (it need not report)."""
    said: list[Message] = [seal(APP1, 1, NGINX), seal(APP2, 1, NGINX, time=1)]
    assert [x.host for x in states(said) if x.is_missed] == ["app2"]
    found = {x.host: x for x in states(said, expected("app1"))}
    assert not found["app2"].is_missed
    assert host_report.words(found["app2"]).endswith("(not expected)")


def test_the_newest_agent_of_a_host_counts() -> None:
    """After a host was installed again, the audit takes the host's state only from the host's new
    agent. The old agent's seals no longer count."""
    anew = replace(APP1, producer="9")
    policy = Policy(silence_ms=SILENCE, roster=Roster([expected("app1")]))
    for said, sealed_until in (
        (Heartbeat(anew, 0, NOW), None),
        (seal(anew, 1, NGINX, until=NOW - 2), NOW - 2),
    ):
        evidence = in_one_log([seal(APP1, 7, NGINX, time=NOW - 50), said], NOW)
        found = survey(evidence, policy, NOW)
        assert [(agents(x), x.sealed_until) for x in found] == [([9], sealed_until)]


def test_agents_of_a_host_whose_messages_are_in_no_common_log_both_count() -> None:
    """If the messages of a host's two agents are in different logs, no log shows which agent began
    later. Therefore the audit requires the seals of both agents, whatever the times in their
    messages are. The agent whose last message has the later time comes first."""
    anew = replace(APP1, producer="9")
    said: list[Message] = [
        seal(APP1, 1, NGINX, time=NOW - 500),
        seal(APP1, 2, NGINX, until=NOW + 90, time=NOW + 90),
        seal(anew, 1, NGINX, until=NOW - 5, time=NOW - 5),
        Heartbeat(anew, 1, NOW),
    ]
    [found] = states(said, expected("app1"))
    assert (agents(found), found.topics) == ([1, 9], {"nginx": NOW - 5})
    assert host_report.table([found])[0]["agent"] == "1, 9"
    assert host_report.host_document(found)["agents"] == [1, 9]
    [found] = states(said, expected("app1", "dc1", "auth"))
    assert found.topics == {"auth": None, "nginx": NOW - 5}
    [found] = states([*said, seal(anew, 2, NGINX, time=NOW + 91)], expected("app1"))
    assert agents(found) == [9, 1]


@promise("6 expected hosts")
def test_an_agent_is_silent_by_our_clock_too_before_it_counts_no_more() -> None:
    """The audit requires seals of an agent until this agent is silent both by the audit's clock and
    by the clocks of the host's agents. If only the agents' clocks counted, an agent whose clock is
    far ahead would make the host's other agents look silent."""
    anew = replace(APP1, producer="9")
    ahead = [seal(APP1, 1, NGINX, time=5), seal(APP1, 2, NGINX, time=NOW + 2 * SILENCE)]
    for heard_ms, expected_agents in ((NOW - SILENCE + 1, [1, 9]), (NOW - SILENCE, [1])):
        [found] = states([*ahead, seal(anew, 1, NGINX, time=heard_ms)], expected("app1"))
        assert agents(found) == expected_agents


def test_a_host_of_two_clusters_is_two() -> None:
    """A host name in two clusters stands for two hosts, each with its own agent."""
    there = Sender(Tier.AGENT, "dc2", "5", "app1", 1)
    found = states(
        [seal(APP1, 1, NGINX), seal(there, 1, ELSEWHERE, time=1)],
        expected("app1"), expected("app1", "dc2"),
    )  # fmt: skip
    assert [(x.cluster, agents(x), x.is_missed) for x in found] == [
        ("dc1", [1], False), ("dc2", [5], True),
    ]  # fmt: skip


def test_a_topic_that_the_roster_names_and_no_agent_seals() -> None:
    """If the roster lists a topic for a host, and the host's agent does not seal this topic, the
    host does not count as sealed."""
    [found] = states([seal(APP1, 1, NGINX)], expected("app1", "dc1", "nginx", "auth"))
    assert found.topics == {"nginx": NOW, "auth": None}
    assert found.sealed_until is None


def test_a_topic_made_again_is_sealed_by_its_newest_seal() -> None:
    """A topic that was deleted and created again is sealed up to the newest seal of the new topic,
    because no agent seals the old topic any more."""
    again = replace(NGINX, topic_id="n9")
    [found] = states([seal(APP1, 1, NGINX, until=5), seal(APP1, 2, again, until=NOW - 1)])
    assert found.topics == {"nginx": NOW - 1}


def test_seals_that_may_be_a_copys_do_not_count() -> None:
    """If two different messages of an agent have the same number, the audit ignores the agent's
    seals from this number on. A second running copy of the agent may have sent these seals."""
    delta = Delta(APP1, 2, NOW, counts=(Count(NGINX, 1, 0, 60_000, 1, 1, 1),))
    said = [seal(APP1, 1, NGINX, until=5), seal(APP1, 2, NGINX, until=NOW), delta]
    for later in ([], [seal(APP1, 3, NGINX, until=NOW)]):
        [found] = states([*said, *later])
        assert found.topics == {"nginx": 5}


def test_hosts_of_the_settings_are_found_in_whatever_cluster_they_are() -> None:
    """The settings list hosts without their clusters. The audit uses the cluster in which messages
    of the host arrived. A host without any message has no cluster."""
    found = states(
        [seal(APP1, 1, NGINX)],
        RosterEntry("app1", None, frozenset({"nginx"})),
        RosterEntry("app9", None, frozenset({"nginx"})),
    )
    assert [(x.host, x.cluster, x.is_missed) for x in found] == [
        ("app9", None, True), ("app1", "dc1", False),
    ]  # fmt: skip


def test_an_agent_of_which_only_counters_know_is_told_by_its_id() -> None:
    """If an agent's records were counted but the agent never sent a message, the audit shows the
    agent's id in place of the unknown host's name."""
    broker = Sender(Tier.BROKER, "dc1", "b", "c", 1)
    [found] = states([Delta(broker, 1, NOW, counts=(Count(NGINX, 77, 0, 60_000, 1, 1, 1),))])
    assert (found.host, found.status) == ("agent 77", HostStatus.NEVER_HEARD)
