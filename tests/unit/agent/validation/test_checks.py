import json
import os
from pathlib import Path
from typing import cast

import pytest
import yaml

from skidway.agent.validation.checks import try_sources
from skidway.agent.validation.report import document, render
from skidway.cli import main
from skidway.errors import ConfigurationRefused
from skidway.schemas.client import Registered, RegistryClient, RegistryRefused, RegistryUnreachable
from support.agent_world import Files, raw, settings
from support.clock import ManualClock

LINE = '{"type":"record","name":"r","fields":[{"name":"line","type":"string"}]}'


class Registry:
    """A schema registry that has one subject (`known`), and that cannot be reached while `is_away`
    is true."""

    is_away = False

    def latest(self, subject: str) -> Registered:
        if self.is_away:
            raise RegistryUnreachable("No schema registry answers.")
        if subject != "known":
            raise RegistryRefused(404, 40401, "Subject 'unknown' not found.")
        return Registered(subject, 1, 1, LINE)


def configured(tmp_path: Path, pattern: str) -> list[str]:
    (tmp_path / "app.log").write_text("081109 203615 INFO one\n081109 203616 INFO two\n\tat x\n")
    source = {
        "topic": "app",
        "paths": [str(tmp_path / "*.log")],
        "parser": {"type": "regex", "pattern": pattern},
    }
    document = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://127.0.0.1:1",
        "state.dir": str(tmp_path / "state"),
        "sources": [source, {"topic": "later", "paths": [str(tmp_path / "none/*.log")]}],
    }
    path = tmp_path / "agent.yml"
    path.write_text(yaml.safe_dump(document))
    return ["agent", "validate", "--config", str(path)]


def test_a_wrong_pattern_is_told_with_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If most lines would be rejected, `validate` ends with status 1. It shows the number of these
    lines, the reasons and some examples."""
    assert main(configured(tmp_path, r"(?P<date>\d+)")) == 1
    said, refused = capsys.readouterr()
    assert "app: 1 file; 3 of 3 records (100.0%) do not fit: no-match 3\n" in said
    why = "the record does not match the pattern of format or parser"
    assert f"  {tmp_path}/app.log line 3: no-match: {why}" in said
    assert "      081109 203615 INFO one\n" in said
    assert "app would reject more than 50% of its records (rejected.share.max)" in refused
    assert "is good" not in said


def test_a_file_is_shown_under_the_first_source_that_matches_it() -> None:
    """The agent gives each file to the first source that matches the file. So `validate` tries a
    file for this source only, and says of a later source how many of its files an earlier source
    takes."""
    files = Files(ManualClock())
    for path in ("/log/ep.log", "/log/epms.log", "/log/epms-2.log", "/log/other.log"):
        files.append(path, b"1\n")
    registry = cast(RegistryClient, Registry())
    sources = raw("ep", "/log/ep*.log"), raw("epms", "/log/epms*.log"), raw("all", "/log/*.log")
    found = try_sources(settings(*sources), files, registry, 10)
    assert [each.files for each in found] == [3, 0, 1]
    assert [each.taken for each in found] == [{}, {"ep": 2}, {"ep": 3}]
    assert render(found) == (
        "ep: 3 files; all of 3 records fit\n"
        "  paths /log/ep*.log takes 3 files\n"
        "epms: no file is left for it\n"
        "  2 files that its paths match go to the source of topic ep, which comes first\n"
        "  paths /log/epms*.log takes 2 files\n"
        "all: 1 file; all of 1 record fit\n"
        "  3 files that its paths match go to the source of topic ep, which comes first\n"
        "  paths /log/*.log takes 4 files\n"
    )
    assert document(found, 0.5)["sources"][1]["taken"] == {"ep": 2}


def test_a_few_lines_that_do_not_fit_are_no_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If at most `rejected.share.max` of the lines would be rejected, or if a path matches no file,
    `validate` shows this, but the configuration still counts as good. The last line names the
    sources to look at, so that nobody takes it for the whole truth."""
    command = configured(tmp_path, r"(?P<date>\d+) (?P<message>.*)")
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "app: 1 file; 1 of 3 records (33.3%) do not fit: no-match 1\n" in said
    assert "later: no file matches its paths now\n" in said
    assert said.endswith("the configuration is good, but look at the lines with ! of later\n")
    assert main([*command, "--set", "rejected.share.max=0.1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["sources"][0]["examples"][0]["line"] == 3


def test_a_schema_of_the_registry_is_asked_for() -> None:
    """If the setting `schema` names a subject that the registry does not know, `validate` refuses
    the source, as `skidway agent run` does. If the registry cannot be reached, `validate` says that
    it tried no line of the source, but does not fail."""
    files = Files(ManualClock())
    files.append("/log/a.log", b"one\n")
    registry = Registry()
    client = cast(RegistryClient, registry)
    (found,) = try_sources(settings(raw(schema="known")), files, client, 10)
    assert (found.lines, found.rejected) == (1, 0)
    with pytest.raises(ConfigurationRefused, match=r"^source of topic logs: schema: unknown: Subj"):
        try_sources(settings(raw(schema="unknown")), files, client, 10)
    registry.is_away = True
    trials = try_sources(settings(raw(schema="known")), files, client, 10)
    assert "logs: 1 file; no line was tried, its schema known is the registry's" in render(trials)
    assert document(trials, 0.5)["ok"]


@pytest.mark.parametrize(
    "text", ['"string"', '["null", "string"]', '{"type":"map","values":"int"}']
)
def test_a_schema_that_is_no_record_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """Like `skidway agent run`, `validate` refuses a schema that is not a record schema. The error
    names the source, and the exit status is 78."""
    schema = tmp_path / "line.avsc"
    schema.write_text(text)
    path = tmp_path / "agent.yml"
    source = {"topic": "app", "paths": ["/x"], "schema": str(schema)}
    document = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://127.0.0.1:1",
        "state.dir": "/nowhere",
        "sources": [source],
    }
    path.write_text(yaml.safe_dump(document))
    assert main(["agent", "validate", "--config", str(path)]) == 78
    assert "source of topic app: the schema is no record" in capsys.readouterr().err


@pytest.mark.parametrize("lines", ["0", "100"])
def test_a_logical_type_without_effect_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str
) -> None:
    """If readers will ignore a logical type of a source's schema, `validate` prints a line with an
    exclamation mark that names the field, also if it tries no lines."""
    fields = [{"name": "message", "type": "string"}]
    fields.append({"name": "at", "type": "long", "logicalType": "timestamp-millis"})
    schema = tmp_path / "line.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "L", "fields": fields}))
    source = {"topic": "app", "paths": ["/x"], "schema": str(schema), "parser": {"type": "json"}}
    document = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://127.0.0.1:1",
        "state.dir": "/nowhere",
        "sources": [source],
    }
    path = tmp_path / "agent.yml"
    path.write_text(yaml.safe_dump(document))
    assert main(["agent", "validate", "--config", str(path), "--lines", lines]) == 0
    assert "  ! at: logicalType stands beside the type and not in it" in capsys.readouterr().out


