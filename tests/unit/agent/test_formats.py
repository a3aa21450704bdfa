"""Tests the catalog of well-known formats, and the command `guess`, which finds the format of a
log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from skidway import settings
from skidway.agent import configuration
from skidway.agent.commands.guessing import guess
from skidway.agent.files.patterns import Pattern
from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings, MultilineSettings, SourceSettings
from skidway.agent.validation.checks import check_settings
from skidway.agent.validation.preview import preview
from skidway.cli import main
from skidway.errors import ConfigurationRefused, SkidwayError

DATA = Path(__file__).parents[2] / "data"
NAMES = sorted(catalog.formats())
NOW_MS = 1_796_083_200_000  # 2026-12-01
TRUTH: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (DATA / "formats" / "truth.yml").read_text()
)
REAL = {
    "apache": "apache22_error", "hadoop": "hadoop", "hdfs": "hdfs", "linux": "syslog",
    "openssh": "sshd", "spark": "spark", "zookeeper": "zookeeper",
}  # fmt: skip
CONFIG = """
bootstrap.servers: 127.0.0.1:9
schema.registry.url: http://127.0.0.1:9
state.dir: /nowhere
"""


def source(name: str, **more: Any) -> SourceSettings:
    return catalog.of_source(SourceSettings(topic="logs", paths=["/a"], format=name, **more))


@pytest.mark.parametrize("name", NAMES)
def test_the_sample_of_a_format_has_the_fields_that_a_reader_sees(name: str) -> None:
    """The catalog has a sample log of each format. Every record of this log becomes a row with the
    fields and the time that a person found in the record."""
    sample = catalog.formats()[name].sample.encode()
    made = preview(source(name), sample, "/a", now_ms=NOW_MS)
    assert made.rejects == []
    found = [
        {"at": each.time and each.time.isoformat()}
        | {key: value for key, value in each.row.items() if value not in (None, "", {}, each.time)}
        for each in made.rows
    ]
    assert found == TRUTH[name]


@pytest.mark.parametrize("log", sorted(REAL))
def test_the_format_of_a_real_log_is_guessed(log: str) -> None:
    """The test uses real logs of several systems. `guess` finds the format of each log, and every
    line of the log fits this format."""
    found = guess(DATA / "logs" / f"{log}.log", 1_000)
    assert found.block["format"] == REAL[log]
    assert found.preview.share == 1.0


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_guessed(name: str, tmp_path: Path) -> None:
    """`guess` finds the format of each sample log in the catalog. The block of settings that it
    proposes works without changes."""
    found = guess(write(tmp_path, f"{name}.log", catalog.formats()[name].sample), 100)
    assert found.block["format"] == name
    config = write(tmp_path, "agent.yml", CONFIG + found.yaml)
    check_settings(catalog.applied(settings.load(AgentSettings, config)))


def test_json_lines_are_guessed_with_schema_and_time(tmp_path: Path) -> None:
    """For JSON lines, `guess` proposes a schema, and finds the member that contains the time."""
    lines = [
        {"ts": 1_795_000_000 + number, "level": "info", "msg": "x", "ms": number / 2}
        for number in range(20)
    ]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    found = guess(write(tmp_path, "shop.json", text), 100)
    assert found.block["timestamp"] == {"fields": ["ts"], "format": "epoch"}
    assert found.schema is not None
    assert found.preview.share == 1.0
    assert [each.row["ms"] for each in found.preview.rows] == [each["ms"] for each in lines]


def test_the_lines_of_a_container_are_guessed(tmp_path: Path) -> None:
    """For a container's log, `guess` proposes the runtime and the format of what the container
    wrote."""
    sample = catalog.formats()["spring"].sample.splitlines()
    text = "".join(f"2026-11-21T08:15:01.5Z stdout F {line}\n" for line in sample)
    found = guess(write(tmp_path, "0.log", text), 100)
    assert (found.block["container"], found.block["format"]) == ("cri", "spring")
    assert len(found.preview.rows) == len(TRUTH["spring"])


def test_the_files_of_a_pod_are_those_of_all_its_pods(tmp_path: Path) -> None:
    """For a file in kubelet's directories, `guess` proposes the container's name as the topic. It
    also proposes a path that matches the files of containers of this name in all pods of the same
    namespace. If the runtime divided a line between two bytes of a character, `guess` still
    recognizes the lines as UTF-8."""
    folder = tmp_path / "pods" / "shop_web-1_3f0c" / "cart"
    folder.mkdir(parents=True)
    time, text = b"2026-11-21T08:15:01.5Z stdout", "ü".encode()
    data = time + b" P " + text[:1] + b"\n" + time + b" F " + text[1:] + b"\n"
    found = guess(write(folder, "0.log", data), 100)
    assert found.block["topic"] == "cart"
    assert found.block["paths"] == [f"{tmp_path}/pods/shop_*/cart/*.log"]
    assert "on_error" not in found.block


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("iso.log", b"0001-01-01T00:00:00+10:00 web7 app[1]: x\n" * 3),
        ("0.log", b"9999-12-31T23:59:59-10:00 stdout F x\n" * 3),
        ("deep.log", b"{" + b'"a":{' * 2_000 + b"}" * 2_001 + b"\n"),
        ("bytes.json", b'{"a": "\xff"}\n{"a": "b"}\n'),
        ("cri.log", b'2026-11-21T08:15:01Z stdout F {"container": 7, "container_time": "x"}\n'),
        ("app[1].log", b"plain\n"),
        ("x" * 240, b"\x1b[31mred\x1b[0m\n"),
        ("nul.log", b"\0" * 100),
    ],
)
def test_guess_survives_odd_files(
    name: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However odd the name and the content of a file are, `guess` proposes a block of settings that
    works, and whose paths match the file. The printed text is safe for a terminal."""
    log = write(tmp_path, name, data)
    assert main(["agent", "guess", str(log)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    found = guess(log, 100)
    block = {key: value for key, value in found.block.items() if key != "schema"}
    if "parser" in block:
        write(tmp_path, "a.avsc", found.schema or "")
        block["schema"] = str(tmp_path / "a.avsc")
    config = write(tmp_path, "agent.yml", CONFIG + yaml.safe_dump({"sources": [block]}))
    loaded = catalog.applied(settings.load(AgentSettings, config))
    check_settings(loaded)
    (source,) = loaded.sources
    assert any(Pattern(path, ()).means(str(log)) for path in source.paths)


def test_an_unknown_log_is_text(tmp_path: Path) -> None:
    """If no format fits, `guess` proposes plain text, and joins indented lines to the line before
    them."""
    found = guess(write(tmp_path, "odd.log", "alpha\n  beta\ngamma\n"), 100)
    assert found.block["multiline"] == {"type": "indented"}
    assert [each.row["line"] for each in found.preview.rows] == ["alpha\n  beta", "gamma"]
    foreign = guess(write(tmp_path, "koi8.log", "привет\n".encode("koi8-r")), 100)
    assert foreign.block["on_error"] == "replace"


def test_guess_says_what_it_cannot_read(tmp_path: Path) -> None:
    """If a file is missing, compressed or empty, `guess` refuses it with one sentence."""
    with pytest.raises(SkidwayError, match="cannot read"):
        guess(tmp_path / "nothing.log", 100)
    with pytest.raises(SkidwayError, match="is compressed"):
        guess(write(tmp_path, "a.log.gz", b"\x1f\x8b\x08rest"), 100)
    with pytest.raises(SkidwayError, match="is empty"):
        guess(write(tmp_path, "empty.log", ""), 100)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("format: nothing", "there is no 'nothing'"),
        ("format: access, parser: {type: json}, schema: a", "either a format or a parser"),
        ("timezone: Europe/Berlin", "timezone: it belongs to format"),
        ("parser: {type: regex, pattern: '(?P<a>.*)', types: {b: int}}", "'b' is no group"),
        ("parser: {type: regex, pattern: '(?P<a>.*)', types: {a: date}}", "'date' is none of"),
        ("parser: {type: json, types: {a: int}}, schema: s", "belongs to a parser of type regex"),
        (
            "parser: {type: regex, pattern: '(?P<a>.*)', types: {a: int}}, schema: s",
            "the schema already says",
        ),
        ("fields: {line: x}", "two fields would have the name 'line'"),
    ],
)
def test_settings_that_cannot_work_are_refused(more: str, sentence: str, tmp_path: Path) -> None:
    """If a setting of a source cannot work, alone or together with another setting, the source is
    refused with one sentence."""
    text = CONFIG + f"sources: [{{topic: a, paths: [/a], {more}}}]"
    config = write(tmp_path, "agent.yml", text)
    with pytest.raises(ConfigurationRefused, match=sentence):
        check_settings(catalog.applied(settings.load(AgentSettings, config)))


