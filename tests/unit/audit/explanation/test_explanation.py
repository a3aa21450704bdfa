"""Tests explanations of buckets that are not complete. An explanation says what the cause is, where
it is (for example on which host and in which file), and which command to run next."""

from __future__ import annotations

import argparse
import ast
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from skidway.audit import judgement
from skidway.audit.evidence.hearing import WINDOW_MS, Reading
from skidway.audit.explanation.document import document, text
from skidway.audit.explanation.explanation import (
    ByteRange,
    Explanation,
    explain,
    explain_recounts,
)
from skidway.audit.explanation.next_command import Access
from skidway.audit.explanation.offsets import OffsetRange
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic import transactions
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.audit.topic.decisions import Acceptance, FindingName
from skidway.audit.topic.messages import (
    Announcement,
    Certainty,
    Delta,
    Gap,
    Heartbeat,
    Message,
    Range,
    Sender,
    Tier,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import KIND as STATUS
from skidway.audit.topic.program_status import (
    BrokerStatus,
    Kind,
    Obstacle,
    ProgramStatus,
    body_of,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.source_report import FilelessSource, SourceReport, UnreadPath
from skidway.audit.topic.transactions import KIND as TRANSACTIONS
from skidway.audit.topic.transactions import Held, Transactions
from skidway.cli.commands import GROUP
from skidway.invocation import Invocation, installed
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.fold import Fold
from support.one_bucket import (
    DUE,
    END,
    HDFS,
    LOSS,
    MIRROR,
    NOW,
    POLICY,
    SIZE,
    START,
    count,
    delta,
    good,
    roster,
    seal,
)

PAGE = (Path(__file__).parents[4] / "docs/audit.md").read_text()
SILENT = NOW + POLICY.silence_ms + 1
FRESH = [Heartbeat(x, 1, SILENT) for x in (BROKER, MIRROR, HDFS)]
ACCESS = Access("au1", "offline:9092", ("--config", "/etc/my audit.yml"))
ACCEPT = "skidway audit accept dc1.logs 1970-01-01T00:10:00Z --reason "
MISSING = FilelessSource("logs", ("/var/log/auth.log",), START)
CLOSED = SourceReport((UnreadPath("logs", "/var/log/app.log", "Permission denied", holds=True),))
OF_AGENT, OF_BROKER, OF_LOADER = (f"{installed(x).call} " for x in ("agent", "broker", "loader"))
UNITS = "systemctl start skidway-audit-count@"


@dataclass(frozen=True)
class Case:
    """A change to the messages about a complete bucket, and the explanation that must follow from
    it. add: the messages that are added. drop: the indexes of the messages that are left out (0:
    the agent's counts; 1 to 3: the counts of broker, mirror and hdfs; 4: the seal)."""

    cause: Cause
    host: str
    command: str
    add: list[Message] = field(default_factory=list)
    drop: tuple[int, ...] = ()
    tier: Tier | None = None
    policy: Policy = POLICY
    now: int = NOW
    healths: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    topic: str = "logs"
    unread: bool = False
    rebuilding: bool = False
    pruned: bool = False
    access: Access = ACCESS
    report: SourceReport | None = None

    def explanations(self) -> list[Explanation]:
        fold = Fold([x for i, x in enumerate(good()) if i not in self.drop] + self.add)
        evidence = fold.evidence()
        if self.report is not None:
            evidence.source_reports[7] = self.report
        if self.unread:
            evidence.unread = {"ab": 1}
        if self.rebuilding:
            evidence.rebuilding = 7
        if self.pruned:
            evidence.topic(LOGS).pruned.add((START, SIZE))
        [found] = [
            x
            for x in verdicts(evidence, self.policy, self.now)
            if x.source.topic == self.topic and x.bucket == START
        ]
        return explain(found, evidence, self.policy, self.now, self.access, self.healths)

    def explanation(self) -> Explanation:
        found = self.explanations()
        return next(x for x in found if x.cause is self.cause and self.tier in (None, x.tier))


def lost(certainty: Certainty) -> list[Message]:
    announced = Announcement(0, 7, 3, "web1", "/var/log/a.log", 1, 1, b"f", 4, LOGS)
    losses = (replace(LOSS, certainty=certainty),)
    return [announced, delta(AGENT, 3, losses=losses), seal(AGENT, 4, DUE, 3)]


def gap(reason: str) -> list[Message]:
    return [delta(HDFS, 1, count(3), gaps=(Gap(LOGS, 0, 4, 6, reason),))]


def rejected(lines: int) -> list[Message]:
    """Returns messages by which all tiers have counted `lines` rejected lines of a bucket in the
    topic of rejects. The verdict on this bucket is complete with a warning."""
    counted = Count(REJECTED, 7, START, SIZE, lines, 10, 1)
    ranges = (Range(REJECTED, 0, 0, lines),)
    tiers = (BROKER, MIRROR, replace(HDFS, producer="/logs/dc1.logs.rejected"))
    return [
        Delta(AGENT, 3, START, counts=(counted,)),
        *(Delta(x, 2 if x is not tiers[2] else 1, START, ranges=ranges, counts=(counted,))
          for x in tiers),
        seal(AGENT, 4, DUE, 3),
    ]  # fmt: skip


def reread() -> list[Message]:
    """Returns the messages of a second agent on the same host. This agent announced a file that the
    first agent had announced, too, and counted lines of the file in the bucket."""
    again = Sender(Tier.AGENT, "dc1", "8", "web1", 1)
    files = [
        Announcement(START, 7, 1, "web1", "/x", 1, 1, b"f", 4, LOGS),
        Announcement(START + 1, 8, 2, "web1", "/x", 1, 1, b"f", 4, LOGS),
    ]
    return [*files, Delta(again, 1, START + 1, counts=(count(agent=8),)), seal(again, 2, DUE, 1)]


def note(sender: Sender, *obstacles: Obstacle, **parts: Any) -> Note:
    """Returns a note in which a program says what it waits for."""
    status = ProgramStatus(obstacles=obstacles, **parts)
    who = sender.producer, sender.host, sender.cluster
    return Note(STATUS, *who, sender.epoch, 1, DUE, body_of(status))


def away(reason: str) -> BrokerStatus:
    """Returns what a broker says whose mirror does not reach dc1."""
    started = Invocation(verb="broker run", options=("--config", "/etc/k1.yml"))
    return BrokerStatus(
        "k1:9092", "k1", started, (Obstacle(Kind.CLUSTER, "dc1", reason),), ("dc1",)
    )


def held_at(sender: Sender, reason: str = "") -> Note:
    """Returns the note of a counter that cannot go on: it has stopped for a reason, or a
    transaction is open."""
    told = Transactions(0, Held(0, 6, START, reason))
    who = sender.producer, sender.host, sender.cluster
    return Note(TRANSACTIONS, *who, 1, 1, DUE, transactions.body_of({LOGS: told}))


SHORT = [delta(HDFS, 1, count(3))]
SECOND_EPOCH = replace(AGENT, epoch=2)
BAD = RecountResult(NOW, "l1", "/logs", LOGS, None, 1, 1, 5, 1, 0, ("twice: copy.parquet",))
NO_TIERS = replace(POLICY, retired_places=("hdfs", "mirror", "broker"))

CASES = [
    Case(Cause.TOO_YOUNG, "", "skidway audit why dc1.logs 1970-01-01T00:10:00Z", now=DUE - 1),
    Case(Cause.IN_FLIGHT, "web1", OF_AGENT + "agent state show", drop=(4,)),
    Case(
        Cause.AGENT_HELD_UP, "r1", "systemctl start skidway-registry", drop=(4,),
        healths={"web1": {"reason": "No schema registry answers (http://r1:8081: refused)."}},
    ),
    Case(
        Cause.FILE_UNREADABLE, "web1", "ls -ld '/var/log/a b'", drop=(4,),
        healths={"web1": {"unreadable": {"logs": {"/var/log/a b": "permission denied"}}}},
    ),
    Case(
        Cause.HOST_SILENT, "web1", "systemctl start skidway-agent", drop=(4,), add=FRESH,
        now=SILENT,
    ),
    Case(
        Cause.CLUSTER_SILENT, "c2", OF_BROKER + "mirror status", drop=(4,), add=FRESH[1:],
        now=SILENT,
    ),
    Case(
        Cause.CLUSTER_AWAY, "k1", "systemctl start skidway-broker", drop=(4,), now=SILENT,
        add=[*FRESH[1:], note(MIRROR, brokers=(away("10.0.0.1:9092: Connection refused"),))],
    ),
    Case(
        Cause.CLUSTER_AWAY, "k1", "skidway mirror status --config /etc/k1.yml", drop=(4,),
        add=[note(MIRROR, brokers=(away("10.0.0.1:9092: no answer within 30 s"),))],
    ),
    Case(
        Cause.ZOOKEEPER_AWAY, "z1", "systemctl start skidway-zookeeper", drop=(4,),
        add=[note(BROKER, brokers=(
            BrokerStatus("b1:9092", "b1", obstacles=(Obstacle(Kind.ZOOKEEPER, "z1:2181", ""),)),
        ))],
    ),
    Case(
        Cause.REGISTRY_AWAY, "r1", "systemctl start skidway-registry", drop=(4,),
        add=[note(AGENT, Obstacle(Kind.REGISTRY, "http://r1:8081", "refused"))],
    ),
    Case(
        Cause.AGENT_HELD_UP, "web1", OF_AGENT + "agent state show", drop=(4,),
        add=[note(AGENT, Obstacle(Kind.OTHER, "disk", "no space is left"))],
    ),
    Case(
        Cause.COLLECTOR_STOPPED, "", "systemctl start skidway-audit", drop=(4,), now=SILENT,
        access=replace(ACCESS, stopped="The collector does not run"),
    ),
    Case(
        Cause.HOST_NEVER_HEARD, "web9", "systemctl start skidway-agent",
        policy=replace(POLICY, roster=roster("web1", "web9")),
    ),
    Case(Cause.DECLARED_LOSS, "web1", ACCEPT, add=lost(Certainty.LOST)),
    Case(Cause.UNCERTAIN, "web1", ACCEPT, add=lost(Certainty.UNCERTAIN)),
    Case(
        Cause.SOURCE_WITHOUT_FILES, "web1", OF_AGENT + "agent validate", drop=(4,),
        add=[seal(AGENT, 2, -START, 1)], report=SourceReport(fileless=(MISSING,)),
    ),
    Case(
        Cause.FILE_UNREADABLE, "web1", "ls -ld /var/log/app.log", drop=(4,), report=CLOSED,
    ),
    Case(
        Cause.FILE_UNREADABLE, "web1", "ls -ld /var/log/app.log", drop=(4,), report=CLOSED,
        topic="logs.rejected", add=rejected(2)[:-1],
    ),
    Case(Cause.READ_TWICE, "web1", ACCEPT, add=reread()),
    Case(
        Cause.STATE_RESTORED, "web1", ACCEPT, drop=(4,),
        add=[seal(AGENT, 2, START, 1), seal(SECOND_EPOCH, 1, DUE + 1, 0)],
    ),
    Case(
        Cause.STATE_COPIED, "web1", OF_AGENT + "agent state show", add=[delta(AGENT, 1, count(4))]
    ),
    Case(Cause.MESSAGES_MISSING, "c1", ACCEPT, add=[delta(BROKER, 3)]),
    Case(Cause.MESSAGES_EXPIRED, "web1", ACCEPT, drop=(0,), add=[seal(AGENT, 3, DUE, 2)]),
    Case(Cause.NEWER_VERSION, "", "skidway --version", unread=True),
    Case(Cause.REBUILDING, "", "skidway audit report --topic dc1.logs", rebuilding=True),
    Case(Cause.PRUNED, "", "skidway audit report --history --topic dc1.logs", pruned=True),
    Case(Cause.TIER_ABSENT, "", f"{UNITS}dc1", drop=(1,)),
    Case(
        Cause.COUNTER_STOPPED, "c1", f"{UNITS}dc1", drop=(1, 4), now=SILENT,
        add=[delta(BROKER, 1, count(3)), seal(AGENT, 2, SILENT, 1), *FRESH[1:]],
    ),
    Case(
        Cause.COUNTER_BEHIND, "c1", "skidway audit report --topic dc1.logs", drop=(1,),
        add=[delta(BROKER, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),))],
    ),
    Case(
        Cause.TRANSACTION_OPEN, "c1", "skidway audit report --topic dc1.logs", drop=(1,),
        add=[delta(BROKER, 1, count(3)), held_at(BROKER)],
    ),
    Case(
        Cause.PARTITION_STOPPED, "c1", "systemctl restart skidway-audit-count@dc1", drop=(1,),
        add=[delta(BROKER, 1, count(3)), held_at(BROKER, "damaged"), held_at(MIRROR)],
    ),
    Case(
        Cause.MIRROR_BEHIND, "c2", OF_BROKER + "mirror status", drop=(2,),
        add=[
            delta(MIRROR, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),)), held_at(BROKER, "damaged"),
        ],
    ),
    Case(
        Cause.COUNTER_RESTORED, "c1", ACCEPT, drop=(1,),
        add=[
            delta(BROKER, 1, count(), ranges=(Range(LOGS, 0, 0, 9), Range(LOGS, 1, 0, 9))),
            delta(replace(BROKER, epoch=2), 1),
        ],
    ),
    Case(
        Cause.COUNTERS_COLLIDE, "c1", ACCEPT,
        add=[delta(replace(BROKER, producer="other"), 1)],
    ),
    Case(Cause.GAP, "l1", ACCEPT, drop=(3,), add=gap("these offsets are not in the log")),
    Case(Cause.RETENTION, "l1", ACCEPT, drop=(3,), add=gap("these offsets expired")),
    Case(
        Cause.MIRROR_BEHIND, "c2", OF_BROKER + "mirror status", drop=(2,),
        add=[delta(MIRROR, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),))],
    ),
    Case(
        Cause.LOAD_NOT_RUN, "l1", "systemctl start skidway-loader", drop=(3,),
        add=[delta(HDFS, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),))],
    ),
    Case(Cause.RECORDS_MISSING, "l1", OF_LOADER + "audit recount", drop=(3,), add=SHORT),
    Case(
        Cause.RECORDS_MISSING, "c2", OF_BROKER + "mirror status", drop=(2,),
        add=[delta(MIRROR, 1, count(3))],
    ),
    Case(
        Cause.RECORDS_DOUBLED, "l1", OF_LOADER + "audit recount", drop=(3,),
        add=[delta(HDFS, 1, count(6))],
    ),
    Case(
        Cause.RECORDS_DIFFER, "l1", OF_LOADER + "audit recount", drop=(3,),
        add=[delta(HDFS, 1, count(5, checksum=98))],
    ),
    Case(Cause.OUTPUT_CHANGED, "l1", OF_LOADER + "audit recount", add=[BAD]),
    Case(Cause.OUTPUT_CHANGED, "l1", OF_LOADER + "audit recount", drop=(3,), add=[*SHORT, BAD]),
    Case(Cause.RETIRED, "web1", ACCEPT, drop=(1, 2, 3), policy=NO_TIERS, add=[
        delta(x, 1, count(3)) for x in (BROKER, MIRROR, HDFS)
    ]),
    Case(
        Cause.REJECTED, "web1", "skidway rejected show dc1.logs --bootstrap-server offline:9092",
        add=rejected(2), topic="logs.rejected",
    ),
    Case(
        Cause.WRONG_PATTERN, "web1", OF_AGENT + "agent validate",
        add=rejected(20), topic="logs.rejected",
    ),
    Case(
        Cause.FILTERED, "", "skidway audit report --topic dc1.logs", drop=(0,),
        add=[delta(AGENT, 1, replace(count(), filtered=(Filtered("debug", 9, 90),)))],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cause.value}, {case.command[:24]}")
