"""Installs what tests need from outside Python: stock Kafka clients for Node and Go, tools from
Debian, an older Spark, and programs that read Parquet.

The clients are made once, in .cache/peers. `python -m support.foreign` makes the clients and tools
that are missing. `make foreign` runs this program before the tests. The tests' fixtures make no
client; they raise PeerMissing if a client is missing. If the program runs as root, it installs npm,
Go, kcat, jq, libfuse, strace, rsyslog, systemd, Prometheus and Chromium with apt-get. Otherwise it
prints a sentence that asks the user to install these packages. The clients run on a Node that npm
installs, so they work even if the machine's own Node is too old. If the machine's Go is too old,
the program makes Go fetch the toolchain that go.mod requires. This toolchain comes as a Go module.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from skidway.errors import SkidwayError
from support.browser import PACKAGES as CHROMIUM
from support.browser import WHY as CHROMIUM_WHY
from support.peers import CACHE, ROOT, PeerMissing, provide

CLIENTS = ROOT / "tests" / "clients"
NODE, FRANZ_GO, SPARK, READERS = "node", "franz-go", "spark-4.1", "readers"
ARCHITECTURES = {"x86_64": ("x64", "amd64"), "aarch64": ("arm64", "arm64")}
"""Maps the machine's architecture to its names in npm and in Go."""
FETCHES_TOOLCHAINS = (1, 21)
"""From this version on, Go reads in go.mod which toolchain is needed, and fetches this toolchain
automatically."""


def node_driver(name: str) -> list[str]:
    """Returns the command of a JavaScript driver. If the driver is missing, raises PeerMissing,
    which says how to get it."""
    return [node(), str(_made(NODE) / f"{name}.mjs")]


def node() -> str:
    """Returns the path of Node. If it is missing, raises PeerMissing, which says how to get it."""
    return str(_made(NODE) / f"node_modules/node-linux-{_architecture()[0]}/bin/node")


def jq() -> str:
    """Returns the path of jq. Raises SkidwayError if it is missing."""
    return provide("jq", ["jq"], "jq reads the JSON that commands print")


def go_driver() -> list[str]:
    """Returns the command of the Go driver. If the driver is missing, raises PeerMissing, which
    says how to get it."""
    return [str(_made(FRANZ_GO) / "driver")]


def older_spark() -> Path:
    """Returns the folder with the oldest pyspark on which the loader runs, for use in PYTHONPATH.
    If the folder is missing, raises PeerMissing, which says how to get it."""
    return _made(SPARK) / "packages"


def readers() -> Path:
    """Returns the folder with polars and DataFusion, for use in PYTHONPATH. If the folder is
    missing, raises PeerMissing, which says how to get it."""
    return _made(READERS) / "packages"


def packages(name: str) -> Path:
    """Returns the folder with the packages of a folder in tests/clients that `main` does not make.
    Installs them if they are missing."""
    fetch(name, lambda: make_packages(name))
    return _made(name) / "packages"


def rsyslog() -> str:
    """Returns the path of rsyslog's command. Raises SkidwayError if rsyslog or its module for Kafka
    is missing."""
    packages, why = ["rsyslog", "rsyslog-kafka"], "rsyslog, with its module for Kafka, is a shipper"
    provide(f"/usr/lib/{platform.machine()}-linux-gnu/rsyslog/omkafka.so", packages, why)
    return provide("rsyslogd", packages, why)


def make_node() -> None:
    """Installs the packages in package-lock.json with npm."""
    npm = provide("npm", ["npm", "nodejs"], "npm is needed for the clients for Node")
    install = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(install, CACHE / NODE, "npm could not install the clients for Node")


def make_franz_go() -> None:
    """Builds the Go driver with exactly the modules in go.sum."""
    folder = CACHE / FRANZ_GO
    go = provide("go", ["golang-go"], "Go is needed for franz-go, a Kafka client for Go")
    words = "Go could not build the driver of franz-go"
    environment = {"GOTOOLCHAIN": "auto", "GOFLAGS": "-mod=readonly"}
    if _version(go) < FETCHES_TOOLCHAINS:
        root = _toolchain(go, folder)
        go = str(root / "bin" / "go")
        environment |= {"GOTOOLCHAIN": "local", "GOROOT": str(root)}
    build = [go, "build", "-trimpath", "-buildvcs=false", "-o", "driver", "."]
    _run(build, folder, words, environment)


def make_packages(name: str) -> None:
    """Installs the packages in requirements.txt with pip, but not their dependencies, because the
    environment of the tests already contains them."""
    install = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--target", "packages", "--require-hashes", "-r", "requirements.txt",
    ]  # fmt: skip
    _run(install, CACHE / name, f"pip could not install the packages of {name}")


MAKERS: Mapping[str, Callable[[], None]] = {
    NODE: make_node,
    FRANZ_GO: make_franz_go,
    SPARK: lambda: make_packages(SPARK),
    READERS: lambda: make_packages(READERS),
}


def fetch(name: str, make: Callable[[], None]) -> None:
    """Calls `make` in a copy of the folder in tests/clients, if it was not made before."""
    if not _complete(name):
        shutil.rmtree(CACHE / name, ignore_errors=True)
        shutil.copytree(CLIENTS / name, CACHE / name)
        make()
        (CACHE / name / ".complete").write_text(_source(name))


def main() -> int:
    """Installs every client and tool that is missing."""
    try:
        provide("kcat", ["kcat"], "kcat is one of the Kafka clients")
        jq()
        provide("fusermount3", ["fuse3"], "libfuse serves the disk that fails for the crash tests")
        provide("strace", ["strace"], "strace sees the system calls of the broker in the tests")
        provide("chromedriver", CHROMIUM, CHROMIUM_WHY)
        rsyslog()
        provide("systemd-analyze", ["systemd"], "systemd judges the units")
        provide("promtool", ["prometheus"], "Prometheus judges the rules")
        for name, make in MAKERS.items():
            fetch(name, make)
    except SkidwayError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _version(go: str) -> tuple[int, int]:
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _toolchain(go: str, folder: Path) -> Path:
    """Downloads the Go version that go.mod requires, as a module, and returns its root folder. From
    version 1.21 on, Go does so by itself (`FETCHES_TOOLCHAINS`)."""
    named = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(), re.MULTILINE)
    assert named is not None
    module = f"golang.org/toolchain@v0.0.1-go{named[1]}.linux-{_architecture()[1]}"
    words = f"Go could not fetch Go {named[1]}"
    fetched = _run([go, "mod", "download", "-json", module], folder.parent, words, {})
    root = Path(json.loads(fetched)["Dir"])
    for program in (*(root / "bin").iterdir(), *(root / "pkg" / "tool").glob("*/*")):
        program.chmod(0o755)  # an old Go unpacks programs without the permission to execute them
    return root


def _run(
    command: Sequence[str], folder: Path, words: str, environment: Mapping[str, str] | None = None
) -> str:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        check=False, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    if done.returncode:
        raise SkidwayError(f"{words} (exit status {done.returncode}; what it said is above)")
    return done.stdout


def _architecture() -> tuple[str, str]:
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise SkidwayError(f"the Kafka clients for Node and Go are not prepared for {machine}")
    return ARCHITECTURES[machine]


def _made(name: str) -> Path:
    if not _complete(name):
        raise PeerMissing(f"the clients in {name} are not there: run `make foreign`")
    return CACHE / name


def _complete(name: str) -> bool:
    marker = CACHE / name / ".complete"
    return marker.exists() and marker.read_text() == _source(name)


def _source(name: str) -> str:
    found = hashlib.sha256()
    for path in sorted((CLIENTS / name).iterdir()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
