"""Tests `skidway audit keys list` while a master key is replaced."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from skidway.audit.commands.keys import NAMED_MAX
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.cli import main
from support.promises import promise


def keys(folder: Path, *words: str) -> int:
    given = [
        "bootstrap.servers=b:1", f"store.dir={folder}",
        f"audit.master.keys.location={folder / 'masters'}",
    ]  # fmt: skip
    return main(["audit", "keys", *words, *(x for each in given for x in ("--set", each))])


@promise("6 signed")
def test_the_list_names_who_still_signs_with_the_old_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While a master key is replaced, the list says how many senders use each key. It names those
    of the old key, for which the operator waits, and at most NAMED_MAX of them. While there are
    any, the old key is dropped only by force."""
    assert keys(tmp_path, "rotate") == keys(tmp_path, "rotate") == 0
    capsys.readouterr()
    assert keys(tmp_path, "list", "--json") == 0
    assert [each["senders"] for each in json.loads(capsys.readouterr().out)] == [None, None]
    Ledger(tmp_path / DATABASE).close()
    old = [f"agent/dc1/app{number:03}" for number in range(NAMED_MAX + 5)]
    with sqlite3.connect(tmp_path / DATABASE) as store:
        rows = [*((name, 1) for name in old), ("counter/broker/dc1", 2)]
        store.executemany("INSERT INTO signers VALUES (?, ?)", rows)
    store.close()
    assert keys(tmp_path, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"key": 1, "senders": NAMED_MAX + 5, "still": old[:NAMED_MAX]},
        {"key": 2, "senders": 1, "still": []},
    ]
    assert keys(tmp_path, "list") == 0
    first = capsys.readouterr().out.splitlines()[1]
    assert first.split()[:3] == ["1", str(NAMED_MAX + 5), "agent/dc1/app000,"]
    assert keys(tmp_path, "drop", "1") == 2
    assert "25 senders signed with the key 1 last (agent/dc1/app000, " in capsys.readouterr().err
    assert keys(tmp_path, "drop", "1", "--force") == 0