def test_a_field_that_the_loader_refuses_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a field has the name of one of the loader's columns, `validate` prints a warning that
    names the field, because the loader will refuse the topic. The configuration is nevertheless
    good, because the topic may have other readers."""
    assert main(configured(tmp_path, r"(?s)(?P<dt>\S+)(?P<rest>.*)")) == 0
    said = capsys.readouterr().out
    assert "  the loader will refuse the topic: the field dt has the name of one of" in said
    assert "the field rest" not in said


@pytest.mark.parametrize("name", [b"\xff.log", b"\xed\xa0\x80.log", b"new\nline.log", b"\xf0"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_any_name_of_a_file_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: bytes, options: list[str]
) -> None:
    """Whatever bytes the names of files have, `validate` tries their lines, also with fields made
    from their paths, and prints the names in UTF-8."""
    command = configured(tmp_path, r"(?P<line>.*)")
    settings_file = tmp_path / "agent.yml"
    document = yaml.safe_load(settings_file.read_text())
    (source,) = [each for each in document["sources"] if each["topic"] == "app"]
    source |= {"paths": [f"{tmp_path}/logs/**"], "path.pattern": "/logs/(?P<app>.*)"}
    settings_file.write_text(yaml.safe_dump(document))
    folder = os.fsencode(tmp_path / "logs")
    os.mkdir(folder)
    for each in (name, b"good.log"):
        with open(os.path.join(folder, each), "wb") as file:
            file.write(b"one\n")
    os.mkfifo(os.path.join(folder, b"pipe" + name))
    os.symlink(b"none" + name, os.path.join(folder, b"dead" + name))
    assert main([*command, *options]) == 0
    said = capfd.readouterr().out
    assert "app: 2 files; all of 2 records fit" in said or '"tried": 2' in said
    assert said.encode()
