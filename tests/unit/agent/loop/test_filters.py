"""Tests the rules of the setting `shape` in the running agent. A record that a rule leaves out is
never sent to a broker, and is counted once, even if the agent is killed."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.batches import program_versions
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.shaping.rejected_text import WITHHELD
from skidway.agent.state.database import StateDatabase
from skidway.audit.topic.messages import Seal
from skidway.kafka.types import TopicPartition
from support.agent_press import rejected_rows
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"
FIRST = TopicPartition("logs", 0)
DEBUG = 'drop line starts with "d" as debug'


def made(shape: str | None, **others: Any) -> World:
    return World(settings(raw(shape=shape, **others)))


def filtered(world: World) -> list[tuple[str, int, int]]:
    """Returns the name of each rule, and how many records and bytes the rule left out according to
    the published deltas (messages with counts)."""
    found: dict[str, tuple[int, int]] = {}
    for delta in world.deltas():
        for count in delta.counts:
            for each in count.filtered:
                records, size = found.get(each.rule, (0, 0))
                found[each.rule] = records + each.records, size + each.bytes
    return [(rule, *sums) for rule, sums in sorted(found.items())]


@promise("2 filtered")
def test_what_a_rule_leaves_out_is_settled_without_a_broker() -> None:
    """If rules leave out all records of a file, the agent sends none of them, and `skidway agent
    state show` lists their bytes as filtered. The agent sends its seal (which says that all earlier
    lines are counted) without waiting for a broker to acknowledge these records."""
    world = made(DEBUG)
    world.files.append(A, b"d1\nd2\n")
    world.start()
    world.settle()
    assert world.values() == []
    ledger = world.only()
    assert (ledger["filtered"], ledger["acknowledged"], ledger["pending"]) == (6, 0, 0)
    assert filtered(world) == [("debug", 2, 6)]
    assert sum(count for _, count, _ in world.counted()) == 0
    assert StateDatabase(world.connection).intents() == []
    assert max(x.sealed_until for seal in world.of(Seal) for x in seal.topics) > 0


@promise("2 filtered")
def test_rows_rejects_and_filtered_add_up() -> None:
    """Each byte of a file is either acknowledged, rejected or filtered, and is counted once."""
    parser = ParserSettings(type="regex", pattern="(?P<line>[^x].*)")
    world = made(DEBUG, parser=parser)
    world.files.append(A, b"a1\nd2\nx3\nb4\nd5\n")
    world.start()
    world.settle()
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["rejected"], ledger["filtered"]) == (6, 3, 6)
    assert sorted(world.counted()) == [("logs", 2, 6), ("logs.rejected", 1, 3)]
    assert filtered(world) == [("debug", 2, 6)]


@promise("2 filtered")
def test_a_kill_neither_doubles_nor_loses_what_was_left_out() -> None:
    """The count of left-out records becomes durable with the checkpoint. A later delta (message
    with counts) contains this count. The count is right even if the agent is killed before or after
    it sends the delta."""
    world = made(DEBUG)
    world.settings = settings(
        raw(shape=DEBUG), audit_interval_ms=3_600_000, seal_interval_ms=3_600_000
    )
    world.files.append(A, b"d1\n")
    world.start()
    world.settle()
    assert filtered(world) == [("debug", 1, 3)]
    world.files.append(A, b"a2\nd3\n")
    world.settle()
    ledger = world.only()
    assert (ledger["filtered"], ledger["acknowledged"], ledger["pending"]) == (6, 3, 0)
    (sums,) = (sums for _, sums in StateDatabase(world.connection).sums())
    assert (sums.count, filtered(world)) == (1, [("debug", 1, 3)])
    world.kill()
    world.settings = settings(raw(shape=DEBUG))
    world.start()
    world.settle()
    world.kill()
    world.start()
    world.settle()
    assert filtered(world) == [("debug", 2, 6)]
    assert world.only()["filtered"] == 6
    assert world.values() == ["a2"]


@promise("2 new settings")
def test_new_rules_begin_behind_what_was_promised() -> None:
    """If the agent stored an intent (a promise to send certain bytes) for lines before the rules of
    `shape` changed, it uses the old rules when it sends these lines again after a kill. It sends
    the lines even if the new rules would leave them out."""
    world = made(None)
    world.kill_in_flight(b"d1\nd2\n")
    world.settings = settings(raw(shape=DEBUG))
    world.files.append(A, b"d3\na4\n")
    world.start()
    world.settle()
    assert world.values() == ["d1", "d2", "a4"]
    assert filtered(world) == [("debug", 1, 3)]


@promise("2 filtered")
def test_what_was_left_out_is_not_missed_when_it_is_read_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an upgrade, the agent searches the brokers for the records of its intents (stored
    promises to send bytes). Records that the rules leave out count as filtered. The agent neither
    sends them nor declares them lost."""
    world = made(DEBUG)
    world.kill_in_flight(b"a1\nd2\na3\nd4\n", b"a5\nd6\n", arrives=FIRST)
    monkeypatch.setattr(program_versions, "program_version", lambda: "another")
    world.start()
    world.settle()
    assert world.values() == ["a1", "a3", "a5"]
    assert world.losses() == []
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["filtered"], ledger["pending"]) == (9, 9, 0)
    assert filtered(world) == [("debug", 3, 9)]


