"""The checks of `skidway doctor`: what this machine has, and what is missing on it.

Each check returns a Finding, which says in words what the check found, and what to do about it. The
verdict "missing" means that a program that is installed here cannot work. The verdict "advice"
means that the programs can work, but that somebody should read the finding.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Literal

from skidway import extras, insecure_listeners, java, machine_id, ports
from skidway.errors import SkidwayError

GIB = 1 << 30
DISK_NEEDED_BYTES = 1 * GIB
DISK_ADVISED_BYTES = 4 * GIB
MEMORY_ADVISED_BYTES = 3 * GIB
OPEN_FILES_NEEDED = 1024
OPEN_FILES_ADVISED = 16_384
PYTHON_NEEDED = (3, 11)

PARTS = ("broker", "zookeeper", "registry", "agent", "audit", "loader")
"""The programs of Skidway. Each program needs the Python packages that the pip extra with the
program's name installs."""

PORTS: dict[int, str] = {
    2181: "ZooKeeper",
    8081: "registry",
    8088: "dashboard",
    9092: "broker",
    9101: "agent's metrics",
    9102: "broker's metrics",
    9103: "registry's metrics",
    9104: "audit's metrics",
    9105: "loader's metrics",
    9106: "ZooKeeper's metrics",
}

LOCAL = "localhost"
KERBEROS_LIBRARY = "libgssapi_krb5.so.2"

