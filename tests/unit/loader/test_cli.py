"""Tests the arguments and the output of the commands `skidway load reload` and `validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from skidway.cli import main
from skidway.errors import SkidwayError
from skidway.loader.runs.reload import Reloaded, Wish
from skidway.loader.state.layout import Hours


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Returns the settings that each call of `skidway load reload` needs, as arguments of the
    command line."""
    settings = {
        "bootstrap.servers": "127.0.0.1:1", "schema.registry.url": "http://127.0.0.1:1",
        "topics": "logs", "output": str(tmp_path),
    }  # fmt: skip
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def wished(given: list[str], *words: str, result: Reloaded | None = None) -> tuple[int, Any]:
    """Runs the command `skidway load reload`. Returns the command's exit status and the reload that
    the command requested."""
    asked: list[Wish] = []

    def reload(_settings: object, wish: Wish, *_: object, **__: object) -> Reloaded:
        asked.append(wish)
        return result or Reloaded(wish.topic)

    with (
        patch("skidway.loader.runs.reload.reload", reload),
        patch("skidway.loader.cli._Interrupt"),
    ):
        code = main(["load", "reload", *words, *given])
    return code, asked[0] if asked else None


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2026-01-31T10", "2026-01-31T12"),
        ("2026-01-31T10:00:00Z", "2026-01-31T12:00"),
        ("2026-01-31T11:00+01:00", "2026-01-31T13:00:00+01:00"),
    ],
)
def test_hours_are_given_as_times(given: list[str], begin: str, end: str) -> None:
    """`skidway load reload` takes hours as times, with or without minutes, seconds and time zone,
    and converts them to hours in UTC."""
    code, wish = wished(given, "logs", "--from", begin, "--to", end)
    assert (code, wish) == (0, Wish("logs", Hours("2026-01-31T10", "2026-01-31T12")))


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        ("2026-01-31T10:30", "2026-01-31T12", "--from '2026-01-31T10:30' is not the start of"),
        ("2026-01-31T10", "2026-01-31T11:00:01", "--to '2026-01-31T11:00:01' is not the start"),
        ("2026-01-31T10", "2026-01-31T10", "--to is a later hour than --from"),
        ("yesterday", "2026-01-31T10", "--from 'yesterday' is neither a time"),
    ],
)
def test_only_whole_hours_are_reloaded(
    given: list[str], capsys: pytest.CaptureFixture[str], begin: str, end: str, words: str
) -> None:
    """`skidway load reload` refuses a text that is no time, a time that is not the start of an
    hour, and a range without hours. It ends with exit status 2."""
    code, wish = wished(given, "logs", "--from", begin, "--to", end)
    assert (code, wish) == (2, None)
    assert words in capsys.readouterr().err


def test_problems_are_printed_and_give_the_status(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command prints each problem of a reload as a sentence, and ends with the exit status of
    the most serious problem. With --json, it prints a document with the hours and the problems."""
    hours = ["--from", "2026-01-31T10", "--to", "2026-01-31T12"]
    result = Reloaded("logs", [4], {"2026-01-31T11"}, problems=[SkidwayError("offset 3 is gone")])
    options = ("--more-rejects", "--drop-fields", "--dry-run")
    code, wish = wished(given, "logs", *hours, *options, result=result)
    assert (code, wish.may_reject, wish.may_drop, wish.dry) == (1, True, True, True)
    assert "skidway load: offset 3 is gone" in capsys.readouterr().err
    assert wished(given, "logs", *hours, "--json", result=result)[0] == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["hours"]) == (False, ["2026-01-31T11"])
    assert document["problems"] == ["offset 3 is gone"]


@pytest.mark.parametrize("as_json", [False, True])
def test_validate_says_that_a_cluster_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """`skidway load validate` says in one sentence that a Spark cluster authenticates nobody, and
    how to mend it. It ends with 0, because the cluster is not the loader's."""
    given = {
        "bootstrap.servers": "h:1", "schema.registry.url": "http://h", "topics": "t",
        "output": "hdfs://127.0.0.1:1/logs", "spark.master": "spark://h:7077",
    }  # fmt: skip
    words = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    words += ["--json"] if as_json else []
    assert main(["load", "validate", *words]) == 0
    assert "spark://h:7077 can read rows and run code" in capsys.readouterr().out
    (tmp_path / "secret").write_text("x")
    words += ["--set", f"spark.authenticate.secret.file={tmp_path / 'secret'}"]
    assert main(["load", "validate", *words]) == 0
    assert "run code" not in capsys.readouterr().out