def test_each_cause_has_a_host_and_a_command(case: Case) -> None:
    """For each cause in CASES, the explanation names the cause and the command to run next. If the
    case has a host, the explanation also names this host, as the host that has the problem, or as
    the host on which to run the command. If the case has no host, the explanation names none."""
    found = case.explanation()
    hosts = {found.host, found.command.host}
    assert case.host in hosts if case.host else hosts == {""}
    assert found.command.line.startswith(case.command), found
    assert found.meaning
    said = document(found)
    assert (said["cause"], said["command"]["line"]) == (case.cause.value, found.command.line)
    assert any(str(found.command) in line for line in text(case.explanations()))


def parsed(line: str) -> argparse.Namespace | None:
    """Returns the arguments of a printed command, parsed as `skidway` parses them, or None if the
    command runs another program."""
    words = shlex.split(line)
    if words[0] == "runuser":
        words = words[words.index("--") + 1 :]
    if Path(words[0]).name != "skidway" or words[1].startswith("-"):
        return None
    parser = argparse.ArgumentParser()
    (point,) = (x for x in entry_points(group=GROUP) if x.name == words[1])
    point.load()(parser.add_subparsers(dest="noun"))
    return parser.parse_args(words[1:])


@pytest.mark.parametrize("where", [("--store", "/my store"), ("--bootstrap-server", "b1:9092")])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cause.value}, {case.command[:24]}")
def test_commands_run_as_they_are_printed(case: Case, where: tuple[str, str]) -> None:
    """`skidway` accepts each of its commands that an explanation prints. A printed command of
    `skidway audit` may be meant for the host on which the explanation was printed. Then it has the
    same settings file as the command that printed it, and reads the same store or the audit topics
    of the same brokers."""
    access = replace(case.access, options=(*ACCESS.options, *where))
    found = replace(case, access=access).explanation()
    store, brokers = (Path(where[1]), None) if where[0] == "--store" else (None, where[1])
    for command in filter(None, (found.command, found.accept)):
        args = parsed(command.line)
        if args is not None and args.noun == "audit" and not command.host:
            assert args.config == Path("/etc/my audit.yml"), command
            assert (args.store, args.bootstrap_server) == (store, brokers), command