Verdict = Literal["good", "advice", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` says what to do; it is empty if there is nothing to do."""

    name: str
    verdict: Verdict
    says: str
    advice: str = ""


def examine(directory: Path) -> Iterator[Finding]:
    """Does all checks, and yields their findings. `directory` is where the demo would put its
    data."""
    yield python(sys.version_info[:3])
    yield from parts()
    yield _java()
    yield kerberos()
    yield open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))
    yield memory(_memory_bytes())
    yield from names()
    yield _machine_id()
    yield hard_links(_protected_hardlinks())
    for name, path in (("current directory", directory), ("temporary directory", _temporary())):
        yield writable(name, path)
        yield disk(name, path, shutil.disk_usage(path).free)
    yield executable_temporary(_temporary())
    for port, user in PORTS.items():
        yield free_port(port, user, ports.holder(port))
    yield insecure(list(insecure_listeners.installed()))


def insecure(programs: list[str]) -> Finding:
    """Checks the programs that are configured here. programs: those that may listen for other hosts
    without authentication."""
    if not programs:
        return Finding("listeners", "good", "no installed program listens without authentication")
    return Finding(
        "listeners",
        "advice",
        f"{', '.join(programs)}: {insecure_listeners.KEY} is true",
        "whoever reaches these ports may do everything: let the network keep strangers away",
    )


def python(version: tuple[int, int, int]) -> Finding:
    """Checks that this Python is 3.11 or newer."""
    says = "Python " + ".".join(map(str, version))
    if version[:2] < PYTHON_NEEDED:
        return Finding("python", "missing", says, "install Python 3.11 or newer")
    return Finding("python", "good", f"{says} ({sys.executable})")


def kerberos(library: str = KERBEROS_LIBRARY) -> Finding:
    """Checks for the library with which a loader uses an HDFS with Kerberos."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return Finding(
            "kerberos",
            "advice",
            f"{library} is missing",
            "for an HDFS with Kerberos, install libgssapi-krb5-2 (Debian, Ubuntu) or krb5-libs"
            " (Red Hat)",
        )
    return Finding("kerberos", "good", f"{library} is here")


def parts() -> Iterator[Finding]:
    """Checks which programs can run here. A program can run if its requirements are installed."""
    for part in PARTS:
        lacking = extras.lacking(part)
        if lacking:
            yield Finding(
                f"part {part}",
                "advice",
                f"not installed here (lacks {', '.join(lacking)})",
                f"if this machine is to run it: {extras.how(part)}",
            )
        else:
            yield Finding(f"part {part}", "good", "installed")


def open_files(soft: int, hard: int) -> Finding:
    """Checks the limit on file descriptors. A broker needs several descriptors per partition, and
    an agent needs one descriptor per file that it tails."""
    unlimited = resource.RLIM_INFINITY
    says = "no limit" if soft == unlimited else f"limit {soft:,}"
    how = f"raise it: `ulimit -n {OPEN_FILES_ADVISED}` in the shell, LimitNOFILE= in a systemd unit"
    if hard not in (unlimited,) and hard < OPEN_FILES_ADVISED:
        how += f" (the hard limit is {hard:,}: root raises it in /etc/security/limits.conf)"
    if soft == unlimited or soft >= OPEN_FILES_ADVISED:
        return Finding("open files", "good", says)
    return Finding("open files", "missing" if soft < OPEN_FILES_NEEDED else "advice", says, how)


def memory(available_bytes: int | None) -> Finding:
    """Checks whether there is enough memory for the demo: for Spark, ZooKeeper and Skidway's
    programs."""
    if available_bytes is None:
        return Finding("memory", "advice", "unknown: there is no /proc/meminfo")
    says = f"{available_bytes / GIB:.1f} GiB available"
    if available_bytes < MEMORY_ADVISED_BYTES:
        needs = f"the demo needs about {MEMORY_ADVISED_BYTES // GIB} GiB; a single program far less"
        return Finding("memory", "advice", says, needs)
    return Finding("memory", "good", says)


def disk(name: str, path: Path, free_bytes: int) -> Finding:
    """Checks whether there is enough disk space for logs, Parquet files and Spark's shuffle."""
    says = f"{free_bytes / GIB:.1f} GiB free in {path}"
    if free_bytes >= DISK_ADVISED_BYTES:
        return Finding(f"disk, {name}", "good", says)
    verdict: Verdict = "missing" if free_bytes < DISK_NEEDED_BYTES else "advice"
    return Finding(f"disk, {name}", verdict, says, "make room, or work in another directory")


def writable(name: str, path: Path) -> Finding:
    """Checks whether files can be created in a directory. The check creates a file, so that it also
    notices root squash and read-only mounts."""
    try:
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        advice = f"make {path} writable for this user, or choose another directory"
        return Finding(name, "missing", f"{path} cannot be written: {why}", advice)
    return Finding(name, "good", f"{path} can be written")


def executable_temporary(path: Path) -> Finding:
    """Checks that a temporary directory is not mounted with noexec, because Java unpacks native
    libraries (snappy, zstd, netty) into it and runs their code."""
    if os.statvfs(path).f_flag & os.ST_NOEXEC:
        return Finding(
            "native libraries",
            "advice",
            f"{path} is mounted noexec: Java cannot load what it unpacks there",
            "set TMPDIR and JAVA_TOOL_OPTIONS=-Djava.io.tmpdir to a directory without noexec",
        )
    return Finding("native libraries", "good", f"{path} allows them")


def free_port(port: int, user: str, holder: str | None) -> Finding:
    """Checks whether `port` is free. `user` is the program that listens on this port by default.
    `holder` is the process that uses the port now, or None."""
    if holder is None:
        return Finding(f"port {port}", "good", f"free ({user})")
    return Finding(
        f"port {port}",
        "advice",
        f"used by {holder} ({user})",
        "good if that is ours; otherwise give ours another port in its settings",
    )


def names() -> Iterator[Finding]:
    """Checks that this machine's name and `localhost` have addresses. Spark starts only if both
    have one."""
    own = os.environ.get("SPARK_LOCAL_IP") or socket.gethostname()
    for label, name, address in (("host name", own, "127.0.1.1"), (LOCAL, LOCAL, "127.0.0.1")):
        try:
            socket.getaddrinfo(name, None)
        except OSError:
            says = f"{name!r} has no address: Spark will not start"
            advice = f"add the line `{address} {name}` to /etc/hosts"
            yield Finding(label, _if_spark(), says, advice)
        else:
            yield Finding(label, "good", f"{name} has an address")


def _if_spark() -> Verdict:
    """Returns the verdict on something that only Spark needs, and that this machine lacks."""
    return "advice" if util.find_spec("pyspark") is None else "missing"


def _java() -> Finding:
    try:
        found = java.find()
    except SkidwayError as error:
        return Finding("java", _if_spark(), str(error))
    return Finding("java", "good", f"Java {found.version}, {found.source}: {found.command}")


def hard_links(is_protected: bool | None) -> Finding:
    """Checks that the kernel lets nobody give another user's file a further name. Otherwise a user
    who writes logs can put a file that only the agent may read among them."""
    name = "hard links"
    if is_protected is None:
        return Finding(name, "advice", "unknown: there is no fs.protected_hardlinks")
    if is_protected:
        return Finding(name, "good", "fs.protected_hardlinks is set")
    says = "fs.protected_hardlinks is 0: users can put files that the agent may read among logs"
    return Finding(name, "advice", says, "set fs.protected_hardlinks = 1 in /etc/sysctl.d")


def _protected_hardlinks() -> bool | None:
    try:
        return Path("/proc/sys/fs/protected_hardlinks").read_text().strip() != "0"
    except OSError:
        return None


def _machine_id() -> Finding:
    found = machine_id.read()
    if found is None:
        return Finding("machine id", "advice", machine_id.MISSING, machine_id.ADVICE)
    return Finding("machine id", "good", found)


def _memory_bytes() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else None


def _temporary() -> Path:
    return Path(tempfile.gettempdir())
