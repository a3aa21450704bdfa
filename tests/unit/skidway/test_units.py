"""Every program has a systemd unit. The checks of systemd accept each unit, and rate its exposure
at most 1.5 of 10 points."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

import pytest

from deploy.packaging.third_party import PROGRAMS
from skidway import units
from skidway.cli.commands import main
from skidway.errors import UsageError

SERVICES = [name for name in units.names() if name.endswith(".service")]
RESIDENT = "skidway-loader-resident.service"
JVM = {"skidway-zookeeper.service", "skidway-loader.service", RESIDENT}
ONE_RUN = {"skidway-loader.service", "skidway-recount.service"}
"""The services that do one run and end; a timer starts each of them. They use the loader's
installation and user."""


def sections(unit: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(units.text(unit))
    return parser


def test_every_program_has_its_unit() -> None:
    """There is a service for each of the six programs (ZooKeeper, broker, registry, agent, loader,
    audit). Further services are for the audit's counters (one instance for each cluster that is
    counted), for the resident loader (a process that makes one run after another), and for the
    nightly recount of loaded rows. The load and the recount have timers."""
    expected = {f"skidway-{program}.service" for program in PROGRAMS}
    expected |= {"skidway-audit-count@.service", RESIDENT} | ONE_RUN
    timers = {unit.replace(".service", ".timer") for unit in ONE_RUN}
    assert set(units.names()) == expected | timers


def test_a_unit_is_found_by_its_short_name() -> None:
    """A unit can be given by a short name: `agent` means `skidway-agent.service`. An unknown name
    is a usage error."""
    assert units.text("agent") == units.text("skidway-agent.service")
    assert units.text("loader.timer") == units.text("skidway-loader.timer")
    assert units.text("audit-count@").startswith("[Unit]\n")
    for wrong in ("agnt", "../cli/unit.py", "__init__.py"):
        with pytest.raises(UsageError, match="skidway unit list"):
            units.text(wrong)


@pytest.mark.parametrize("unit", SERVICES)
def test_a_unit_runs_the_version_that_its_program_has(unit: str) -> None:
    """A unit starts its program through the link to the program's installed version, with the
    program's own user and state directory. If the program refuses its configuration, systemd does
    not start it again."""
    service = dict(sections(unit)["Service"])
    program = program_of(unit)
    assert service["ExecStart"].startswith(f"/opt/skidway/current/{program}/bin/skidway ")
    assert service["User"] == service["Group"] == f"skidway-{program}"
    assert service["StateDirectory"].startswith(f"skidway/{program}")
    assert service["WorkingDirectory"] == f"%S/{service['StateDirectory']}"
    assert service["KillMode"] == "mixed"
    assert int(service["LimitNOFILE"]) >= 65536
    assert ("MemoryDenyWriteExecute" in service) == (unit not in JVM)
    if unit in ONE_RUN:
        assert service["Type"] == "oneshot"
        assert "Restart" not in service
    else:
        assert service["Type"] == "notify"
        assert service["Restart"] == "on-failure"
        refused = "2 65 78" if unit == RESIDENT else "65 78"
        assert service["RestartPreventExitStatus"] == refused


def test_an_agent_never_reads_secrets_of_the_host() -> None:
    """Whatever links lead there, the unit of the agent hides the host's passwords, keys and home
    directories; nobody else reads the agent's state. The groups of the others may read theirs."""
    agent = dict(sections("skidway-agent.service")["Service"])
    hidden = {each.removeprefix("-") for each in agent["InaccessiblePaths"].split()}
    assert {"/etc/shadow", "/etc/gshadow", "/etc/ssl/private"} <= hidden
    assert (agent["ProtectHome"], agent["ProcSubset"]) == ("yes", "pid")
    for unit in SERVICES:
        umask = "0077" if unit == "skidway-agent.service" else "0027"
        assert sections(unit)["Service"]["UMask"] == umask


def program_of(unit: str) -> str:
    """Returns the program whose installation, user and state directory the unit uses."""
    if unit in ONE_RUN:
        return "loader"
    return unit.removeprefix("skidway-").partition(".")[0].partition("-")[0]


def test_a_loader_that_stays_is_protected_as_a_single_run() -> None:
    """The loader has two units: for single runs, and for the resident loader (a process that makes
    one run after another). They differ only in how systemd starts the loader, and in the name under
    which it logs. User, paths and protection are the same."""
    once = dict(sections("skidway-loader.service")["Service"])
    stays = dict(sections(RESIDENT)["Service"])
    own = {"Environment", "Restart", "RestartSec", "RestartPreventExitStatus"}
    differing = {key for key in {*once, *stays} if once.get(key) != stays.get(key)}
    assert differing == {"Type", "ExecStart", "TimeoutStartSec", "SyslogIdentifier"} | own
    assert sections(RESIDENT)["Install"]["WantedBy"] == "multi-user.target"


