"""Which files a pattern may lead to, by links and otherwise."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skidway.agent.files import access
from skidway.agent.files.access import Access, Rule, access_of
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import patterns_of
from skidway.ways import End, Link, Passed

AGENT, WRITER, OTHER = 63_001, 63_002, 63_003
FILE, LINK = "/log/a.log", "/log/link"


def end(
    real_path: str,
    links: tuple[Link, ...],
    owner: int,
    names: int = 1,
    directory_owner: int = 0,
    *,
    mode: int = 0o644,
    groups: tuple[int, int] = (0, 0),
    directory_mode: int = 0o755,
) -> End:
    """groups: of the file, and of its directory."""
    status = _status(stat.S_IFREG | mode, owner, groups[0], names)
    directory = _status(stat.S_IFDIR | directory_mode, directory_owner, groups[1])
    above = Passed("/", _status(stat.S_IFDIR | 0o755, 0, 0))
    return End(real_path, status, links, (above, Passed(os.path.dirname(real_path), directory)))


def _status(mode: int, owner: int, group: int, names: int = 1) -> os.stat_result:
    return os.stat_result((mode, 1, 1, names, owner, group, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("rule", "owners", "owner", "is_followed"),
    [
        ("owner", [], OTHER, True),
        ("owner", [0], OTHER, True),
        ("owner", [AGENT], OTHER, True),
        ("owner", [WRITER], WRITER, True),
        ("owner", [WRITER], 0, False),
        ("owner", [WRITER], AGENT, False),
        ("owner", [WRITER], OTHER, False),
        ("owner", [0, WRITER, 0], OTHER, False),
        ("owner", [WRITER, OTHER], OTHER, False),
        ("all", [WRITER], 0, True),
        ("none", [0], 0, False),
        ("none", [], 0, True),
    ],
)
def test_whose_links_count(rule: Rule, owners: list[int], owner: int, is_followed: bool) -> None:
    """Each link on the way must belong to root, to the agent's user or to the owner of the file. If
    one does not, the agent names it."""
    links = tuple(Link(f"{LINK}{number}", user) for number, user in enumerate(owners))
    refused = Access(rule, user=AGENT).refusal(FILE, end(FILE, links, owner))
    assert (refused is None) == is_followed
    if refused is not None:
        assert refused[0].startswith(LINK)


@pytest.mark.parametrize(
    ("real_path", "is_followed"),
    [
        ("/proc/1/environ", False),
        ("/sys/kernel/notes", False),
        ("/dev/shm/x", False),
        ("/etc/skidway/agent.yml", False),
        ("/etc/skidway2/x.log", True),
        ("/run/secrets/token", False),
        ("/run/credentials/agent/key", False),
        ("/var/lib/state/agent.db", False),
        ("/var/lib/state/replay/logs/1.replay", True),
        ("/var/lib/state2/x.log", True),
        ("/var/log/proc/x.log", True),
    ],
)
@pytest.mark.parametrize("rule", ["owner", "all", "none"])
def test_where_no_logs_are(
    monkeypatch: pytest.MonkeyPatch, real_path: str, is_followed: bool, rule: Rule
) -> None:
    """Below the directories of the system, of secrets and of the agent itself, the agent reads
    nothing but the lines that were repaired for it, with and without links."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/agent")
    refused = access_of(rule, Path("/var/lib/state")).refusal(FILE, end(real_path, (), 0))
    assert (refused is None) == is_followed


@pytest.mark.parametrize(
    ("names", "owner", "directory_owner", "is_read"),
    [(1, 0, WRITER, True), (2, 0, WRITER, False), (9, OTHER, WRITER, False), (2, WRITER, 0, False),
     (2, WRITER, WRITER, True), (2, 0, 0, True)],
)  # fmt: skip
@pytest.mark.parametrize("rule", ["owner", "all", "none"])
def test_a_file_with_several_names(
    names: int, owner: int, directory_owner: int, is_read: bool, rule: Rule
) -> None:
    """If the agent may read every file, it reads one with several names only if it belongs to the
    owner of its directory. An agent that reads only what its user may needs no such rule."""
    found = end(FILE, (), owner, names, directory_owner)
    refused = Access(rule, user=AGENT, reads_all=True).refusal(FILE, found)
    assert (refused is None) == is_read
    assert refused is None or f"{names} names" in refused[1]
    assert Access(rule, user=AGENT, reads_all=False).refusal(FILE, found) is None


ADM, SYSLOG, POSTGRES = 4, 110, 120
REAL_LOGS = [  # owner, mode, directory's owner, groups of file and directory, directory's mode
    (0, 0o600, 0, (0, 0), 0o755),  # /var/log/secure
    (0, 0o600, 0, (0, 0), 0o700),  # /var/log/audit/audit.log
    (SYSLOG, 0o640, 0, (ADM, SYSLOG), 0o775),  # /var/log/auth.log of Ubuntu
    (POSTGRES, 0o640, 0, (ADM, POSTGRES), 0o1775),  # /var/log/postgresql of Debian
    (POSTGRES, 0o600, POSTGRES, (POSTGRES, POSTGRES), 0o700),  # pg_log of Red Hat
    (0, 0o640, 0, (0, 0), 0o710),  # containers' logs of Docker
    (WRITER, 0o600, 0, (WRITER, 0), 0o755),  # a program's own log in /var/log
    (0, 0o640, WRITER, (ADM, ADM), 0o2750),  # made by root, for the group of the directory
    (0, 0o644, WRITER, (0, WRITER), 0o755),  # systemd's StandardOutput=append:
]
DOUBTFUL = [
    (0, 0o600, WRITER, (0, WRITER), 0o755),
    (0, 0o640, WRITER, (0, WRITER), 0o755),
    (0, 0o600, WRITER, (0, 0), 0o2755),
    (OTHER, 0o600, WRITER, (OTHER, WRITER), 0o700),
    (0, 0o600, 0, (0, 0), 0o1777),
    (OTHER, 0o640, 0, (OTHER, 0), 0o1777),
    (0, 0o000, WRITER, (0, WRITER), 0o755),
    (0, 0o600, 0, (0, WRITER), 0o775),
    (OTHER, 0o640, 0, (OTHER, WRITER), 0o2770),
]