def test_sources_come_from_the_files_of_a_directory_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sources.dir` names a directory with files in which further sources are configured. If one of
    these files has a mistake, the error names the file, and the other files count."""
    log = write(tmp_path, "access.log", catalog.formats()["access"].sample)
    folder = tmp_path / "agent.d"
    folder.mkdir()
    write(folder, "20-web.yml", f"sources: [{{topic: web, paths: ['{log}'], format: access}}]")
    write(folder, "notes.txt", "no settings")
    config = write(tmp_path, "agent.yml", f"{CONFIG}sources: []\nsources.dir: {folder}\n")
    test = ["agent", "test", str(log), "--config", str(config)]
    assert main(test) == 0
    assert "3 rows, 0 rejected" in capsys.readouterr().out
    write(folder, "30-bad.yml", "sources: [{topic: web, path: x}]")
    assert main(test) == 0
    said = capsys.readouterr()
    assert "3 rows, 0 rejected" in said.out
    assert "30-bad.yml, line 1" in said.err
    for file in folder.glob("*.yml"):
        file.unlink()
    assert main(test) == 78
    assert f"there are no sources: no file *.yml is in {folder}" in capsys.readouterr().err
    assert main(["agent", "validate", "--config", str(config)]) == 0
    assert f"there are no sources: no file *.yml is in {folder}" in capsys.readouterr().out
    write(tmp_path, "agent.yml", f"{CONFIG}sources: []\nsources.dir: {tmp_path}/x\n")
    assert main(test) == 78
    assert "is no directory" in capsys.readouterr().err


def test_relative_paths_begin_at_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path in `schema` or `hash.key.location` begins at the directory of the file that
    contains the path, whatever the current directory is. An absolute path stays as it is, and so
    does the name of a subject in `schema`."""
    folder = tmp_path / "agent.d"
    folder.mkdir()
    far = tmp_path / "far"
    for each in (far, tmp_path / "elsewhere", tmp_path / "sub", folder / "sub"):
        each.mkdir()
    for each in (tmp_path, folder, far):
        write(each, "a.avsc", '"string"')
        write(each, "k", "0123456789abcdef")
    for each in (tmp_path, folder):
        write(each, "sub/b.avsc", '"string"')
    monkeypatch.chdir(tmp_path / "elsewhere")
    named = (
        ("a.avsc", "k"),
        ("sub/b.avsc", "sub/../k"),
        ("a-subject", f"{far}/k"),
        (f"{far}/a.avsc", "k"),
    )
    text = "sources:" + "".join(
        f"\n- {{topic: t, paths: [/a], schema: {schema}, shape: hash f, hash.key.location: {key}}}"
        for schema, key in named
    )
    write(folder, "b.yml", text)
    config = write(tmp_path, "agent.yml", f"{CONFIG}sources.dir: agent.d\n{text}\n")
    args = argparse.Namespace(config=config, set=[f"sources.dir={folder}"])
    loaded = configuration.load(args, "agent").sources
    for directory, sources in ((tmp_path, loaded[:4]), (folder, loaded[4:])):
        assert [each.schema for each in sources] == [
            f"{directory}/a.avsc", f"{directory}/sub/b.avsc", "a-subject", f"{far}/a.avsc",
        ]  # fmt: skip
        assert [each.hash_key_location for each in sources] == [
            directory / "k", directory / "sub/../k", far / "k", directory / "k",
        ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    args = argparse.Namespace(config=Path("agent.yml"), set=["sources=[{topic: t, paths: [/a]}]"])
    assert configuration.load(args, "agent").sources[1].schema == f"{folder}/a.avsc"


def test_a_format_takes_the_zone_and_the_joining_of_its_source() -> None:
    """If a source with a format sets `timezone`, local times are read in this time zone. If it sets
    `multiline`, its lines are joined by the rule in this setting, and not by the rule of the
    format."""
    sample = catalog.formats()["nginx_error"].sample.encode()
    made = preview(source("nginx_error", timezone="Europe/Berlin"), sample, "/a", now_ms=NOW_MS)
    assert made.rows[0].time is not None
    assert made.rows[0].time.isoformat() == "2026-11-21T07:15:01+00:00"
    for rule, count in ((None, 2), (MultilineSettings(type="start", pattern="connect"), 1)):
        made = preview(source("nginx_error", multiline=rule), sample, "/a", now_ms=NOW_MS)
        assert len(made.rows) == count


def test_fields_of_the_settings_are_in_each_row() -> None:
    """Each row has the fields of the setting `fields`. If a group of the format's pattern has a
    type, the group's column has this type, and a missing value becomes null."""
    sample = catalog.formats()["access"].sample.encode()
    rows = [
        each.row for each in preview(source("access", fields={"env": "prod"}), sample, "/").rows
    ]
    assert {row["env"] for row in rows} == {"prod"}
    assert [row["bytes"] for row in rows] == [5316, None, 157]


def test_results_are_the_same_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a line has no usable time of its own, its record gets the time at which the line is read.
    `agent test` shows no time for such a record, so that its output is the same each time. The
    command says how many such records there are, and whether it has read only a part of the file.
    """
    log = write(tmp_path, "a.log", "yesterday\n2099-01-01T00:00:00Z\n" + ("x" * 999 + "\n") * 1_200)
    config = write(
        tmp_path,
        "agent.yml",
        CONFIG + f"sources: [{{topic: a, paths: ['{log}'],"
        " parser: {type: regex, pattern: '(?P<time>.*)'},"
        " timestamp: {fields: [time], format: rfc3339, on_error: read_time}}]",
    )
    assert main(["agent", "test", str(log), "--config", str(config), "--json"]) == 0
    said = capsys.readouterr()
    first, second = (json.loads(line) for line in said.out.splitlines()[:2])
    assert (first["time"], first["row"]["timestamp"]) == (None, None)
    assert (second["time"], second["row"]["timestamp_replaced"]) == (None, False)
    assert "1 record has the time of reading, because the written time is more than" in said.err
    assert "Only the first MiB of the file was tried." in said.err


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`agent formats` lists the formats, `agent guess` proposes settings for a source, and `agent
    test` shows rows and compares them with expected results."""
    log = write(tmp_path, "access.log", catalog.formats()["access"].sample)
    assert main(["agent", "formats"]) == 0
    assert "nginx and Apache access logs" in capsys.readouterr().out
    assert main(["agent", "formats", "access"]) == 0
    assert "pattern:" in capsys.readouterr().out
    assert main(["agent", "guess", str(log)]) == 0
    assert "format: access" in capsys.readouterr().out
    assert main(["agent", "guess", "--schema", str(log)]) == 0
    assert "user_agent" in capsys.readouterr().out
    config = write(
        tmp_path, "agent.yml", CONFIG + f"sources: [{{topic: a, paths: ['{log}'], format: access}}]"
    )
    test = ["agent", "test", str(log), "--config", str(config)]
    assert main(test) == 0
    assert "3 rows, 0 rejected" in capsys.readouterr().out
    assert main([*test, "--json"]) == 0
    expected = write(tmp_path, "expected.json", capsys.readouterr().out)
    assert main([*test, "--expect", str(expected)]) == 0
    write(tmp_path, "access.log", catalog.formats()["access"].sample + "odd\n")
    assert main([*test, "--expect", str(expected)]) == 1
    assert "there are 4 results, expected were 3" in capsys.readouterr().err


def test_the_table_of_test_has_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`agent test` shows 20 results, or as many as `--limit` says, and says how many more there
    are. `--json` prints all results. The command does not show an empty `_extra`. It warns if a
    field has the name of a column that the loader adds."""
    lines = [*(f"n={number} _host=x" for number in range(30)), "?"]
    log = write(tmp_path, "a.log", "".join(f"{line}\n" for line in lines))
    parser = "{type: logfmt, columns: [n, _host]}"
    block = f"sources: [{{topic: t, paths: ['{log}'], parser: {parser}}}]\n"
    config = write(tmp_path, "agent.yml", CONFIG + block)
    test = ["agent", "test", str(log), "--config", str(config)]
    for more, count, rest in (([], 20, "11 more"), (["--limit", "2"], 2, "29 more")):
        assert main([*test, *more]) == 0
        out = capsys.readouterr().out
        assert out.count("    n: ") == count
        assert f"{rest} (--limit 31 shows all)\n30 rows, 1 rejected" in out
        assert "_extra" not in out
        assert "the field _host has the name of one of the loader's own columns" in out
    assert main([*test, "--limit", "31"]) == 0
    assert "more" not in capsys.readouterr().out
    assert main([*test, "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 31