def test_a_loader_that_stays_is_what_the_command_takes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The resident loader (a process that makes one run after another) accepts the interval that
    its unit sets. In this test the command then fails, but only because it has no configuration
    file. The loader refuses an invalid interval with an exit status after which systemd does not
    start the unit again."""
    service = sections(RESIDENT)["Service"]
    name, _, every = service["Environment"].partition("=")
    words = service["ExecStart"].split()[1:]
    missing = ["--config", str(tmp_path / "none.yml")]
    assert f"${{{name}}}" in words
    for said, status in ((every, 78), ("often", 2)):
        given = [said if word == f"${{{name}}}" else word for word in words]
        assert main([*given, *missing]) == status
        assert str(status) in service["RestartPreventExitStatus"].split()
    assert "--every 'often' is not a duration" in capsys.readouterr().err


def test_the_nightly_recount_is_what_the_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """The unit of the recount starts only after a running load has ended. The command of this unit
    sends its result to the audit. If no output is set (on a host, a drop-in of the unit sets it),
    the command ends with an error message. The unit gives no further options, unless a drop-in
    does."""
    found = sections("skidway-recount.service")
    environment = dict(x.split("=", 1) for x in found["Service"]["Environment"].split())
    words = found["Service"]["ExecStart"].split()[1:]
    assert (words.pop(), environment["RECOUNT_SETTINGS"]) == ("$RECOUNT_SETTINGS", "")
    words = [environment[x[2:-1]] if x.startswith("${") else x for x in words]
    assert main(words) == UsageError.exit_code
    assert "--output: it has to name" in capsys.readouterr().err
    assert "--tell" in words
    assert "skidway-loader.service" in found["Unit"]["After"].split()


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def installed(unit: str, root: Path) -> Path:
    """Writes a unit's file below `root` as it would be installed on a host, and returns its path.
    If the unit is a template, the file is written for one instance."""
    if unit.endswith(".timer"):
        installed(unit.replace(".timer", ".service"), root)
    file = root / "etc/systemd/system" / unit.replace("@", "@broker-dc1")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(units.text(unit).replace("/opt/skidway", f"{root}/opt/skidway"))
    owner = program_of(unit.replace(".timer", ".service"))
    program = root / "opt/skidway/current" / owner / "bin/skidway"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return file


@pytest.mark.foreign
@pytest.mark.parametrize("unit", units.names(), ids=str)
class TestSystemd:
    """Tests with Debian's systemd-analyze, which does not need a running systemd."""

    def test_it_is_understood_to_the_last_key(self, unit: str, tmp_path: Path) -> None:
        """`systemd-analyze verify` prints nothing about a unit of Skidway. If the unit had an
        unknown key, the command would print this key."""
        said = analyze("verify", "--man=no", str(installed(unit, tmp_path)))
        about_it = [line for line in said.stderr.splitlines() if "skidway" in line]
        assert not about_it
        assert said.returncode == 0

    def test_a_misspelt_key_would_be_seen(self, unit: str, tmp_path: Path) -> None:
        """If a unit has an unknown key, `systemd-analyze verify` prints the file and the key. So if
        a unit of Skidway had an unknown key, its test would fail."""
        file = installed(unit, tmp_path)
        section = "[Timer]\n" if unit.endswith(".timer") else "[Service]\n"
        file.write_text(file.read_text().replace(section, f"{section}ProtectHomes=yes\n"))
        said = analyze("verify", "--man=no", str(file))
        assert f"{file.name}:" in said.stderr
        assert "ProtectHomes" in said.stderr

    def test_its_exposure_is_at_most_1_5(self, unit: str, tmp_path: Path) -> None:
        """`systemd-analyze security` accepts the exposure of each service at a threshold of 1.5 (15
        tenths). At a threshold of 0.5 it accepts no service, which shows that the threshold has an
        effect."""
        if unit.endswith(".timer"):
            return
        file = str(installed(unit, tmp_path))
        said = analyze("security", "--offline=true", "--no-pager", "--threshold=15", file)
        assert said.returncode == 0, said.stdout
        assert analyze("security", "--offline=true", "--threshold=5", file).returncode == 1


def test_no_client_takes_the_memory_of_the_host() -> None:
    """Every service that others can reach, or that reads what others wrote, has a limit of memory,
    so that it ends instead of its host."""
    bounded = {name for name in SERVICES if "MemoryMax" in sections(name)["Service"]}
    assert {*SERVICES} - bounded == {"skidway-zookeeper.service", "skidway-recount.service"}
