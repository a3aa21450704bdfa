"""Tests which schemas `skidway schemas register` and `check` accept, and what the commands
print."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from skidway.errors import Unreachable
from skidway.schemas.client import RegistryAdministration
from support.registry_http import Registry, record

V1 = record(a=None)
BROKEN = record(a=None, must=None)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "good.avsc").write_text(V1)
    (tmp_path / "broken.avsc").write_text(BROKEN)


def test_a_check_of_an_unknown_subject_is_no_good(registry: Registry, run: Any) -> None:
    """Without the option --new-subject, a check of an unknown subject fails, because the subject
    may be mistyped."""
    registry.register("users", V1)
    for more in ([], ["--version", "1"], ["--json"]):
        done = run("check", "user", "good.avsc", *more)
        assert (done.status, done.out) == (1, "")
        assert "no such subject: user" in done.err
    assert run("check", "user", "good.avsc", "--new-subject").status == 0
    assert run("check", "users", "good.avsc").status == 0
    assert run("register", "user", "good.avsc", "--dry-run").status == 0


def test_a_refused_registration_says_what_a_check_says(registry: Registry, run: Any) -> None:
    """If the registry refuses a schema, `register` prints the same text as `check` (field, level
    and suggestion), and ends with exit status 1."""
    registry.register("users", V1)
    checked, refused = run("check", "users", "broken.avsc"), run("register", "users", "broken.avsc")
    assert (refused.status, refused.out, refused.err) == (1, checked.out, "")
    assert "must: version 1 does not have this field" in refused.out
    document = run("register", "users", "broken.avsc", "--json").document
    assert (document["compatible"], document["subject"]) == (False, "users")
    assert registry.good("GET", "/subjects/users/versions") == [1]


@pytest.mark.parametrize("verb", ["check", "register"])
def test_several_files_are_named_after_their_subjects(
    registry: Registry, run: Any, tmp_path: Path, verb: str
) -> None:
    """With the option --by-name of `skidway schemas register` and `check`, the subject of each file
    is the file's name without `.avsc`. All given files, and all `*.avsc` files in given
    directories, are checked. If one file is bad, the exit status is 1."""
    registry.register("good", V1)
    registry.register("broken", V1)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "third.avsc").write_text(V1)
    registry.register("third", V1)
    done = run(verb, "--by-name", ".", "more", "--json")
    assert done.status == 1
    assert [each["subject"] for each in done.document] == ["broken", "good", "third"]
    assert run(verb, "--by-name", "good.avsc", "more/third.avsc").status == 0
    (tmp_path / "empty").mkdir()
    for wrong in (["--by-name", "empty"], ["users"], ["a", "b", "c"]):
        assert run(verb, *wrong).status == 2


def test_one_of_several_that_cannot_be_judged_does_not_hide_the_others(
    registry: Registry, run: Any
) -> None:
    """If `skidway schemas check` or `register` gets several files, and the subject of one file is
    unknown or read-only, the output says so. The command still checks or registers the other
    files."""
    registry.register("broken", V1)
    done = run("check", "--by-name", ".")
    assert done.status == 1
    assert "must: version 1 does not have this field" in done.out
    assert "good: no such subject: good" in done.out
    registry.good("PUT", "/mode/broken", {"mode": "READONLY"})
    done = run("register", "--by-name", ".", "--json")
    assert (done.status, done.err) == (1, "")
    assert [each["subject"] for each in done.document] == ["broken", "good"]
    assert "error" in done.document[0]
    assert done.document[1]["id"] == 1


def test_what_was_registered_is_said_though_the_registry_goes_away(
    run: Any, client: RegistryAdministration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the registry becomes unreachable after the first of two files is registered, `skidway
    schemas register` prints the first schema's id and ends with exit status 3."""
    real = client.register

    def register(subject: str, *more: Any) -> int:
        if subject == "good":
            raise Unreachable("the registry does not answer")
        return real(subject, *more)

    monkeypatch.setattr(client, "register", register)
    done = run("register", "--by-name", "broken.avsc", "good.avsc")
    assert done.status == 3
    assert done.out == "broken version 1 has id 1\n"
    done = run("register", "--by-name", "broken.avsc", "good.avsc", "--json")
    assert [each["id"] for each in done.document] == [1]


@pytest.mark.parametrize("text", ["{", "", '{"type": "nothing"}', "[" * 5000])
def test_a_file_that_is_no_schema_is_named(run: Any, tmp_path: Path, text: str) -> None:
    """If a file does not contain a schema, the error names the file, even if several files are
    given. The test leaves out one case: with --reference, only the registry knows whether a type
    exists."""
    (tmp_path / "wrong.avsc").write_text(text)
    for arguments in (
        ["check", "users", "wrong.avsc"],
        ["register", "--by-name", "good.avsc", "wrong.avsc"],
        ["check", "--against", "wrong.avsc", "good.avsc"],
        ["diff", "--against", "good.avsc", "wrong.avsc"],
        ["register", "users", "wrong.avsc", "--reference", "R=users:1"],
    ):
        done = run(*arguments)
        if "--reference" not in arguments or text != '{"type": "nothing"}':
            assert done.status == 1
            assert "wrong.avsc: " in done.err


