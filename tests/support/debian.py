"""The root file system of the test hosts. It is a minimal Debian 12, which debootstrap makes once
in .cache/peers.

`python -m support.debian` makes the root file system if it is missing or was made by another
version of this module. `make test-deploy` runs this program before the tests. The tests' fixtures
do not make the root file system; they raise PeerMissing if it is missing. The program needs
debootstrap, systemd-nspawn, iproute2 and the ssh client. If it runs as root, it installs them with
apt-get. Otherwise it prints a sentence that asks the user to install them. The packages of the root
file system come from the mirror that the machine's own apt uses for this Debian release, or else
from debootstrap's default mirror.

The root file system contains what a server has before Skidway is installed, that is, systemd, sshd,
Python, rsyslog, nginx, logrotate, and an account `admin` that may use sudo. Prometheus is installed
but does not start by itself. The hosts have no pip and no access to the internet.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from skidway.errors import SkidwayError
from support.peers import CACHE, DEBIAN, PeerMissing, provide

RELEASE = "bookworm"
ROOT = CACHE / "debian12"
ADMIN, ADMIN_UID = "admin", 1000
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "python3", "sudo", "openssh-server", "iproute2", "procps",
    "rsyslog", "logrotate", "nginx-light", "prometheus",
)  # fmt: skip
NEEDS_THE_NET = ("apt-daily.timer", "apt-daily-upgrade.timer")
"""Debian's systemd units that fail on a host without access to the internet."""
PROMETHEUS = "prometheus.service"
"""This unit is disabled in the root file system. Only a test starts it, on one host."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TRIES = 2


def root() -> Path:
    """Returns the folder with the root file system. If the root file system is missing or out of
    date, raises PeerMissing with a message that says how to make it.
    """
    if not _complete():
        raise PeerMissing("the root of the test hosts is not there: run `make test-deploy`")
    return ROOT


def host_key() -> str:
    """Returns the public key of sshd on every host that is made from this root file system."""
    kind, key = (root() / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    return f"{kind} {key}"


def make() -> None:
    """Makes the root file system in a temporary folder and then renames the folder, so that an
    interrupted run leaves no incomplete root file system. Raises SkidwayError if the root file
    system cannot be made.
    """
    provide("systemd-nspawn", ["systemd-container"], "systemd-nspawn runs the hosts")
    provide("ssh", ["openssh-client"], "ssh reaches the hosts")
    provide("ip", ["iproute2"], "iproute2 makes the network of the hosts")
    debootstrap = provide("debootstrap", ["debootstrap"], "debootstrap makes the hosts")
    CACHE.mkdir(parents=True, exist_ok=True)
    made = CACHE / f"debian12.{os.getpid()}"
    command = [
        debootstrap, "--variant=minbase", f"--include={','.join(PACKAGES)}",
        *([f"--keyring={KEYRING}"] if KEYRING.exists() else []), RELEASE, str(made), *_mirror(),
    ]  # fmt: skip
    try:
        _run(command, made)
        _prepare(made)
        shutil.rmtree(ROOT, ignore_errors=True)
        made.rename(ROOT)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    _marker().write_text(_recipe())


def main() -> int:
    """Makes the root file system if it is missing or out of date. Returns the exit status."""
    try:
        if not _complete():
            make()
    except SkidwayError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(command: Sequence[str], made: Path) -> None:
    for _ in range(TRIES):
        shutil.rmtree(made, ignore_errors=True)
        log = made.with_suffix(".log")
        with log.open("wb") as out:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            )
        said = log.read_text(errors="replace")
        log.unlink()
        if done.returncode == 0:
            return
    raise SkidwayError(
        f"{said[-2000:]}\ndebootstrap could not make the hosts that the tests run (exit status "
        f"{done.returncode}; what it said is above): it needs root and a mirror of Debian; or name "
        "the .cache/peers of another clone with SKIDWAY_PEERS"
    )


def _prepare(made: Path) -> None:
    """Prepares the root file system for all hosts. Creates the account, disables timers, and
    removes cached packages and the machine's identity."""
    for package in (made / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    for unit in NEEDS_THE_NET:
        _link(made / "etc/systemd/system" / unit, "/dev/null")
    wanted = made / "etc/systemd/system/multi-user.target.wants"
    _link(wanted / "systemd-networkd.service", "/lib/systemd/system/systemd-networkd.service")
    (wanted / PROMETHEUS).unlink(missing_ok=True)
    useradd = ["useradd", "--create-home", f"--uid={ADMIN_UID}", "--shell=/bin/bash", ADMIN]
    subprocess.run(["chroot", str(made), *useradd], check=True)
    rule = made / "etc/sudoers.d" / ADMIN
    rule.write_text(f"{ADMIN} ALL=(ALL) NOPASSWD: ALL\n")
    rule.chmod(0o440)
    (made / "etc/machine-id").write_text("")
    (made / "etc/resolv.conf").unlink(missing_ok=True)


def _link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _mirror() -> list[str]:
    """Returns a list with the URL of the Debian mirror from which the machine's own apt gets this
    release, or an empty list if apt has none.
    """
    apt = shutil.which("apt-get") or str(DEBIAN / "apt-get")
    if not Path(apt).exists():
        return []
    asked = [apt, "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    for line in said.splitlines():
        release, _, uri = line.partition(" ")
        if release == RELEASE and uri.startswith("http"):
            return [uri]
    return []


def _complete() -> bool:
    return _marker().exists() and _marker().read_text() == _recipe()


def _marker() -> Path:
    return ROOT.with_suffix(".complete")


def _recipe() -> str:
    """Returns a digest of this module's text. The digest is stored beside the root file system. If
    the digest differs from the stored digest, the root file system is built again.
    """
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
