"""The jars of the peers (Apache Kafka, HDFS): fetched once by Maven into .cache/peers.

`python tests/support/peers.py` (what `make peers` runs) fetches what is missing; the fixtures only
look. Maven is installed with apt-get where that may be done, and asked for in one sentence where
not. It runs on the Java that Skidway runs on, so none need be on PATH.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from skidway import java
from skidway.errors import SkidwayError

ROOT = Path(__file__).resolve().parents[2]
POMS = ROOT / "tests" / "peers"
CACHE = Path(os.environ.get("SKIDWAY_PEERS", ROOT / ".cache" / "peers"))
PEERS = ("kafka", "hdfs")
INSTALLED = Path("/usr/bin/mvn")
"""Where the Debian package puts it, which need not be on PATH."""
TRIES = 2


class PeerMissing(AssertionError):
    """A peer's jars are not there."""


def jars(peer: str) -> Path:
    """The folder with the peer's jars; PeerMissing says how to get them."""
    if not _complete(peer):
        raise PeerMissing(f"the jars of {peer} are not there: run `make peers`")
    return CACHE / peer


def fetch(peer: str, maven: str) -> None:
    """Have Maven copy the peer's jars; the marker, written last, tells of which pom they are.

    Raises SkidwayError if Maven does not get them.
    """
    folder = CACHE / peer
    command = [
        maven, "-q", "-B", "-C", "-f", str(POMS / f"{peer}.pom.xml"),
        "dependency:copy-dependencies", f"-DoutputDirectory={folder}",
    ]  # fmt: skip
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, **java.environment(java.find())},
        )  # fmt: skip
        if done.returncode == 0:
            (folder / ".complete").write_text(_pom(peer))
            return
    raise SkidwayError(
        f"Maven could not fetch the jars of {peer} (exit status {done.returncode}; what it said is "
        "above): make the Maven repository reachable, or name the .cache/peers of another clone "
        "with SKIDWAY_PEERS"
    )


def provide_maven() -> str:
    """Maven's command, installed by apt-get where we are root. Raises SkidwayError without it."""
    if found := _maven():
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", "maven"]
        for command in (["apt-get", "update", "-q"], install):
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=quiet)
        if found := _maven():
            return found
    raise SkidwayError(
        "Maven is needed for the jars of Apache Kafka and HDFS that the tests run: install it "
        "(Debian, Ubuntu: apt-get install maven)"
    )


def main() -> int:
    """Fetch every peer's jars."""
    missing = [peer for peer in PEERS if not _complete(peer)]
    try:
        for peer in missing:
            fetch(peer, provide_maven())
    except SkidwayError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _maven() -> str | None:
    return shutil.which("mvn") or (str(INSTALLED) if INSTALLED.exists() else None)


def _complete(peer: str) -> bool:
    marker = CACHE / peer / ".complete"
    return marker.exists() and marker.read_text() == _pom(peer)


def _pom(peer: str) -> str:
    return hashlib.sha256((POMS / f"{peer}.pom.xml").read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
