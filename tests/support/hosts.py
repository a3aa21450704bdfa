"""Real hosts for a test. Each host runs systemd as PID 1, has its own address, and is reached by
ssh.

systemd-nspawn boots each host. The host's root file system is an overlay on the Debian of
support.debian, or a copy of this Debian if the machine's file system does not support overlays. A
bridge inside a network namespace connects all hosts of a test run. The control node runs in the
same namespace. So the machine's own addresses and interfaces stay as they are, two test runs cannot
reach each other, and no host can reach the internet.

No process or mount outlives the test run. One process keeps the network namespace alive, and one
process for each host keeps a mount namespace with the host's mounts. If the test runner is killed,
the kernel kills all these processes. A killed runner leaves a folder and empty cgroups behind,
which the next test run removes. A test run holds a lock on its folder until it ends, so no other
test run removes this folder.

`python -m support.hosts app1 app2 server` boots hosts, and keeps them until the command is
interrupted. The command prints the name of a folder. If the environment variable SKIDWAY_HOSTS
contains this folder, tests use these hosts instead of their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from support import debian
from support.processes import NotReady, Program, eventually

PREFIX = "skidway-hosts-"
NETWORK = "10.77.0"
BRIDGE = "br0"
CGROUPS = Path("/sys/fs/cgroup")
SSH_OPTIONS = (
    "StrictHostKeyChecking yes",
    "BatchMode yes",
    "ConnectTimeout 2",
    "ServerAliveInterval 5",
    "ServerAliveCountMax 3",
    "ControlMaster auto",
    "ControlPersist 30",
    "LogLevel ERROR",
)
UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount")
"""Starts a host's first process. With `--kill-child`, this process dies with the test runner. The
process is PID 1 of a PID namespace, so all other processes of the host die with it. Without the
namespace, the host's processes would continue to run after systemd-nspawn was killed."""
SSH_FAILED = 255
NSPAWN = (
    "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--resolv-conf=off",
    "--timezone=off", "--link-journal=no", "--console=pipe", "--network-veth",
    f"--network-bridge={BRIDGE}",
)  # fmt: skip


