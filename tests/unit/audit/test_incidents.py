"""Tests eight incidents on three sites: what is told first, and which commands are printed.

The evidence of an incident is what programs tell the audit while it lasts. The sites differ in how
their programs were started: by our units, by hand with files and ports of their own, and with two
brokers on one host. tests/e2e/test_incidents.py tests the same incidents with real programs.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Any

import pytest

from skidway import units
from skidway.audit.collector.pages import mirrors, overview, risk
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.hosts import silent_table
from skidway.audit.collector.pages.loads import loads_table
from skidway.audit.collector.pages.overview import present_alarms
from skidway.audit.collector.pages.table import Table
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import Reading
from skidway.audit.explanation.choice import first_explained, is_bad
from skidway.audit.explanation.explanation import Explanation, explain
from skidway.audit.explanation.next_command import Access, NextCommand
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import of_evidence
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Status
from skidway.audit.topic.messages import Heartbeat, Message, Range, Sender
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import KIND as STATUS
from skidway.audit.topic.program_status import (
    BrokerStatus,
    Kind,
    Obstacle,
    ProgramStatus,
    body_of,
)
from skidway.audit.topic.source_report import NOTHING, SourceReport, UnreadPath
from skidway.cli.commands import GROUP
from skidway.invocation import Invocation
from support.audit_senders import AGENT, BROKER, LOGS
from support.fold import Fold
from support.one_bucket import DUE, HDFS, MIRROR, NOW, POLICY, START, count, delta, good, roster

WITH_A_SILENT_HOST = replace(POLICY, roster=roster("web1", "web9"))
SILENT = NOW + POLICY.silence_ms + 1
PYTHON = "/venv/bin/python -m skidway"
REFUSED = Obstacle(Kind.CLUSTER, "dc1", "10.0.0.1:9092: Connection refused")
UNANSWERED = Obstacle(Kind.CLUSTER, "dc1", "10.0.0.1:9092 did not answer within 30 s")
ZOOKEEPER = Obstacle(Kind.ZOOKEEPER, "z1:2181", "")
REGISTRY = Obstacle(Kind.REGISTRY, "http://r1:8081", "refused")


@dataclass(frozen=True)
class Setup:
    """How the programs of a site were started, by name. call: the words that run `skidway` there.

    hosts: where the brokers run. starts: the setting `start.commands` of the audit."""

    name: str
    started: Mapping[str, Invocation]
    hosts: Mapping[str, str]
    starts: Mapping[str, str] = field(default_factory=dict)
    call: str = "skidway"

    def access(self, stopped: str = "") -> Access:
        own = self.started["audit"]
        return Access("au1", "k2:9092", own.options, self.call, "", self.starts, stopped)

    def config(self, program: str) -> str | None:
        return dict(zip(*[iter(self.started[program].options)] * 2, strict=True)).get("--config")


VERBS = {
    "agent": "agent run", "broker-dc1": "broker run", "broker-offline": "broker run",
    "count-dc1": "audit count", "count-offline": "audit count", "loader": "load run",
    "audit": "audit run",
}  # fmt: skip
OF_UNITS = {
    "agent": "skidway-agent", "broker-dc1": "skidway-broker", "broker-offline": "skidway-broker",
    "count-dc1": "skidway-audit-count@dc1", "count-offline": "skidway-audit-count@offline",
    "loader": "skidway-loader", "audit": "skidway-audit",
}  # fmt: skip
OWN_HOSTS = {"broker-dc1": "k1", "broker-offline": "k2"}
BY_HAND = {x: ("--config", f"/my site/{x}.yml") for x in VERBS}
SETUPS = [
    Setup("units", {x: Invocation("skidway", VERBS[x], (), OF_UNITS[x]) for x in VERBS}, OWN_HOSTS),
    Setup(
        "by hand", {x: Invocation(PYTHON, VERBS[x], BY_HAND[x]) for x in VERBS}, OWN_HOSTS,
        {x: f"{PYTHON} {x} run --config /my/{x}.yml" for x in ("registry", "zookeeper")}, PYTHON,
    ),
    Setup(
        "two brokers on a host",
        {
            x: Invocation("skidway", VERBS[x], ("--config", f"/etc/skidway/{x}.yml"), f"our-{x}")
            for x in VERBS
        },
        {"broker-dc1": "k1", "broker-offline": "k1"},
        {x: f"systemctl start our-{x}" for x in ("registry", "zookeeper")},
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Incident:
    """What the audit has while an incident lasts, and what must be told first. drop: the indexes of
    the messages of a good bucket that did not come. dc1, offline, agent: what the brokers and the
    agent wait for. unread: what the agent cannot read. compared: the senders whose clocks are known
    to be right. program: the program of the command; "" for a command of another kind. line: how
    the command begins; "start" for the command that starts the program."""

    name: str
    cause: Cause
    program: str
    line: str = "start"
    drop: tuple[int, ...] = (4,)
    add: tuple[Message, ...] = ()
    now: int = NOW
    dc1: tuple[Obstacle, ...] = ()
    offline: tuple[Obstacle, ...] = ()
    agent: tuple[Obstacle, ...] = ()
    healths: Mapping[str, Any] = field(default_factory=dict)
    stopped: str = ""
    unread: SourceReport = NOTHING
    compared: tuple[Sender, ...] = ()
    policy: Policy = POLICY

    def evidence(self, setup: Setup) -> Evidence:
        started = setup.started
        brokers = {
            name: BrokerStatus(f"{name}:9092", setup.hosts[name], started[name], waits, mirrored)
            for name, waits, mirrored in (
                ("broker-dc1", self.dc1, ()), ("broker-offline", self.offline, ("dc1",))
            )
        }  # fmt: skip
        told = (
            (AGENT, ProgramStatus(started["agent"], self.agent)),
            (BROKER, ProgramStatus(started["count-dc1"], (), (brokers["broker-dc1"],), "BROKER")),
            (
                MIRROR,
                ProgramStatus(started["count-offline"], (), (brokers["broker-offline"],), "MIRROR"),
            ),
            (HDFS, ProgramStatus(started["loader"])),
            (replace(BROKER, producer="collector", host="au1"), ProgramStatus(started["audit"])),
        )
        said = [x for n, x in enumerate(good()) if n not in self.drop]
        found = Fold([*said, *self.add, *(_note(x, status) for x, status in told)]).evidence()
        found.source_reports[7] = self.unread
        found.readings |= {(x.tier, x.producer): Reading(0, 0) for x in self.compared}
        return found


def _note(sender: Sender, status: ProgramStatus) -> Note:
    who = sender.producer, sender.host, sender.cluster
    return Note(STATUS, *who, sender.epoch, 1, DUE, body_of(status))


def _fresh(*senders: Sender) -> tuple[Message, ...]:
    return tuple(Heartbeat(x, 1, SILENT) for x in senders)


INCIDENTS = [
    Incident(
        "broker", Cause.CLUSTER_AWAY, "broker-dc1", add=_fresh(MIRROR, HDFS), now=SILENT,
        offline=(REFUSED,),
    ),
    Incident("broker, at once", Cause.CLUSTER_AWAY, "broker-dc1", offline=(REFUSED,)),
    Incident("registry", Cause.REGISTRY_AWAY, "registry", agent=(REGISTRY,)),
    Incident(
        "ZooKeeper", Cause.ZOOKEEPER_AWAY, "zookeeper", dc1=(ZOOKEEPER,), offline=(ZOOKEEPER,),
        agent=(REGISTRY,),
    ),
    Incident(
        "mirror source", Cause.CLUSTER_AWAY, "broker-offline", "mirror status",
        add=_fresh(MIRROR, HDFS), now=SILENT, offline=(UNANSWERED,),
    ),
    Incident(
        "counter", Cause.COUNTER_STOPPED, "count-dc1", drop=(1,), now=SILENT,
        add=(delta(BROKER, 1, count(3)), *_fresh(AGENT, MIRROR, HDFS)),
    ),
    Incident(
        "counter, at once", Cause.COUNTER_STOPPED, "count-dc1", drop=(), compared=(BROKER,),
    ),
    Incident(
        "counter of the mirror", Cause.COUNTER_STOPPED, "count-offline", drop=(2,), now=SILENT,
        add=(delta(MIRROR, 1, count(3)), *_fresh(AGENT, BROKER, HDFS)),
    ),
    Incident(
        "collector", Cause.COLLECTOR_STOPPED, "audit", now=SILENT,
        stopped="The collector does not run",
    ),
    Incident(
        "loader", Cause.LOAD_NOT_RUN, "loader", drop=(3,),
        add=(delta(HDFS, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),)),),
    ),
    Incident(
        "loader that is late", Cause.LOAD_NOT_RUN, "loader", drop=(3,),
        add=(delta(HDFS, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),)),),
        policy=replace(POLICY, loads_every_ms=30_000),
    ),
    Incident(
        "unreadable log", Cause.FILE_UNREADABLE, "", "ls -ld '/var/log/a b'",
        unread=SourceReport((UnreadPath("logs", "/var/log/a b", "Permission denied", holds=True),)),
    ),
    Incident(
        "registry, seen on the agent's host", Cause.AGENT_HELD_UP, "registry",
        healths={"web1": {"reason": "No schema registry answers (http://127.0.0.1:8081: refused)"}},
    ),
    Incident(
        "broker, seen on the agent's host", Cause.AGENT_HELD_UP, "broker-dc1",
        healths={"web1": {
            "troubles": {"logs-0": "no answer"}, "leaders": {"logs-0": "broker-dc1:9092"}
        }},
    ),
    Incident(
        "full state, seen on the agent's host", Cause.AGENT_HELD_UP, "agent", "agent state show",
        healths={"web1": {"reason": "no space is left"}},
    ),
    Incident(
        "unreadable log, seen on its host", Cause.FILE_UNREADABLE, "", "ls -ld /var/log/a",
        healths={"web1": {"unreadable": {"logs": {"/var/log/a": "permission denied"}}}},
    ),
]  # fmt: skip


def _of_bucket(
    incident: Incident, setup: Setup, evidence: Evidence, policy: Policy
) -> list[Explanation]:
    [verdict] = [
        x
        for x in verdicts(evidence, policy, incident.now)
        if x.source == LOGS and x.bucket == START
    ]
    access = setup.access(incident.stopped)
    return explain(verdict, evidence, policy, incident.now, access, incident.healths)


def _facts(
    incident: Incident, setup: Setup, evidence: Evidence, policy: Policy = WITH_A_SILENT_HOST
) -> Facts:
    found = verdicts(evidence, policy, incident.now)
    hosts = survey(evidence, policy, incident.now)
    access = setup.access(incident.stopped)
    standing = of_evidence(evidence, found, incident.now)
    return Facts(standing, {}, evidence, policy, incident.now, hosts=hosts, access=access)


each_incident = pytest.mark.parametrize("incident", INCIDENTS, ids=lambda x: x.name)
each_setup = pytest.mark.parametrize("setup", SETUPS, ids=lambda x: x.name)


@each_setup
@each_incident
def test_the_cause_nearest_to_the_source_is_told_first(incident: Incident, setup: Setup) -> None:
    """In each incident, the first cause that is told is the true one, and its command starts or
    asks the right program, on the right host, with its own settings. Nothing that follows from it
    is told beside it."""
    evidence = incident.evidence(setup)
    facts = _facts(incident, setup, evidence, incident.policy)
    found = _of_bucket(incident, setup, evidence, incident.policy)
    first = facts.present[0] if facts.present else found[0]
    assert first.cause is incident.cause
    assert len(facts.present) <= 1
    if not incident.healths:
        said, _, command = overview.alarms(facts)[0].partition(" Next: ")
        assert first.words in said
        assert command == str(first.command)
    if incident.program in ("registry", "zookeeper"):
        default = f"systemctl start skidway-{incident.program}"
        assert first.command.line == setup.starts.get(incident.program, default)
        assert first.command.host in ("r1", "z1", "web1")  # never a loopback address
    elif incident.program:
        started = setup.started[incident.program]
        wanted = started.start() if incident.line == "start" else started.command(incident.line)
        assert first.command.line == wanted
        host = setup.hosts.get(incident.program, first.command.host)
        assert first.command.host == host
    else:
        assert first.command.line == incident.line
    assert not [x for x in found if incident.cause.explains(x.cause)]


@each_setup
def test_a_silent_host_is_not_to_be_started_if_its_cluster_is_away(setup: Setup) -> None:
    """If a cluster does not answer, no page says that the agents or counters of the cluster should
    be started. The mirrors' page says that the source does not answer, and calls nothing good."""
    incident = INCIDENTS[0]
    facts = _facts(incident, setup, incident.evidence(setup))
    [alarm] = present_alarms(facts)
    assert alarm.startswith("Cluster dc1 does not answer: 10.0.0.1:9092: Connection refused. Next:")
    agent, counter = (setup.started[x].start() for x in ("agent", "count-dc1"))
    for table in (silent_table(facts, 9), risk.table(facts)):
        said = [str(x["command"]) for x in table.records() if "web9" not in str(x)]
        assert said
        assert not [x for x in said if agent in x or counter in x]
    [row] = mirrors.mirrors_table(facts).rows
    behind = row[[x.key for x in mirrors.mirrors_table(facts).columns].index("behind")]
    assert (behind.text, behind.status) == (
        "unknown: Cluster dc1 does not answer: 10.0.0.1:9092: Connection refused", "unknown",
    )  # fmt: skip