@pytest.mark.parametrize(
    ("case", "is_read"),
    [*((case, True) for case in REAL_LOGS), *((case, False) for case in DOUBTFUL)],
)
def test_a_file_that_was_moved_into_a_directory(
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[int, int, int, tuple[int, int], int],
    is_read: bool,
) -> None:
    """If the agent may read every file, it reads one that not everybody may read only if whoever
    may have put it into its directory may read it, too. Logs as systems have them are read."""
    monkeypatch.setattr(access, "_group_of", lambda user: user)
    owner, mode, directory_owner, groups, directory_mode = case
    found = end(
        FILE, (), owner, 1, directory_owner, mode=mode, groups=groups, directory_mode=directory_mode
    )
    refused = Access(user=AGENT, reads_all=True).refusal(FILE, found)
    assert (refused is None) == is_read
    assert refused is None or "not everybody may read" in refused[1]
    assert Access(user=AGENT, reads_all=False).refusal(FILE, found) is None


def test_the_directory_of_the_systems_logs_is_trusted() -> None:
    """What root keeps in /var/log is read, although Ubuntu's group syslog may write there; but not
    what is in a directory below it, into which a group may write."""
    case = (0o600, (0, SYSLOG), 0o775)
    for path, is_read in (("/var/log/boot.log", True), ("/var/log/shop/boot.log", False)):
        found = end(path, (), 0, mode=case[0], groups=case[1], directory_mode=case[2])
        assert (Access(user=AGENT, reads_all=True).refusal(path, found) is None) == is_read


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.parametrize("levels", [1, 2])
def test_a_private_directory_of_root_is_not_published(
    tmp_path: Path, mode: int, levels: int
) -> None:
    """Files in a directory that only root may search, and that a user renamed so that the pattern
    matches, are not read by an agent that may read every file. The user's own directories are."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, WRITER, WRITER)
    at = home / "private"
    at.mkdir(mode=0o700)
    for _ in range(levels - 1):
        at = at / "below"
        at.mkdir(mode=0o755)
    (at / "key.log").write_text("secret\n")
    (at / "key.log").chmod(mode)
    (home / "private").rename(home / "logs")
    host = OperatingSystem(Access(user=AGENT, reads_all=True))
    scan = host.scan(patterns_of([f"{tmp_path}/*/logs/**"]))
    assert (scan.found, len(scan.refused)) == ([], 1)
    for path in (home / "logs", *(home / "logs").rglob("*")):
        os.chown(path, WRITER, WRITER)
    (found,) = host.scan(patterns_of([f"{tmp_path}/*/logs/**"])).found
    host.open(found.path).close()


@pytest.mark.root
def test_a_link_of_root_that_a_user_moved_is_not_followed(tmp_path: Path) -> None:
    """If a user may write into a directory in which root made a link to a private file, an agent
    that may read every file does not read it: the user may have given the link its name."""
    secret = tmp_path / "key"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").symlink_to(secret)
    host = OperatingSystem(Access(user=AGENT, reads_all=True))
    assert len(host.scan(patterns_of([f"{logs}/*"])).found) == 1
    os.chown(logs, WRITER, WRITER)
    assert host.scan(patterns_of([f"{logs}/*"])).found == []


@pytest.mark.root
def test_a_private_file_of_root_is_not_published(tmp_path: Path) -> None:
    """A file that only root may read, and that a user moved from one of his directories into his
    directory of logs, is named and not opened, by an agent that may read every file."""
    for name in ("own", "logs"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, WRITER, WRITER)
    secret, log = tmp_path / "own" / "key", tmp_path / "logs" / "a.log"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    secret.rename(log)
    host = OperatingSystem(Access(user=AGENT, reads_all=True))
    scan = host.scan(patterns_of([f"{tmp_path}/logs/*"]))
    assert (scan.found, [path for path, _ in scan.refused]) == ([], [str(log)])
    with pytest.raises(PermissionError):
        host.open(str(log))
    os.chown(log, WRITER, WRITER)
    host.open(str(log)).close()


def test_no_rule_is_needed_for_plain_paths(tmp_path: Path) -> None:
    """With `links: none`, the agent reads files without links, and names each link once, although
    many files are below it."""
    (tmp_path / "real").mkdir()
    for name in ("a.log", "b.log"):
        (tmp_path / "real" / name).write_text("x\n")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "c.log").symlink_to("real/a.log")
    host = OperatingSystem(Access("none"))
    scan = host.scan(patterns_of([f"{tmp_path}/**", f"{tmp_path}/link/*.log"]))
    assert {each.path for each in scan.found} == {f"{tmp_path}/real/{x}.log" for x in "ab"}
    assert dict(scan.refused).keys() == {f"{tmp_path}/link", f"{tmp_path}/c.log"}
    assert scan.unreadable == []
    with pytest.raises(PermissionError):
        host.open(f"{tmp_path}/link/a.log")
