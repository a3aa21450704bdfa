"""Which files of `sources.dir` count, if some of them cannot be used."""

from __future__ import annotations

import argparse
import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from skidway.agent import good_files, sources_dir
from skidway.agent.configuration import Configuration, SourcesRefused
from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.agent.validation.checks import check_settings, checked
from skidway.cli import main
from skidway.errors import ConfigurationRefused, SkidwayError, StateRefused


class Site:
    """A configuration with a directory of sources, and the state of an agent."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder / "agent.d", folder / "state"
        self.folder.mkdir()
        self.config = folder / "agent.yml"
        self.configure()
        self.configuration = Configuration(argparse.Namespace(config=self.config, set=[]), "agent")

    def configure(self, **others: object) -> None:
        document = {
            "bootstrap.servers": "nowhere:1", "schema.registry.url": "http://nowhere:1",
            "state.dir": str(self.state), "sources": [], "sources.dir": str(self.folder),
        }  # fmt: skip
        self.config.write_text(yaml.safe_dump({**document, **others}))

    def write(self, name: str, *, topic: str | None = None, **others: object) -> Path:
        file = self.folder / f"{name}.yml"
        source = {"topic": topic or name, "paths": [f"/log/{name}"], **others}
        file.write_text(yaml.safe_dump({"sources": [source]}))
        return file

    def read(self) -> AgentSettings:
        return self.configuration.taken(checked)

    def take(self) -> AgentSettings:
        """Reads the settings as a running agent does, which notes the good versions."""
        found = self.read()
        good_files.keep(found)
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def paths(settings: AgentSettings) -> list[str]:
    return [path for source in settings.sources for path in source.paths]


def refused(settings: AgentSettings) -> dict[str, bool]:
    return {Path(each.path).stem: each.is_replaced for each in settings.refused}


@pytest.mark.parametrize("error", [RecursionError, MemoryError, KeyError, UnicodeEncodeError])
def test_no_error_of_a_file_reaches_the_others(
    site: Site, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """If an error that nobody expected comes up while one file is loaded or checked, only this file
    is refused, and the log has the error as a bug."""
    logged: list[str] = []

    def fail(source: SourceSettings) -> SourceSettings:
        if source.topic == "shop":
            raise error("utf-8", "x", 0, 1, "?") if error is UnicodeEncodeError else error()
        return source

    site.write("cart")
    site.write("shop")
    monkeypatch.setattr(catalog, "of_source", fail)
    log = SimpleNamespace(error=lambda name, **_: logged.append(name))
    monkeypatch.setattr("skidway.agent.configuration._log", log)
    found = site.read()
    assert (paths(found), refused(found)) == (["/log/cart"], {"shop": False})
    assert found.refused[0].reason == f"unexpected: {error.__name__}"
    assert logged == ["unexpected_failure"]


def test_the_last_good_version_is_whole(site: Site) -> None:
    """The last good version of a file does not need the schema and the key that it names: they
    count as they were. It is the newest version that could be used."""
    schema, key = site.folder / "s.avsc", site.folder / "k"
    schema.write_text('{"type": "record", "name": "s", "fields": [{"name": "a", "type": "int"}]}')
    key.write_text("0123456789abcdef")
    site.write("shop", parser={"type": "json"}, schema="s.avsc")
    site.write("cart", shape="hash line", **{"hash.key.location": "k"})
    first = site.take()
    schema.unlink()
    key.unlink()
    found = site.read()
    assert found.sources == first.sources
    assert refused(found) == {"cart": True, "shop": True}
    site.take()  # what is refused is no good version
    file = site.write("shop", exclude=["/log/x"])
    assert site.take().sources[1].exclude == ["/log/x"]
    file.write_text("sources: [")
    assert site.read().sources[1].exclude == ["/log/x"]


def test_good_versions_are_private_and_end_with_their_files(site: Site) -> None:
    """Only the agent's user may read the good versions, which may have keys. If a file is removed,
    its good version goes, too; a broken file keeps it."""
    site.write("shop")
    broken = site.write("cart")
    site.take()
    kept = sorted((site.state / good_files.FOLDER).iterdir())
    assert [stat.S_IMODE(each.stat().st_mode) for each in kept] == [0o600, 0o600]
    times = [each.stat().st_ino for each in kept]
    site.take()
    assert [each.stat().st_ino for each in kept] == times  # nothing was written again
    broken.write_text("sources: [")
    (site.folder / "shop.yml").unlink()
    assert paths(site.take()) == ["/log/cart"]
    (left,) = (site.state / good_files.FOLDER).iterdir()
    assert json.loads(left.read_text())["path"] == str(broken)


def test_without_good_versions_nothing_is_taken(site: Site) -> None:
    """If the good versions cannot be written, for example because the disk is full, the settings
    are not taken: a broken file could then take sources away."""
    site.write("shop")
    site.state.mkdir()
    (site.state / good_files.FOLDER).touch()
    with pytest.raises(SkidwayError, match="cannot use the directory"):
        site.take()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"path": 1}', b"\xff", b'{"named": []}'])
def test_a_damaged_good_version_is_named(site: Site, damage: bytes) -> None:
    """If a good version is needed and damaged, the agent does not go on without the sources. It
    says what to mend."""
    file = site.write("shop")
    site.take()
    (kept,) = (site.state / good_files.FOLDER).iterdir()
    kept.write_bytes(damage)
    assert paths(site.read()) == ["/log/shop"]  # it is not needed
    file.write_text("sources: [")
    with pytest.raises(StateRefused, match=f"{kept} is damaged; mend {file}"):
        site.read()


def test_what_an_operator_forbids_is_no_good_version(site: Site) -> None:
    """If new rules allow neither a file nor its last good version, all is refused: an operator
    decides whether the sources go."""
    site.write("shop")
    site.take()
    rule = {"files": ["*"], "paths": ["/srv/**"], "topics": ["*"]}
    site.configure(**{"sources.dir.rules": [rule]})
    with pytest.raises(ConfigurationRefused, match=r"but that is refused, too: .*paths /log"):
        site.read()
    (site.folder / "shop.yml").unlink()
    assert paths(site.read()) == []


def test_two_files_that_contradict_each_other_are_both_named(site: Site) -> None:
    """If two files may not have `replay` together, both are refused, so neither can keep the other
    one's sources away."""
    site.write("cart", topic="shop", replay=True)
    site.take()
    site.write("shop", replay=True)
    found = site.read()
    assert refused(found) == {"cart": True, "shop": False}
    assert paths(found)[0] == "/log/cart"