def _code(table: Table) -> Iterator[NextCommand]:
    for row in table.records():
        if text := str(row.get("command") or ""):
            match = re.fullmatch(r"on (\S+): (.*)", text)
            yield NextCommand(match[1], match[2]) if match else NextCommand("", text)


def _printed(incident: Incident, setup: Setup) -> list[NextCommand]:
    """Returns all commands that `why`, report and pages print in an incident."""
    evidence = incident.evidence(setup)
    facts = _facts(incident, setup, evidence)
    found = _of_bucket(incident, setup, evidence, facts.policy)
    commands = [x.command for x in (*facts.present, *found)]
    commands += [x.accept for x in found if x.accept is not None]
    for table in (
        silent_table(facts, 9), risk.table(facts), mirrors.mirrors_table(facts), loads_table(facts)
    ):  # fmt: skip
        commands += _code(table)
    return commands


def _parsed(line: str, setup: Setup) -> argparse.Namespace | None:
    """Returns the arguments of a printed command, parsed as `skidway` parses them; None if the
    command runs another program, which then must exist on the site."""
    for call in (setup.call, "skidway"):
        if line.startswith(f"{call} "):
            words = shlex.split(line.removeprefix(f"{call} "))
            parser = argparse.ArgumentParser()
            (point,) = (x for x in entry_points(group=GROUP) if x.name == words[0])
            point.load()(parser.add_subparsers(dest="noun"))
            return parser.parse_args(words)
    known = {*units.names(), *(x.unit for x in setup.started.values())}
    words = shlex.split(line)
    if words[0] == "systemctl":
        named = {re.sub(r"@.*", "@", x) for x in words[2:] if not x.startswith("-")}
        bare = {re.sub(r"@.*", "@", x.removesuffix(".service")) for x in known}
        assert named <= bare | {x.rpartition(" ")[2] for x in setup.starts.values()}, line
    else:
        assert words[0] in ("ls", "timedatectl"), line
    return None