@promise("2 another program")
def test_another_key_is_another_program(tmp_path: Path) -> None:
    """The rule `hash` replaces texts by hashes that depend on a secret key. If the key changes, the
    agent searches the brokers for the records of its intents (stored promises to send bytes). It
    sends only the missing records, hashed with the new key."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef\n")
    world = made("hash line", hash_key_location=key)
    try:
        world.kill_in_flight(b"one\n", b"two\n", arrives=FIRST)
        recipe = next(iter(StateDatabase(world.connection).recipes().values()))
        assert "0123456789" not in recipe.to_json()
        before = [hmac.digest(b"0123456789abcdef", b"one", "sha256")[:16].hex()]
        assert world.values() == before
        key.write_text("fedcba9876543210\n")
        program_versions._left_key.cache_clear()
        assert program_versions.at_present(recipe) != recipe
        world.start()
        world.settle()
        assert world.losses() == []
        after = [hmac.digest(b"fedcba9876543210", b"two", "sha256")[:16].hex()]
        assert world.values() == before + after
        assert (world.only()["acknowledged"], world.only()["pending"]) == (8, 0)
    finally:
        program_versions._left_key.cache_clear()


def test_a_rejected_line_keeps_no_secret() -> None:
    """Rules of the kind `mask` hide secrets in the whole text of a rejected line. If these rules
    cannot hide every secret, for example because the pattern of a rule has an anchor (`^`), the
    agent sends only the line's position and the reason."""
    parser = ParserSettings(type="regex", pattern=r"(?P<line>\w+)")
    for shape, shown in (
        ("mask line for ips, keys", b"password=[key] [ip]"),
        ('mask line matching "pass[a-z]*"', b"[masked]=x 10.0.0.1"),
        ('mask line matching "^pass.*"', WITHHELD),
        ("rename line to text\nmask text for ips", b"password=x [ip]"),
    ):
        world = made(shape, parser=parser)
        world.files.append(A, b"password=x 10.0.0.1\n")
        world.start()
        world.settle()
        (row,) = rejected_rows(world.brokers)
        assert (row["line"], row["reason"]) == (shown, "no-match")


def test_a_rejected_line_in_another_encoding_keeps_no_secret() -> None:
    """If the bytes of a rejected line are not in the encoding of its source, rules of the kind
    `mask` cannot find secrets in this line. So the agent sends only the line's position and the
    reason for the rejection."""
    world = made("mask line for keys", parser=ParserSettings(type="regex", pattern="(?P<line>.*)"))
    world.files.append(A, b"p\xe4ssword password=x\n")
    world.start()
    world.settle()
    (row,) = rejected_rows(world.brokers)
    assert (row["line"], row["reason"]) == (WITHHELD, "encoding")


@promise("2 filtered")
def test_headers_of_csv_are_counted_as_filtered() -> None:
    """A header line of a CSV file becomes neither a row nor a reject. The agent counts each header
    once as filtered, wherever it is in a file, even if the agent is killed before its
    checkpoint."""
    parser = ParserSettings(type="csv", columns=["a", "b"])
    world = made('drop a = "d" as debug', parser=parser)
    world.start()
    world.files.append(A, b"a,b\n1,2\nd,3\na,b\n")
    world.turn()
    world.kill()
    world.files.rename(A, f"{A}.1")
    world.files.append(A, b"a,b\nd,4\n5,6\n?\n")
    world.start()
    world.settle()
    assert filtered(world) == [("csv header", 3, 12), ("debug", 2, 8)]
    assert [row["line"] for row in rejected_rows(world.brokers)] == [b"?"]
    assert sum(count for topic, count, _ in world.counted() if topic == "logs") == 2