def test_what_a_check_refuses_is_refused_alone(site: Site) -> None:
    """A source that only a check refuses takes no others with it: those of its file count as they
    were, and those of other files as they are."""
    site.write("cart")
    site.write("shop")
    site.take()
    site.write("cart", exclude=["/log/x"])
    bad = site.write("shop", parser={"type": "regex", "pattern": "("})
    with pytest.raises(SourcesRefused) as error:
        check_settings(site.configuration.read())
    assert list(error.value.files) == [str(bad)]
    found = site.read()
    assert refused(found) == {"shop": True}
    assert found.sources[0].exclude == ["/log/x"]


def test_a_file_of_the_own_configuration_is_all_or_nothing(site: Site) -> None:
    """A mistake in a source of agent.yml itself refuses the whole configuration."""
    site.write("shop")
    source = {"topic": "a", "paths": ["/a"], "parser": {"type": "regex", "pattern": "("}}
    site.configure(sources=[source])
    with pytest.raises(ConfigurationRefused, match=r"source of topic a: parser\.pattern"):
        site.read()
    site.configure(sources=[{"topic": "a", "paths": ["/a"], "schema": "gone.avsc"}])
    with pytest.raises(
        ConfigurationRefused, match=r"source of topic a: schema: cannot read .*gone"
    ):
        site.read()


def test_no_name_forges_a_line(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a team writes where a sentence names it, the sentence is one line."""
    rule = {"files": ["*"], "paths": ["/srv/**"], "topics": ["*"]}
    site.configure(**{"sources.dir.rules": [rule]})
    forged = "\nskidway: fine"
    site.write("path", exclude=[f"/log/{forged}"])
    site.write("column", parser={"type": "csv", "columns": [f"a{forged}"]})
    site.write("type", parser={"type": "regex", "pattern": "(?P<a>.)", "types": {f"a{forged}": 1}})
    site.write("schema", schema=f"/srv/{forged}.avsc")
    site.write("format", format=f"x{forged}")
    (site.folder / "key.yml").write_text('sources: [{"a\\nskidway: fine": 1}]')
    (site.folder / "paths.yml").write_text(
        'sources: [{topic: a, paths: ["/log/\\nskidway: fine"]}]'
    )
    site.write("name\nskidway agent: fine", format="x")
    assert main(["agent", "validate", "--config", str(site.config)]) == 78
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 8
    assert all(line.startswith("skidway agent: /") for line in said.splitlines())


def test_a_directory_that_is_gone_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `sources.dir` itself is gone or cannot be listed, the configuration is refused: nobody
    took the files away."""
    site.write("shop")
    site.take()
    os.rename(site.folder, site.folder.parent / "other")
    with pytest.raises(ConfigurationRefused, match="is no directory"):
        site.read()
    os.rename(site.folder.parent / "other", site.folder)
    assert paths(site.read()) == ["/log/shop"]

    def refuse(_path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sources_dir.os, "listdir", refuse)
    with pytest.raises(ConfigurationRefused, match=r"cannot list .*: Permission denied"):
        site.read()
