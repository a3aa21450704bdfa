"""With real programs: nobody says for another what was counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from skidway.audit.signing import signature
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import MasterKey, master_keys_in
from skidway.audit.topic.decisions import Acceptance, FindingName, Retirement
from skidway.audit.topic.messages import (
    TOPIC,
    Delta,
    Heartbeat,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    decode,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.topic import bounds, read
from skidway.clock import SystemClock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import OneHeader
from support.processes import call_skidway, eventually
from support.promises import promise
from support.small_fleet import Fleet, small_fleet

YEAR_MS = 365 * 86_400_000
AGENT, COUNTER, PERSON = "agent/main/app1", "counter/broker/main", "person/ada"


class SignedFleet:
    """A fleet that requires signatures, with its keys in files."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, folder = fleet, fleet.folder
        self.masters = folder / "audit.master.keys"
        self.agent_key, self.counter_key = folder / "agent.key", folder / "counter.key"
        fleet.settings |= {
            "audit.signatures": "require",
            "audit.master.keys.location": str(self.masters),
        }
        fleet.config.write_text(yaml.safe_dump(fleet.settings))
        fleet.agent.settings["audit.key.location"] = str(self.agent_key)
        fleet.counter_settings["audit.key.location"] = str(self.counter_key)
        self.keys("rotate")
        self.place()

    def keys(self, *arguments: str) -> str:
        """Runs `skidway audit keys`, and returns what it prints."""
        done = call_skidway("audit", "keys", *arguments, "--config", str(self.fleet.config))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def place(self) -> None:
        """Derives the keys of agent and counter, and puts them where these read them."""
        self.keys("derive", AGENT, "--out", str(self.agent_key))
        self.keys("derive", COUNTER, "--out", str(self.counter_key))

    def sign(
        self, message: Message | bytes, identity: str, master: MasterKey | None = None
    ) -> None:
        """Publishes a message with a signature of this identity. master: the key from which its
        key is derived; None for that of the audit."""
        value = message if isinstance(message, bytes) else encode(message)
        master = master or master_keys_in(self.masters.read_text())[-1]
        header = signature.sign(master.sender_key(Identity.parse(identity)), value)
        self.fleet.publish(value, OneHeader(signature.HEADER, pa.array([header], pa.binary())))

    def refused(self) -> int:
        return int(self.fleet.health()[1].get("messages_refused", 0))

    def said(self) -> list[Message]:
        """Returns all messages of the audit topic that can be decoded."""
        with Client(self.fleet.address) as client:
            ranges = bounds(client, [TOPIC])
            return [
                decode(x.value)
                for x in read(client, Fetcher(client), ranges, SystemClock())
                if not x.value.startswith(b"\xc3\x01\0")
            ]

    def report(self, *more: str) -> tuple[int, dict[str, Any]]:
        status, said = self.fleet.ask("report", "--json", "--config", str(self.fleet.config), *more)
        return status, dict(json.loads(said[said.index("{") :]))


@pytest.fixture
def signed(zookeeper: str, tmp_path: Path) -> Iterator[SignedFleet]:
    with small_fleet(zookeeper, tmp_path) as fleet:
        yield SignedFleet(fleet)


