from __future__ import annotations

import json

import pytest

from skidway import machine
from skidway.cli import main
from skidway.cli.doctor import render
from skidway.machine import Finding

GOOD = Finding("java", "good", "Java 17")
ADVICE = Finding("port 9092", "advice", "used by process 7 (java)", "give ours another")
MISSING = Finding("disk", "missing", "0.1 GiB free", "make room")


def test_findings_are_words_with_advice_below() -> None:
    """`skidway doctor` prints the result of each check on a line. If the result is not good, the
    line below says what to do. If something that the programs need is missing, the last line names
    it."""
    text = render([GOOD, ADVICE, MISSING])
    assert text.splitlines() == [
        "  ok java       Java 17",
        "  !  port 9092  used by process 7 (java)",
        "                -> give ours another",
        "  X  disk       0.1 GiB free",
        "                -> make room",
        "",
        "Missing: disk.",
    ]


def test_a_bare_installation_is_not_called_whole() -> None:
    """If some of Skidway's programs are not installed, the last line of `skidway doctor` names
    them, and the programs that can run on this host."""
    parts = [
        Finding("part broker", "good", "installed"),
        Finding("part agent", "advice", "not installed here (lacks numpy>=2.0)", "install it"),
    ]
    said = render([GOOD, *parts]).splitlines()[-1]
    assert said == "This machine can run broker; not installed here: agent."
    assert render([GOOD, parts[0]]).splitlines()[-1] == "Nothing needed is missing."


@pytest.mark.parametrize(("findings", "status"), [([GOOD, ADVICE], 0), ([GOOD, MISSING], 1)])
def test_status_is_1_only_if_something_needed_is_missing(
    findings: list[Finding],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If something is missing that the programs need, the exit status of `skidway doctor` is 1,
    even with --json. If the command only gives advice, the status is 0."""
    monkeypatch.setattr(machine, "examine", lambda _: iter(findings))
    assert main(["doctor"]) == status
    capsys.readouterr()
    assert main(["doctor", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] == (status == 0)
    assert [finding["name"] for finding in document["findings"]] == [f.name for f in findings]