def test_commands_have_addresses_that_their_hosts_reach() -> None:
    """If a command is for another host, the addresses in it are never loopback addresses, because
    such an address would mean the other host itself. If no address is known, the command has
    none."""
    addresses = "127.0.0.1:9093,localhost:9094,[::1]:9095,b1:9092"
    near = replace(ACCESS, brokers=addresses)
    recount = next(x for x in CASES if x.cause is Cause.OUTPUT_CHANGED)
    args = parsed(replace(recount, access=near).explanation().command.line)
    assert args is not None
    assert args.bootstrap_server == "au1:9093,au1:9094,au1:9095,b1:9092"
    args = parsed(replace(recount, access=replace(near, here="l1")).explanation().command.line)
    assert args is not None
    assert args.bootstrap_server == addresses
    args = parsed(replace(recount, access=Access()).explanation().command.line)
    assert args is not None
    assert args.bootstrap_server is None


def test_the_counter_of_an_absent_mirror_has_the_name_of_a_cluster() -> None:
    """If no counter of a mirror is known, the printed command that starts such a counter names the
    clusters from which loaders read, because one of them has the mirror. If no such cluster is
    known, the command shows which counters there are. The command never has a placeholder for a
    name."""
    absent = Case(Cause.TIER_ABSENT, "", "", drop=(2,))
    assert absent.explanation().command.line == f"{UNITS}offline"
    other = replace(HDFS, cluster="second", producer="/second/dc1.logs", host="l2")
    several = replace(absent, add=[Heartbeat(other, 1, DUE)])
    assert several.explanation().command.line == f"{UNITS}offline skidway-audit-count@second"
    alone = replace(absent, drop=(2, 3), policy=replace(POLICY, tiers=tuple(Tier)[:3]))
    assert alone.explanation().command.line == "systemctl list-units --all 'skidway-audit-count@*'"


