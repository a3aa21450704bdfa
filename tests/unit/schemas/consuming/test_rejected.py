from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from skidway.schemas.consuming import rejected
from support.rejected_topic import RejectedTopic


def table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[RejectedTopic, Callable[[], str]]:
    """Returns an empty topic `logs.rejected`, and a function that returns what `skidway rejected
    show` prints of it."""
    topic = RejectedTopic("logs.rejected", monkeypatch)
    monkeypatch.setattr(rejected, "connect", lambda _: nullcontext(topic.client()))
    commands = argparse.ArgumentParser()
    rejected.register(commands.add_subparsers())
    args = commands.parse_args(
        ["rejected", "show", "logs", "--bootstrap-server", "k1:9092", *words]
    )

    def show() -> str:
        assert args.run(args) == 0
        return capsys.readouterr().out

    return topic, show


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"bad utf8 \xff\xfe here", r"bad utf8 \xff\xfe here"),
        (b"\tat org.apache.Foo", r"\tat org.apache.Foo"),
        ("caf\u00e9\u00a0\u202f\u200b1".encode(), "caf\u00e9" + r"\xa0\u202f\u200b1"),
        (b"\x1b[31mred", r"\x1b[31mred"),
        (b"a\nb\r", r"a\nb\r"),
        (b"x" * 160, "x" * 160),
        (b"x" * 161, "x" * 160 + "\u2026"),
        (b"x" * 159 + "\u00e9".encode(), "x" * 159 + "\u2026"),
    ],
)  # fmt: skip
def test_a_line_is_shown_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: bytes, shown: str
) -> None:
    """`skidway rejected show` prints an escape for each tab, each byte that is not UTF-8 and each
    character that cannot be seen, and an ellipsis behind a line that it cuts."""
    topic, show = table(monkeypatch, capsys)
    topic.reject(0, line)
    assert show().splitlines()[1].endswith(f"  {shown}")


def test_a_line_of_which_the_record_has_a_part_ends_with_an_ellipsis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the agent sent only the beginning of a line, the ellipsis shows this, too."""
    topic, show = table(monkeypatch, capsys)
    topic.reject(0, b"whole")
    topic.reject(1, b"begin", length=5_000_000)
    rows = show().splitlines()[1:]
    assert [row.split()[-1] for row in rows] == ["whole", "begin\u2026"]


def test_the_whole_reason_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of `skidway rejected show` has the reason with its detail: the field, and what is
    wrong with it."""
    topic, show = table(monkeypatch, capsys)
    topic.reject(0, b"x", reason="schema", detail="field user_id: not a value of int32")
    topic.reject(1, b"y", reason="no-match")
    text = show()
    assert "  schema: field user_id: not a value of int32  " in text
    assert "  no-match  " in text


def test_json_has_the_whole_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json, the whole line is printed; a line that is not UTF-8 is base64, and its key says
    so."""
    topic, show = table(monkeypatch, capsys, "--json")
    topic.reject(0, b"bad utf8 \xff\xfe here", b"x" * 500 + b"\t")
    first, second = json.loads(show())
    assert first["line_base64"] == "YmFkIHV0Zjgg//4gaGVyZQ=="
    assert (second["line"], second["position"], second["offset"]) == ("x" * 500 + "\t", 100, 1)


def test_only_the_newest_lines_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--max`, only the lines that were rejected last are shown."""
    topic, show = table(monkeypatch, capsys, "--json", "--max", "2")
    for time_ms in (3, 9, 6):
        topic.reject(time_ms, b"%d" % time_ms)
    assert [each["line"] for each in json.loads(show())] == ["6", "9"]


def test_only_lines_that_were_rejected_since_the_time_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--since`, `skidway rejected show` leaves out each line that was rejected before this
    time, as `skidway rejected export` does. It leaves out such a line even if its record comes
    after the record of a line that was rejected later."""
    topic, show = table(monkeypatch, capsys, "--since", "1970-01-01T00:00:01Z", "--json")
    for time_ms, line in ((100, b"early"), (2_000, b"new"), (900, b"late"), (1_000, b"at once")):
        topic.reject(time_ms, line)
    assert [each["line"] for each in json.loads(show())] == ["at once", "new"]