def test_what_was_deleted_is_registered_again(client: RegistryAdministration) -> None:
    """A client that registers a schema, deletes it and registers it again gets the same id, and the
    subject has the schema again."""
    made = client.register("users", V1)
    client.delete_subject("users")
    assert client.register("users", V1) == made
    assert client.versions("users") == [2]
    client.delete_version("users", 2)
    assert client.register("users", V1) == made
    assert client.versions("users") == [3]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_read_or_named(
    registry: Registry, run: Any, tmp_path: Path, monkeypatch: Any, encoding: str
) -> None:
    """A schema with the byte order mark of UTF-8 is registered without the mark, from a file and
    from standard input; a schema in UTF-16 is refused by that name."""
    (tmp_path / "marked.avsc").write_text(V1, encoding)
    given = io.TextIOWrapper(io.BytesIO(V1.encode(encoding)))
    monkeypatch.setattr("sys.stdin", given)
    for subject, file in (("one", "marked.avsc"), ("two", "-")):
        done = run("register", subject, file)
        if encoding == "utf-16":
            assert (done.status, done.out) == (1, "")
            assert f"{file}: it is UTF-16; save it as UTF-8" in done.err
        else:
            assert (done.status, done.err) == (0, "")
            text = registry.good("GET", f"/subjects/{subject}/versions/1")["schema"]
            assert json.loads(text) == json.loads(V1)


STATE = {"type": "enum", "name": "S", "symbols": ["A", "B", "C"], "default": "A"}
FEWER = {**STATE, "symbols": ["A", "B"]}


def with_state(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "s", "type": kind}]})


def test_a_dropped_symbol_says_what_readers_make_of_it(
    registry: Registry, run: Any, tmp_path: Path
) -> None:
    """If a schema lacks a symbol that earlier records may have, `check` and `diff` say that Avro's
    readers take the default instead, with a registry and with two files."""
    (tmp_path / "old.avsc").write_text(with_state(STATE))
    (tmp_path / "new.avsc").write_text(with_state(FEWER))
    registry.register("states", with_state(STATE))
    line = "s: symbol removed: C (Avro readers of the new schema read it as A; the loader's rows"
    for arguments in (["states", "new.avsc"], ["--against", "old.avsc", "new.avsc"]):
        done = run("check", *arguments)
        assert (done.status, line in done.err) == (0, True)
        assert line in run("diff", *arguments).out
    assert run("register", "states", "new.avsc", "--dry-run").err.count(line) == 1
    assert run("check", "states", "old.avsc").err == ""


def test_a_logical_type_without_effect_is_one_line(
    registry: Registry, run: Any, tmp_path: Path
) -> None:
    """If readers will ignore a logical type, `check` and `register` say so in one line on standard
    error, and do their work."""
    kind = {"type": "long", "logicalType": "timestamp_millis"}
    (tmp_path / "new.avsc").write_text(with_state(kind))
    for arguments in (
        ["check", "--new-subject", "times", "new.avsc"],
        ["check", "--against", "new.avsc", "new.avsc"],
        ["register", "--dry-run", "times", "new.avsc"],
        ["register", "times", "new.avsc"],
    ):
        done = run(*arguments)
        assert done.status == 0
        assert done.err.count("s: Avro has no logical type") == done.err.count("\n") == 1


def test_two_files_are_checked_without_a_registry(run: Any, monkeypatch: Any) -> None:
    """With --against, `check` compares two files at the compatibility level that the user gives,
    and needs no registry."""
    monkeypatch.setattr("skidway.schemas.commands.evolve.connect", None)
    monkeypatch.setattr("skidway.schemas.commands.compare.connect", None)
    done = run("check", "--against", "good.avsc", "broken.avsc")
    assert done.status == 1
    assert "not compatible with good.avsc" in done.out
    assert run("check", "--against", "good.avsc", "broken.avsc", "--level", "FORWARD").status == 0
    assert run("check", "--against", "good.avsc", "good.avsc", "--json").document["compatible"]
    found = run("diff", "--against", "good.avsc", "broken.avsc", "--json").document
    assert (found["from"], found["to"]) == ("good.avsc", "broken.avsc")
    assert found["allowed_by"] == ["FORWARD"]
    assert (
        "from good.avsc to broken.avsc" in run("diff", "--against", "good.avsc", "broken.avsc").out
    )
    assert run("check", "--against", "good.avsc", "users", "broken.avsc").status == 2
    assert run("diff", "--against", "good.avsc", "users", "broken.avsc").status == 2