@pytest.mark.parametrize("behind", [POLICY.clock_difference_ms + 1, 2 * POLICY.silence_ms])
def test_the_clock_of_a_host_is_a_cause_of_its_own(behind: int) -> None:
    """If a bucket is not complete because a host's clock is behind, the explanation gives the clock
    as a cause, and names the command that sets the clock. It does not say that the host is silent.
    It does not matter whether the clock is behind by more than the time after which a host counts
    as silent."""
    fold = Fold([*good()[:4], seal(AGENT, 2, START, 1)])
    evidence = fold.evidence()
    now = DUE + POLICY.silence_ms + behind
    evidence.taken_ms = now
    for sender in (BROKER, MIRROR, HDFS):
        name = sender.tier, sender.producer
        evidence.readings[name] = Reading(now // WINDOW_MS, 0, 0, 0)
    evidence.readings[Tier.AGENT, "7"] = Reading(now // WINDOW_MS, behind, behind, behind)
    evidence.heard[Tier.AGENT, "7"] = now - behind
    [verdict] = [x for x in verdicts(evidence, POLICY, now) if x.bucket == START]
    explained = {x.cause: x for x in explain(verdict, evidence, POLICY, now)}
    assert Cause.HOST_SILENT not in explained
    found = explained[Cause.CLOCK]
    assert (found.host, str(found.command)) == ("web1", "on web1: timedatectl set-ntp true")


def test_what_cannot_be_read_is_named_from_afar() -> None:
    """An agent names in a note which path it cannot read, and which source has no file. So the
    explanation names path or pattern on every host, whatever the agent's host is called. If the
    agent is silent, its note says nothing about the present."""
    found = [each.explanation() for each in CASES if each.report is not None]
    assert [x.path for x in found] == ["/var/log/auth.log", *["/var/log/app.log"] * 2]
    assert found[0].words.endswith("source /var/log/auth.log has matched no file since "
                                   "1970-01-01T00:10:00Z")  # fmt: skip
    assert "the agent cannot read /var/log/app.log: Permission denied" in found[1].words
    case = replace(next(x for x in CASES if x.report is CLOSED), now=SILENT, add=FRESH)
    assert {x.cause for x in case.explanations()} == {Cause.HOST_SILENT}


def test_every_cause_is_explained() -> None:
    """Each cause is explained in a case of this module. The only exceptions are causes of remarks
    (findings that do not keep a bucket from being complete), and those that need signatures: the
    one of a program that has no keys to verify messages, and that of refused messages (see
    test_refused_report). docs/audit.md has a row for each cause, in their order."""
    remarks = {Cause.NO_ORIGIN, Cause.SAME_HOST_NAME}
    signed = {Cause.NOT_VERIFIED, Cause.MESSAGES_REFUSED}
    assert {x.cause for x in CASES} | {Cause.CLOCK} | remarks | signed == set(Cause)
    for cause in Cause:
        assert f"| `{cause.value}` |" in PAGE, cause
    rows = [PAGE.index(f"| `{cause.value}` |") for cause in Cause]
    assert rows == sorted(rows)


def test_every_finding_names_a_cause() -> None:
    """A finding is a reason in a verdict. Wherever the code that judges buckets creates a finding,
    it gives the finding a cause of its own, or the cause of another finding."""
    folder = Path(judgement.__file__).parent
    made = [
        (path.name, ast.unparse(call.args[2]))
        for path in folder.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Finding"
    ]
    assert len(made) > 25
    for name, cause in made:
        passed_on = cause in ("cause", "finding.cause", "_cause(expected, found)")
        assert passed_on or cause.removeprefix("Cause.") in Cause.__members__, (name, cause)


def test_where_a_loss_lies() -> None:
    """The explanation of a loss names the host, the path, the file id and the range of bytes."""
    found = Case(Cause.DECLARED_LOSS, "", "", add=lost(Certainty.LOST)).explanation()
    assert (found.path, found.file, found.tier) == ("/var/log/a.log", 3, Tier.AGENT)
    assert found.ranges == (ByteRange(100, 200),)
    assert "host web1, /var/log/a.log, file 3, bytes 100 to 200" in "\n".join(text([found]))


def test_recounts_are_explained_without_a_bucket() -> None:
    """If a recount of a topic's output found a problem, the explanations of each bucket of the
    topic name this problem, in addition to the bucket's own causes. `explain_recounts` returns only
    the explanations of recounts."""
    others = [replace(BAD, output=output) for output in ("/b", "/a")]
    agrees = replace(BAD, output="/c", faults=0, reasons=())
    case = Case(Cause.RECORDS_MISSING, "l1", "", [BAD, *others, agrees], drop=(3,))
    evidence = Fold([x for i, x in enumerate(good()) if i != 3] + case.add).evidence()
    found = explain_recounts(LOGS, evidence, POLICY, NOW, ACCESS)
    of_bucket = case.explanations()
    assert len(of_bucket) > len(found)
    assert found == [x for x in of_bucket if x.cause is Cause.OUTPUT_CHANGED]
    assert sorted(x.place for x in found) == ["/a/dc1.logs", "/b/dc1.logs", "/logs/dc1.logs"]
    assert all(x.accept is None and "recount" in x.command.line for x in found)


BEHIND = [
    (Cause.LOAD_NOT_RUN, HDFS, Tier.HDFS),
    (Cause.MIRROR_BEHIND, MIRROR, Tier.MIRROR),
    (Cause.COUNTER_BEHIND, BROKER, Tier.BROKER),
]


@pytest.mark.parametrize(("cause", "sender", "tier"), BEHIND)
def test_where_records_lie_that_no_load_has_reached(
    cause: Cause, sender: Sender, tier: Tier
) -> None:
    """If the loader or a counter is behind, records are not counted in its tier yet. The
    explanation names the partitions and offsets of these records: from the end of what this tier
    has counted to the last offset that any tier has counted."""
    short: list[Message] = [delta(sender, 1, count(3), ranges=(Range(LOGS, 0, 0, 6),))]
    dropped = (list(Tier).index(tier),)
    found = Case(cause, "", "", add=short, drop=dropped).explanation()
    assert (found.tier, found.offsets) == (tier, (OffsetRange(0, 6, 10),))


@pytest.mark.parametrize(("cause", "sender", "tier"), BEHIND)
def test_a_new_epoch_counts_from_its_own_end(cause: Cause, sender: Sender, tier: Tier) -> None:
    """If a loader or a counter begins a new epoch, it counts again from the beginning. A bucket
    that it has not reached again yet is not complete. Its explanation says that this loader or
    counter is behind, although it had counted the bucket in its earlier epoch."""
    ranges = (Range(LOGS, 0, 0, 6),)
    again: list[Message] = [delta(replace(sender, epoch=2), 1, count(3), ranges=ranges)]
    found = Case(cause, "", "", add=again).explanation()
    assert (found.tier, found.offsets) == (tier, (OffsetRange(0, 6, 10),))


def test_what_is_accepted_is_not_explained() -> None:
    """The explanation of a bucket leaves out a finding (a reason in the verdict) that a person has
    accepted."""
    found = Case(Cause.DECLARED_LOSS, "", "", add=lost(Certainty.LOST))
    assert found.explanations()
    names = (FindingName(7, "LOST 3 100-200"),)
    accepted = Acceptance(1, NOW, "eve", "known", LOGS, START, SIZE, names)
    assert not replace(found, add=[*found.add, accepted]).explanations()


def test_counts_that_an_agent_has_not_sent_are_not_doubled_records() -> None:
    """A silent agent has not sent its newest counts, so other tiers have counted more records of a
    bucket than the agent. These additional records are no sign of doubled records. So the
    explanation of the bucket names only the silent host as the cause."""
    messages = [seal(AGENT, 1, START, 0), *good()[1:4], *FRESH]
    evidence = Fold(messages).evidence()
    [verdict] = [x for x in verdicts(evidence, POLICY, SILENT) if x.bucket == START]
    causes = {x.cause for x in explain(verdict, evidence, POLICY, SILENT)}
    assert causes == {Cause.HOST_SILENT}


def test_a_killed_agent_is_named_as_soon_as_it_is_silent() -> None:
    """If no message of an agent has come for longer than `silence.ms` (three minutes by default),
    the explanation of a bucket names the silent host as the cause, although the bucket is still
    open."""
    assert Policy().silence_ms == 180_000
    heard = [Heartbeat(x, 1, DUE + 60_000) for x in (BROKER, MIRROR, HDFS)]
    messages = [*good()[:4], seal(AGENT, 2, END, 1), *heard]
    for now, cause in ((END + POLICY.silence_ms, Cause.IN_FLIGHT), (DUE + 95_000, None)):
        evidence = Fold(messages).evidence()
        [verdict] = [x for x in verdicts(evidence, POLICY, now) if x.bucket == START]
        [found] = explain(verdict, evidence, POLICY, now)
        assert (found.status, found.cause) == (Status.OPEN, cause or Cause.HOST_SILENT)


def test_an_open_bucket_is_not_accepted() -> None:
    """While a bucket is too young to be judged, its explanation does not propose to accept it,
    because `audit accept` would refuse the bucket."""
    early = Case(Cause.DECLARED_LOSS, "", "", add=lost(Certainty.LOST), now=DUE - 1)
    assert early.explanation().accept is None
    assert replace(early, now=NOW).explanation().accept is not None


@pytest.mark.parametrize("missing", [{"unread": True}, {"rebuilding": True}])
def test_nothing_is_accepted_while_messages_are_unread(missing: dict[str, bool]) -> None:
    """While the audit cannot read some messages, or has not read them yet, `audit accept` refuses
    every bucket. So no explanation proposes to accept one."""
    case = replace(Case(Cause.DECLARED_LOSS, "", "", add=lost(Certainty.LOST)), **missing)
    assert {x.cause for x in case.explanations()} > {Cause.DECLARED_LOSS}
    assert not any("audit accept" in line for line in text(case.explanations()))