PROGRAMS = {"agent": "agent", "mirror": "broker-offline", "load": "loader"}


@each_setup
@each_incident
def test_printed_commands_are_those_of_the_site(incident: Incident, setup: Setup) -> None:
    """Each command that is printed in an incident is one that `skidway` accepts, and it names the
    settings of the program that it concerns. So it runs as it is printed: with our units, with
    other files, and if the host has two brokers."""
    commands = _printed(incident, setup)
    assert commands
    for command in commands:
        args = _parsed(command.line, setup)
        if args is None or "/my/" in command.line:
            continue
        if args.noun in PROGRAMS and command.host != "web9":  # nobody knows how web9 starts agents
            wanted = setup.config(PROGRAMS[args.noun])
        elif args.noun == "audit" and args.verb not in ("recount", "count"):
            wanted = setup.config("audit")
        else:
            continue
        assert (None if args.config is None else str(args.config)) == wanted, command


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Cause.REJECTED, Cause.HOST_SILENT),
        (Cause.DECLARED_LOSS, Cause.IN_FLIGHT),
        (Cause.REJECTED, Cause.DECLARED_LOSS),
    ],
)
def test_what_is_wrong_now_is_explained_before_what_was_wrong(old: Cause, new: Cause) -> None:
    """Of several buckets that somebody should look at, `why` explains one that is held up now
    before an older one that only waits for a decision of a person, and one that is not complete
    before one that only has a warning."""

    def bucket(at: int, cause: Cause) -> BucketVerdict:
        finding = Finding(Status.UNKNOWN, "so", cause)
        if cause is Cause.REJECTED:
            warning = (Finding(Status.COMPLETE, "so", cause),)
            return BucketVerdict(LOGS, at, 1, Status.COMPLETE, (), due=True, warnings=warning)
        return BucketVerdict(LOGS, at, 1, Status.UNKNOWN, (), due=True, findings=(finding,))

    found = [bucket(1, old), bucket(2, new), bucket(3, new)]
    assert all(map(is_bad, found))
    assert first_explained(found) == [found[1]]