@promise("6 signed")
@pytest.mark.quick
def test_what_is_forged_changes_no_verdict(signed: SignedFleet) -> None:
    """Ten lines are missing at the broker's counter, and their agent is killed. Deltas of the
    counter in a new epoch, a seal and a heartbeat of the agent, an acceptance and a retirement, and
    twelve bytes of no known version, without a signature, with another key, and with the key of
    another host, change no verdict. They are counted as refused. So are a heartbeat with a number
    that no agent has, and a record that nobody can decode; programs that start read over them."""
    fleet = signed.fleet
    fleet.start_counter()
    fleet.start_collector()
    fleet.agent.start()
    fleet.write(100)
    eventually(lambda: fleet.counted() == 100, what="the counter has counted them")
    assert fleet.counter.stop() == 0
    fleet.write(10)
    eventually(lambda: "broker main is short by" in fleet.reasons(), what="it is missed")
    fleet.agent.program.kill()
    before = _verdicts(signed)
    forged = [*_forged(signed), b"\xc3\x01" + bytes(8)]
    stranger = MasterKey(1, b"somebody's own thirty-two bytes.")
    for message in forged:
        fleet.publish(message if isinstance(message, bytes) else encode(message))
        for identity in (AGENT, COUNTER, PERSON):
            signed.sign(message, identity, stranger)
        if not isinstance(message, bytes):
            signed.sign(message, "agent/main/evil")
            signed.sign(message, "counter/broker/other")
    nobody = Sender(Tier.AGENT, "main", "9" * 30, "evil", 1)
    signed.sign(Heartbeat(nobody, 1, 0), "agent/main/evil")
    fleet.publish(b"nothing", garbled=True)
    expected = 6 * len(forged)
    eventually(lambda: signed.refused() == expected, what="all are refused")
    assert _verdicts(signed) == before
    assert fleet.metric('skidway_audit_refused_messages{reason="unsigned"}') == len(forged)
    assert fleet.metric("skidway_audit_unread_messages") == 0
    assert "ceo" not in fleet.ask("report", "--decisions", "--config", str(fleet.config))[1]
    fleet.agent.start()
    fleet.start_counter()
    eventually(lambda: _verdicts(signed) != before, what="the counter has counted the ten lines")


def test_a_command_without_the_master_keys_never_says_complete(signed: SignedFleet) -> None:
    """Commands that read the audit topics themselves verify them if they have the master keys.
    Without these they say that nothing is verified, and neither say complete nor end with status 0,
    also if they have no settings."""
    fleet = signed.fleet
    fleet.start_counter()
    fleet.agent.start()
    fleet.write(100)
    reads = ("--bootstrap-server", fleet.address)
    assert fleet.wait(*reads, timeout_s=60)[0] == 0
    assert fleet.agent.program.stop() == 0
    keyless = fleet.folder / "keyless.yml"
    keyless.write_text(
        yaml.safe_dump({**fleet.settings, "audit.master.keys.location": str(fleet.folder / "no")})
    )
    bare = fleet.folder / "bare"
    bare.mkdir()
    report = ("report", *reads, "--config", str(fleet.config))
    eventually(lambda: "complete." in fleet.ask(*report)[1], every_s=0.5, what="it is complete")
    ours = fleet.ask(*report)
    assert ours[0] == 0, ours[1]
    forged = [x for x in _forged(signed) if isinstance(x, Seal | Heartbeat)]
    for message in forged:
        fleet.publish(encode(message))
    status, again = fleet.ask(*report)
    assert (status, again.startswith(ours[1])) == (0, True), again
    for options in (["--config", str(keyless)], ["--tiers", "agent,broker", "--lateness-ms", "0"]):
        for verb in ("report", "why"):
            status, said = fleet.ask(verb, *reads, *options)
            assert status == 1, said
            assert "nobody has verified" in said, said
        status, said = fleet.ask(
            "wait", *reads, *options, "--host", "app1", "--since", "0s", "--timeout-s", "2"
        )  # fmt: skip
        assert status != 0, said


@promise("6 signed")
def test_a_key_that_cannot_be_used_is_said_on_both_sides(signed: SignedFleet) -> None:
    """If the key of an agent is missing, another host's, or damaged, its /health says so in one
    sentence, its lines are delivered or kept, and the audit names what it refuses. When the key is
    mended, the agent goes on without a restart, and everything is complete."""
    fleet = signed.fleet
    good = signed.agent_key.read_text()
    other = signed.keys("derive", "agent/main/app2")
    fleet.start_counter()
    fleet.start_collector()
    signed.agent_key.unlink()
    fleet.agent.start(ready=False)
    fleet.write(10)
    eventually(
        lambda: "cannot be read: No such file" in str(fleet.agent.health()),
        what="the agent says that it has no key",
    )
    eventually(lambda: signed.refused() > 0, what="the audit names it")
    signed.agent_key.write_text(good)
    eventually(fleet.agent.healthy, what="it goes on")
    assert fleet.wait(timeout_s=60)[0] == 0
    for bad, words in (
        (other, "is that of agent/main/app2, which may not sign a message of host app1"),
        (good[:-5], "has a damaged key"),
    ):
        signed.agent_key.write_text(bad)
        eventually(
            lambda words=words: words in str(fleet.agent.health()),
            what="the agent says what is wrong with its key",
        )
        fleet.write(10)
        signed.agent_key.write_text(good)
        eventually(fleet.agent.healthy, what="it is mended")
        assert fleet.wait(timeout_s=60)[0] == 0
    eventually(lambda: fleet.counted() == 30, what="all are counted")
    eventually(lambda: fleet.verdicts() == {"complete"}, what="all is complete")