class Host:
    """One host of a test run. The method `run` runs a command on the host by ssh, as root with
    sudo."""

    def __init__(self, run: Run, name: str, number: int) -> None:
        self._run, self.name, self.address = run, name, f"{NETWORK}.{number}"
        self.folder = run.folder / name
        self._machine: Program | None = None

    def boot(self) -> None:
        """Starts the host, and does not wait. The method `wait` waits until the host is up."""
        shell = _BOOT.format(
            cgroups=" ".join(map(str, _cgroups(self._run.folder.name, self.name))),
            overlay=_overlay(self.folder) if (self.folder / "upper").exists() else ":",
            nspawn=shlex.join([*NSPAWN, f"--directory={self.folder / 'root'}", "-M", self.name]),
        )
        command = self._run.inside([*UNSHARE, "sh", "-ec", shell])
        self._machine = Program(command, self._run.folder / f"{self.name}.log")
        self._machine.start()

    def wait(self, within_s: float = 60.0) -> None:
        """Waits until systemd on the host has started all units. Raises NotReady if this does not
        happen within `within_s` seconds, for example because a unit has failed."""
        said = ""

        def is_up() -> bool:
            nonlocal said
            asked = self.run("systemctl is-system-running --wait", check=False)
            said = asked.stdout + asked.stderr
            return asked.returncode == 0

        try:
            eventually(is_up, within_s=within_s, every_s=0.2)
        except NotReady:
            failed = self.run("systemctl --failed --no-legend", check=False).stdout
            raise NotReady(f"{self.name} did not come up: {said} {failed}") from None

    def power_off(self) -> None:
        """Shuts the host down as an operator does."""
        self.run("systemctl poweroff", check=False)
        self._run.forget_connections(self)
        if self._machine is not None:
            self._machine.wait(90)
        else:  # only the test run that booted this host can wait for its process
            is_off = functools.partial(self.run, "true", check=False)
            eventually(lambda: is_off().returncode == SSH_FAILED, within_s=90, what="off")

    def ended(self) -> None:
        """Waits for the end of the host's process, after the host was killed together with the
        control node."""
        if self._machine is not None:
            self._machine.kill()

    def run(
        self,
        command: str,
        *,
        check: bool = True,
        within_s: float = 60.0,
        given: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a shell command as root. If the command fails, raises AssertionError with the
        command's output."""
        ssh = ["ssh", "-F", str(self._run.ssh_config), self.name, "sudo", "-n", "sh", "-c"]
        done = subprocess.run(
            self._run.inside([*ssh, shlex.quote(command)]),
            input=given or "",
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(
                f"{self.name}: `{command}` ended with {done.returncode}:\n"
                f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            )
        return done

    def read(self, command: str, **options: object) -> str:
        """Runs a command and returns its output."""
        return self.run(command, **options).stdout.strip()  # type: ignore[arg-type]

    def prepare(self, names: Mapping[str, str], key: str) -> None:
        """Makes the host's root file system: an overlay on the tree of files of a Debian that
        support.debian has installed, or a copy of this tree. Writes the files that give the host
        its name, its address and the ssh key that may log in. `names` contains the address of each
        host of the run, by name."""
        root, upper = self.folder / "root", self.folder / "upper"
        for path in (root, upper, self.folder / "work"):
            path.mkdir(parents=True)
        if not _overlays(self.folder):
            shutil.rmtree(upper)
            subprocess.run(["cp", "-a", "--reflink=auto", f"{debian.root()}/.", root], check=True)
            upper = root
        hosts = "".join(f"{address} {name}\n" for name, address in names.items())
        for name, text in {
            "etc/hostname": f"{self.name}\n",
            "etc/hosts": f"127.0.0.1 localhost\n{hosts}",
            "etc/machine-id": f"{uuid.uuid4().hex}\n",
            "etc/systemd/network/10-host0.network": (
                f"[Match]\nName=host0\n[Network]\nAddress={self.address}/24\n"
                "LinkLocalAddressing=no\nIPv6AcceptRA=no\n"
            ),
            f"home/{debian.ADMIN}/.ssh/authorized_keys": key,
        }.items():
            (upper / name).parent.mkdir(parents=True, exist_ok=True)
            (upper / name).write_text(text)
        home = upper / "home" / debian.ADMIN
        for path in (home, *home.rglob("*")):
            os.chown(path, debian.ADMIN_UID, debian.ADMIN_UID)


class Run:
    """The hosts of one test run, their network, and the ssh key with which tests log in on them."""

    def __init__(self, folder: Path, net: Path, names: Sequence[str]) -> None:
        self.folder, self.net = folder, net
        self.ssh_config = folder / "ssh_config"
        self.hosts = {name: Host(self, name, 11 + at) for at, name in enumerate(names)}

    def inside(self, command: Sequence[str]) -> list[str]:
        """Returns the command line that runs a command on the control node, inside the network of
        the test run."""
        return ["nsenter", f"--net={self.net}", *command]

    def prepare(self) -> None:
        """Makes the bridge, the ssh key, and the files of all hosts."""
        ip = ["ip", "-batch", "-"]
        lines = [
            "link set lo up",
            f"link add {BRIDGE} type bridge",
            f"addr add {NETWORK}.1/24 dev {BRIDGE}",
            f"link set {BRIDGE} up",
        ]
        subprocess.run(self.inside(ip), input="\n".join(lines), text=True, check=True)
        key = self.folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        known = self.folder / "known_hosts"
        known.write_text("".join(f"{h.address} {debian.host_key()}\n" for h in self._all))
        options = [
            *SSH_OPTIONS,
            f"User {debian.ADMIN}",
            f"IdentityFile {key}",
            f"UserKnownHostsFile {known}",
            f"ControlPath {self.folder}/c-%h",
        ]
        self.ssh_config.write_text(
            "".join(f"Host {h.name}\n  HostName {h.address}\n" for h in self._all)
            + "Host *\n"
            + "".join(f"  {option}\n" for option in options)
        )
        for host in self._all:
            host.prepare(self._addresses, key.with_suffix(".pub").read_text())
        state = {"net": str(self.net), "names": list(self.hosts)}
        (self.folder / "state.json").write_text(json.dumps(state))

    def boot(self) -> None:
        """Boots all hosts at the same time."""
        for host in self._all:
            host.boot()
        for host in self._all:
            host.wait()

    def replace(self, host: Host) -> None:
        """Shuts a host down, and boots a new host that has the same name and address and a fresh
        disk."""
        host.power_off()
        shutil.rmtree(host.folder)
        host.prepare(self._addresses, (self.folder / "key.pub").read_text())
        host.boot()
        host.wait()

    def forget_connections(self, host: Host) -> None:
        """Closes the connections that ssh keeps open to the host. After the host is replaced, ssh
        would still use these dead connections for new commands, and the commands would never get an
        answer."""
        subprocess.run(
            ["ssh", "-F", self.ssh_config, "-O", "exit", host.name], check=False,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip

    def end(self) -> None:
        """Kills every process of the control node. With them, the hosts and the network end."""
        ours = self.net.stat().st_ino
        for path in Path("/proc").glob("[0-9]*/ns/net"):
            with contextlib.suppress(OSError):
                if path.stat().st_ino == ours:
                    os.kill(int(path.parts[2]), signal.SIGKILL)
        for host in self._all:
            host.ended()

    @property
    def _addresses(self) -> dict[str, str]:
        return {host.name: host.address for host in self._all}

    @property
    def _all(self) -> list[Host]:
        return list(self.hosts.values())


@contextlib.contextmanager
def running(names: Sequence[str]) -> Iterator[Run]:
    """Boots hosts, and kills them at the end of the `with` block. If SKIDWAY_HOSTS is set, uses the
    hosts that it names instead, and does not end them."""
    if kept := os.environ.get("SKIDWAY_HOSTS"):
        yield attach(Path(kept))
        return
    with _folder() as folder:
        holder = Program(["unshare", "--net", "sleep", "infinity"], folder / "net.log").start()
        net = Path(f"/proc/{holder.pid}/ns/net")
        own = Path("/proc/self/ns/net").stat().st_ino
        eventually(lambda: net.stat().st_ino != own, within_s=10, what="a network of its own")
        run = Run(folder, net, names)
        try:
            run.prepare()
            run.boot()
            yield run
        finally:
            run.end()
            holder.kill()


def attach(folder: Path) -> Run:
    """Returns the hosts that a process `python -m support.hosts` has booted and still keeps
    running."""
    state = json.loads((folder / "state.json").read_text())
    return Run(folder, Path(state["net"]), state["names"])


def main(names: Sequence[str]) -> int:
    """Boots hosts, and keeps them until this program is ended."""
    with running(names) as run:
        print(run.folder, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()
    return 0


_BOOT = """
for cgroup in {cgroups}; do mkdir -p "$cgroup"; echo $$ > "$cgroup/cgroup.procs"; done
{overlay}
exec {nspawn}
"""


def _overlay(folder: Path) -> str:
    layers = f"lowerdir={debian.root()},upperdir={folder}/upper,workdir={folder}/work"
    return shlex.join(["mount", "-t", "overlay", "overlay", "-o", layers, f"{folder}/root"])


def _overlays(folder: Path) -> bool:
    """Returns whether the file system of `folder` supports the upper layer of an overlay. To check
    this, mounts an overlay that only a separate process sees."""
    tried = ["unshare", "--mount", "sh", "-c", _overlay(folder)]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def _cgroups(run: str, host: str) -> list[Path]:
    """Returns the paths of the host's own cgroups, one in each hierarchy that the host's systemd
    uses. Without cgroups of their own, two hosts would share one."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / run / host]
    return [CGROUPS / "systemd" / run / host, CGROUPS / "unified" / run / host]


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Removes the folders of test runs that have ended, and yields a new folder for this test run.
    This process holds a lock on the new folder until it ends."""
    with _locked(Path(tempfile.gettempdir()) / f"{PREFIX}lock", wait=True):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/lock"):
            with contextlib.suppress(BlockingIOError), _locked(path):
                _remove(path.parent)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        held = _locked(folder / "lock")
        held.__enter__()
    try:
        yield folder
    finally:
        _remove(folder)
        held.__exit__(None, None, None)


@contextlib.contextmanager
def _locked(path: Path, *, wait: bool = False) -> Iterator[TextIO]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield file


def _remove(folder: Path) -> None:
    """Waits until the last processes of a test run have ended, and removes the run's folder and
    cgroups."""
    for base in {path.parent for path in _cgroups(folder.name, "-")}:
        tree = sorted(base.rglob("*/"), reverse=True)
        for cgroup in [*tree, base]:
            eventually(functools.partial(_gone, cgroup), within_s=20, what=f"{cgroup} empty")
    shutil.rmtree(folder, ignore_errors=True)


def _gone(cgroup: Path) -> bool:
    try:
        cgroup.rmdir()
    except FileNotFoundError:  # a run that was killed before it booted a host has no cgroup
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
