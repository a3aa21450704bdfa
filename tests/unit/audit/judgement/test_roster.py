"""Tests the roster, the list of the hosts that must report. The audit refuses a roster file with
mistakes, adds the hosts of the settings to those of the file, and reads the file again when it
changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway import settings
from skidway.audit.collector.roster_file import LOOK_EVERY_S, RosterFile
from skidway.audit.judgement.roster import Roster, RosterEntry, read_file
from skidway.audit.settings import AuditSettings
from skidway.errors import ConfigurationRefused
from support.clock import ManualClock
from support.promises import promise

GOOD = """\
hosts:
  - {host: app1, cluster: dc1, topics: [nginx, auth]}
  - {host: app1, cluster: dc2, topics: [nginx]}
  - host: app7
    cluster: dc1
    retired: true
"""


def written(folder: Path, text: str = GOOD) -> Path:
    """Writes `text` to the roster file in the directory `folder`, as a configuration tool does: the
    old file is replaced by a new file with the same name. Returns the file's path."""
    path, fresh = folder / "roster.yml", folder / "roster.new"
    fresh.write_text(text)
    os.replace(fresh, path)
    return path


def test_a_file_names_hosts_by_cluster_and_topic(tmp_path: Path) -> None:
    """The roster file may list a host in several clusters, with different topics in each
    cluster."""
    roster = Roster(read_file(written(tmp_path)))
    assert roster.hosts("dc1", "nginx") == {"app1"}
    assert roster.hosts("dc1", "auth") == {"app1"}
    assert roster.hosts("dc2", "auth") == frozenset()
    assert roster.clusters("app1") == {"dc1", "dc2"}
    assert roster.topics("dc1", "app1") == {"nginx", "auth"}