@promise("6 signed")
def test_a_kill_at_each_step_of_a_rotation_loses_nothing(signed: SignedFleet) -> None:
    """While the master key is replaced, agent, counter and collector are killed at each step. No
    message is refused, and all buckets are complete. After the old key was dropped, what somebody
    signs with it is refused."""
    fleet = signed.fleet
    old = master_keys_in(signed.masters.read_text())[-1]
    steps = (
        lambda: None,
        lambda: signed.keys("rotate"),
        lambda: signed.keys("derive", AGENT, "--out", str(signed.agent_key)),
        signed.place,
    )
    for step in steps:
        step()
        fleet.start_counter()
        fleet.start_collector()
        fleet.agent.start()
        fleet.write(25)
        assert fleet.wait(timeout_s=60)[0] == 0
        for program in (fleet.agent.program, fleet.counter, fleet.collector):
            program.kill()
    fleet.start_counter()
    fleet.start_collector()
    fleet.agent.start()
    fleet.write(5)
    assert fleet.wait(timeout_s=60)[0] == 0
    assert signed.refused() == 0
    rows = [line.split() for line in signed.keys("list").splitlines()[1:]]
    assert rows == [["1", "0"], ["2", "2"]]
    signed.keys("drop", "1")
    eventually(lambda: '"numbers": [2]' in fleet.collector.output(), what="the old key is dropped")
    signed.sign(Heartbeat(_sender(signed, Tier.AGENT), 10**6, 5), AGENT, old)
    eventually(lambda: signed.refused() == 1, what="the old key is worth nothing")
    signed.place()
    fleet.write(5)
    assert fleet.wait(timeout_s=60)[0] == 0
    eventually(lambda: fleet.counted() == 110, what="all are counted")
    eventually(lambda: fleet.verdicts() == {"complete"}, what="all is complete")


def _verdicts(signed: SignedFleet) -> list[tuple[str, str, str]]:
    _, document = signed.report()
    return [(x["topic"], x["bucket"], x["verdict"]) for x in document["buckets"]]


def _sender(signed: SignedFleet, tier: Tier) -> Sender:
    said = (x.sender for x in signed.said() if isinstance(x, Delta))
    return next(x for x in said if x.tier is tier)


def _forged(signed: SignedFleet) -> list[Message]:
    """Messages that would make what is missing complete, if anybody believed them."""
    now_ms = SystemClock().time_ms()
    of_agent = [x for x in signed.said() if isinstance(x, Delta) and x.sender.tier is Tier.AGENT]
    agent, counter = of_agent[-1].sender, _sender(signed, Tier.BROKER)
    again = replace(counter, epoch=counter.epoch + 1)
    counts = [count for delta in of_agent for count in delta.counts]
    source = counts[0].source
    until = SealedTopic(source, now_ms + YEAR_MS, now_ms + YEAR_MS)
    return [
        Delta(again, 1, now_ms, (Range(source, 0, 0, 10**6),), tuple(counts)),
        Heartbeat(again, 1, now_ms),
        Seal(agent, of_agent[-1].number + 100, now_ms, (until,)),
        Seal(replace(agent, epoch=9), 1, now_ms, (until,)),
        Heartbeat(agent, of_agent[-1].number, now_ms + 5),
        Acceptance(
            1, now_ms, "ceo", "because", source, counts[-1].bucket, counts[-1].bucket_ms,
            (FindingName(int(agent.producer), "missing"),),
        ),
        Retirement(2, now_ms, "ceo", "because", "broker main"),
    ]  # fmt: skip
