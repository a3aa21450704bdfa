"""The reloader decides when the agent reads its settings again. If the files of the settings differ
from the running settings, /health says so."""

from __future__ import annotations

import argparse
import signal
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from skidway.agent import good_files
from skidway.agent.cluster.destinations import Cluster
from skidway.agent.configuration import Configuration
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.program import asked_by_signal
from skidway.agent.reloading.preparation import Preparation, Prepared, Refusal, check, prepare
from skidway.agent.reloading.reloader import Reloader
from skidway.agent.reloading.requests import Answer, Asking
from skidway.agent.reloading.standing import LOOK_EVERY_S
from skidway.errors import ConfigurationRefused
from support.agent_world import World, raw, settings
from support.clock import ManualClock


class Site:
    """A configuration in a directory, and a reloader of an agent that runs with this
    configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, ManualClock()
        self.file = folder / "agent.yml"
        self.document: dict[str, Any] = {
            "bootstrap.servers": "nowhere:1",
            "schema.registry.url": "http://nowhere:1",
            "state.dir": str(folder / "state"),
            "sources.dir": str(folder / "agent.d"),
            "sources": [{"topic": "logs", "paths": ["/log/*"], "schema": str(folder / "a.avsc")}],
        }
        (folder / "agent.d").mkdir()
        (folder / "a.avsc").write_text('"string"')
        self.write()
        options = argparse.Namespace(config=self.file, set=[])
        self.configuration = Configuration(options, "agent")
        self.reloader = Reloader(self.configuration, self.configuration.read(), self.clock)
        self.reloader.open()
        self.look()

    def write(self, **changed: Any) -> None:
        self.document |= {key.replace("_", "."): value for key, value in changed.items()}
        self.file.write_text(yaml.safe_dump(self.document))

    def look(self) -> dict[str, Any]:
        self.clock.advance(LOOK_EVERY_S)
        self.reloader.look(self.clock.monotonic())
        found: dict[str, Any] = self.reloader.detail.get("configuration", {})
        return found

    def prepared(self) -> Prepared:
        return Prepared(self.configuration.read(), [], {})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def done(preparation: Preparation) -> Prepared | Refusal | None:
    preparation.wait(60)
    return preparation.result()


def test_health_says_since_when_the_files_differ(site: Site) -> None:
    """The files differ from the running settings if the settings file has changed, if `sources.dir`
    has a new file, or if a schema file has changed. /health gives the time of the check that
    noticed the difference. If the files have their old content again, /health no longer mentions
    them."""
    assert site.look() == {}
    site.write(linger_ms=7)
    first = site.look()
    assert list(first) == ["differs_since"]
    site.clock.advance(60)
    assert site.look() == first
    site.write(linger_ms=10)
    assert site.look() == {}
    more = site.folder / "agent.d" / "more.yml"
    more.write_text("sources: [{topic: more, paths: [/more]}]")
    assert site.look()
    more.unlink()
    assert site.look() == {}
    (site.folder / "a.avsc").write_text('"bytes"')
    assert site.look()


def test_health_says_why_a_file_cannot_be_read(site: Site) -> None:
    """If a settings file is not valid, /health gives the reason, even before anybody asks for a
    reload."""
    site.write(linger_ms="soon")
    assert "linger.ms" in site.look()["refused"]


def test_health_names_a_refused_file_without_its_content(site: Site) -> None:
    """If a file of `sources.dir` cannot be used, /health names it, and has nothing of what is in
    it. The file stays named until settings are taken again."""
    more = site.folder / "agent.d" / "more.yml"
    more.write_text("secret: 1")
    found = site.look()
    assert found["refused_files"] == {str(more): "its sources are not read"}
    assert "secret" not in str(found)
    site.write(**{"sources.dir.rules": [{"files": ["x"], "paths": ["/x"], "topics": ["x"]}]})
    site.reloader.took(site.prepared(), [])
    assert site.look()["refused_files"] == found["refused_files"]
    more.unlink()
    assert site.look()
    site.reloader.took(site.prepared(), [])
    assert site.look() == {}


def test_health_has_no_content_of_files_that_are_refused_for_good(site: Site) -> None:
    """If a file and its last good version are refused, a reload is refused with all that is known.
    /health has only the name of the file."""
    more = site.folder / "agent.d" / "more.yml"
    more.write_text("sources: [{topic: more, paths: [/secret]}]")
    good_files.keep(site.configuration.read())
    site.write(sources_dir_rules=[{"files": ["*"], "paths": ["/x"], "topics": ["*"]}])
    work = partial(
        prepare, site.configuration, site.reloader.settings, Cluster("", ""), frozenset()
    )
    refusal = done(Preparation(work))
    assert isinstance(refusal, Refusal)
    assert refusal.status == 78
    assert "/secret" in refusal.reason
    for found in (site.look(), site.look()):
        assert str(more) in found["refused"]
        assert "/secret" not in str(found)
        site.reloader.refuse(refusal)


def test_a_refused_reload_changes_nothing(site: Site) -> None:
    """If a reload is refused, the running settings stay the same. The command `skidway agent
    reload` gets the reason, and the exit status with which it must end. /health shows the reason
    until the files change."""
    before = site.reloader.settings
    site.write(linger_ms=7)
    with Asking(before.state_dir) as asking:
        site.look()
        assert site.reloader.is_due
        site.reloader.begin(site.prepared)
        assert not site.reloader.is_due
        site.reloader.refuse(Refusal("cluster.name: restart it", 78))
        assert asking.answer() == Answer(78, ["cluster.name: restart it"])
    assert site.look()["refused"] == "cluster.name: restart it"
    assert site.reloader.settings is before
    site.write(linger_ms=10)
    assert site.look() == {}


@pytest.mark.parametrize("pattern", ["/x/", "/", "/x/[a", "/x/{a", "x/*.log", "/x/**.log"])
@pytest.mark.parametrize("setting", ["paths", "exclude"])
def test_what_a_start_refuses_a_reload_refuses(site: Site, setting: str, pattern: str) -> None:
    """A pattern that means no file is refused by a reload, and by a start, with the same sentence,
    which names the pattern."""
    source = {"topic": "more", "paths": ["/more"], setting: [pattern]}
    site.write(sources=[source])
    with pytest.raises(ConfigurationRefused) as refused:
        site.configuration.read()
    assert f"{setting}: {pattern!r} " in str(refused.value)
    running, cluster = site.reloader.settings, Cluster("dc1", "id")
    found = done(Preparation(partial(prepare, site.configuration, running, cluster, frozenset())))
    assert found == Refusal(str(refused.value), 78)


def test_a_refusal_of_unchanged_files_leaves_no_alarm(site: Site) -> None:
    """If a reload is refused, but the files agree with the running settings, /health does not
    mention the files. A reload may be refused in this case because the registry does not answer, or
    because a file had a mistake that was corrected meanwhile."""
    site.reloader.ask()
    site.reloader.refuse(Refusal("the registry does not answer", 3))
    assert site.look() == {}
    site.write(linger_ms="soon")
    site.reloader.ask()
    site.write(linger_ms=10)
    site.reloader.refuse(Refusal("linger.ms: 'soon' is no number", 78))
    assert site.look() == {}


def test_a_request_during_a_preparation_gets_another(site: Site) -> None:
    """If a request for a reload comes while another reload is being prepared, the files may have
    changed since the preparation read them. So the agent answers the request only after another
    preparation, which begins after the request."""
    go_on = threading.Event()

    def work() -> Prepared:
        go_on.wait(60)
        return site.prepared()

    site.reloader.ask()
    assert site.reloader.is_due
    site.reloader.begin(work)
    with Asking(site.reloader.settings.state_dir) as asking:
        site.look()
        assert site.reloader.result() is None
        assert not site.reloader.is_due
        go_on.set()
        result = None
        while result is None:
            result = site.reloader.result()
        assert isinstance(result, Prepared)
        site.reloader.took(result, [])
        assert asking.answer() is None
        assert site.reloader.is_due
        site.reloader.begin(site.prepared)
        site.write(linger_ms=7)
        site.reloader.took(site.prepared(), [])
        assert asking.answer() == Answer(0, ["linger.ms changed"])
    assert site.reloader.settings.linger_ms == 7


def test_an_agent_that_ends_answers(site: Site) -> None:
    """If the agent ends, or cannot reload because it still waits for its cluster, it refuses all
    waiting requests."""
    state_dir = site.reloader.settings.state_dir
    with Asking(state_dir) as asking:
        site.reloader.refuse_all("it waits")
        assert asking.answer() == Answer(1, ["it waits"])
    with Asking(state_dir) as asking:
        site.reloader.close()
        assert asking.answer() == Answer(1, ["the agent is ending"])


def test_errors_of_a_preparation_are_refusals() -> None:
    """If the preparation of a reload fails, because the configuration is refused or because of a
    bug in the agent, the reload is refused. The agent does not end."""

    def refused() -> Prepared:
        raise ConfigurationRefused("linger.ms: no")

    def mistaken() -> Prepared:
        raise KeyError("x")

    assert done(Preparation(refused)) == Refusal("linger.ms: no", 78)
    found = done(Preparation(mistaken))
    assert isinstance(found, Refusal)
    assert found.status == 70


def test_settings_that_need_a_restart_are_named(site: Site) -> None:
    """If changed settings need a restart, the refusal names each of their keys and says that the
    agent must be restarted."""
    running = site.reloader.settings
    site.document["sources"] = [{"topic": "logs", "paths": ["/log/*"]}]
    site.write(cluster_name="b", host_name="c")
    with pytest.raises(ConfigurationRefused, match=r"^cluster.name, host.name: .* restart it$"):
        check(running, site.configuration.read())


def test_a_hangup_that_comes_early_is_a_request(site: Site) -> None:
    """A SIGHUP that comes before the agent is able to reload does not end the agent. The agent
    reloads as soon as it is able to."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        assert not site.reloader.is_due
        with asked_by_signal(site.reloader):
            assert site.reloader.is_due
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # drops a pending signal
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        signal.signal(signal.SIGHUP, before)


def test_a_reload_names_fields_that_the_loader_refuses(site: Site) -> None:
    """If a field has the name of one of the loader's columns, the answer to a reload says so, once
    for each source, although the agent itself accepts such settings."""
    parser = ParserSettings(type="regex", pattern="(?P<_host>.*)")
    world = World(settings(raw(parser=parser)))
    prepared = replace(site.prepared(), destinations=world.destinations() * 2)
    words = "the field _host has the name of one of the loader's own columns; rename it"
    with Asking(site.folder / "state") as asking:
        site.look()
        site.reloader.begin(lambda: prepared)
        site.reloader.took(prepared, [])
        assert asking.answer() == Answer(
            0,
            ["nothing changed", f"source of topic logs: the loader will refuse the topic: {words}"],
        )