def test_a_retired_host_is_retired_in_its_cluster_alone(tmp_path: Path) -> None:
    """If the roster file names a host as retired in one cluster, the host is retired only there. A
    host of the same name in another cluster is another host."""
    roster = Roster([*read_file(written(tmp_path)), RosterEntry("app7", "dc2")])
    assert roster.is_retired("dc1", "app7")
    assert not roster.is_retired("dc2", "app7")
    assert not roster.waits_for("dc1", "app7")
    assert roster.waits_for("dc2", "app7")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts:\n  - {host: a, cluster: dc1, topic: [x]}", "line 2: unknown key 'hosts[0].topic'"),
        ("host: []", "line 1: unknown key 'host'"),
        ("", "the key 'hosts' is missing"),
        ("hosts:\n  - {host: a}", "line 2: the key 'hosts[0].cluster' is missing"),
        (
            "hosts:\n  - {host: a, cluster: d}\n  - {host: a, cluster: d}",
            "host a of cluster d is named twice",
        ),
        ("hosts:\n  - {host: a b, cluster: d}", "line 2: 'a b' is no host's name"),
        ("hosts:\n  - {host: '', cluster: d}", "line 2: '' is no host's name"),
        ("hosts:\n  - {host: a, cluster: d.e}", "line 2: cluster.name: 'd.e' must be"),
        ("hosts:\n  - {host: a, cluster: d, topics: ['ng.*']}", "line 2: host a: 'ng.*' is no"),
        ("hosts:\n  - {host: a, cluster: d, retired: soon}", "line 2: hosts[0].retired must be"),
        ("hosts: [", "line 1"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    """A roster file with a mistake is refused with one sentence. The sentence names the file. It
    also names the line or the host, except if the key `hosts` is missing."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationRefused) as refused:
        read_file(path)
    assert words in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_settings_and_file_add_up(tmp_path: Path) -> None:
    """The hosts that the settings list are expected in every cluster, in addition to the hosts of
    the roster file. A host that the settings name as retired is retired in every cluster, and a
    host that the file names as retired only in its cluster."""
    loaded = settings.load(
        AuditSettings,
        None,
        ["bootstrap.servers=a:1", f"roster.file={written(tmp_path)}", "roster.nginx=extra,app9",
         "retired=app9"],
    )  # fmt: skip
    assert loaded.roster_file is not None
    roster = loaded.policy(read_file(loaded.roster_file)).roster
    assert roster.hosts("dc1", "nginx") == {"app1", "extra"}
    assert roster.hosts("dc3", "nginx") == {"extra"}
    assert roster.is_retired("dc2", "app9")
    assert roster.is_retired("dc1", "app7")
    assert not roster.is_retired("dc2", "app7")


def test_the_files_key_may_be_nested_beside_topics(tmp_path: Path) -> None:
    """In the setting `roster: {file: ..., nginx: ...}`, the key `file` names the roster file, and
    every other key (here `nginx`) is a topic with its hosts."""
    config = tmp_path / "audit.yml"
    config.write_text("bootstrap.servers: a:1\nroster:\n  file: /r.yml\n  nginx: app1\n")
    loaded = settings.load(AuditSettings, config)
    assert loaded.roster_file == Path("/r.yml")
    assert loaded.roster == {"nginx": "app1"}


@promise("6 expected hosts")
@pytest.mark.parametrize("entries", [(), (RosterEntry("app7", "dc1", retired=True),)])
def test_a_roster_without_a_host_that_must_report_says_nothing(
    entries: tuple[RosterEntry, ...],
) -> None:
    """If the roster has no host that must report, the audit expects every agent that ever sent a
    message, except agents of retired hosts. So a file that was emptied by mistake makes no verdict
    better."""
    roster = Roster(entries)
    assert roster.is_silent
    assert roster.expects("dc1", "nginx", "anybody")
    assert roster.expects("dc1", "nginx", "app7") == (not entries)


def test_without_topics_a_host_is_expected_wherever_it_speaks() -> None:
    """If the roster lists no topics for a host, the audit expects the host's counts and seals in
    each topic to which the host's agent sends."""
    roster = Roster([RosterEntry("a", "dc1"), RosterEntry("b", "dc1", frozenset({"nginx"}))])
    assert roster.expects("dc1", "auth", "a")
    assert not roster.expects("dc1", "auth", "b")
    assert not roster.expects("dc2", "auth", "a")
    assert roster.hosts("dc1", "auth") == frozenset()


def test_a_changed_file_is_taken_and_a_bad_one_is_not(tmp_path: Path) -> None:
    """When the roster file changes, the audit uses the new content. While the file has a mistake,
    the audit reports it and continues with the last good content."""
    clock = ManualClock()
    file = RosterFile(written(tmp_path), clock)
    assert len(file.entries) == 3
    written(tmp_path, GOOD.replace("app7", "app8"))
    assert not file.look(), "not asked of the file system again and again"
    clock.advance(LOOK_EVERY_S)
    assert file.look()
    assert {x.host for x in file.entries} == {"app1", "app8"}
    written(tmp_path, "hosts: 1")
    for _ in range(3):
        clock.advance(LOOK_EVERY_S)
        assert not file.look()
        assert "hosts must be a list" in (file.problem or "")
    assert {x.host for x in file.entries} == {"app1", "app8"}
    (tmp_path / "roster.yml").unlink()
    clock.advance(LOOK_EVERY_S)
    assert not file.look()
    assert "cannot read" in (file.problem or "")
    written(tmp_path)
    clock.advance(LOOK_EVERY_S)
    assert file.look()
    assert file.problem is None


def test_no_program_starts_with_a_bad_file(tmp_path: Path) -> None:
    """No program starts if it cannot read its roster file, or if the file has a mistake. A running
    program continues with the last good content, but a program that starts has none."""
    with pytest.raises(ConfigurationRefused, match="cannot read"):
        RosterFile(tmp_path / "none.yml", ManualClock())
    with pytest.raises(ConfigurationRefused, match="hosts must be a list"):
        RosterFile(written(tmp_path, "hosts: 1"), ManualClock())
