"""The jars of the peers (Apache Kafka, HDFS): fetched once by Maven into .cache/peers.

`python tests/support/peers.py` (what `make peers` runs) fetches what is missing; the fixtures only
look. Maven is installed with apt-get where that may be done, and asked for in one sentence where not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POMS = ROOT / "tests" / "peers"
CACHE = Path(os.environ.get("SKIDWAY_PEERS", ROOT / ".cache" / "peers"))
PEERS = ("kafka", "hdfs")


class PeerMissing(AssertionError):
    """A peer's jars are not there."""


def jars(peer: str) -> Path:
    """The folder with the peer's jars; PeerMissing says how to get them."""
    folder = CACHE / peer
    if not (folder / ".complete").exists():
        raise PeerMissing(f"the jars of {peer} are not there: run `make peers`")
    return folder


def fetch(peer: str) -> None:
    """Have Maven copy the peer's jars; complete only when the marker is written last."""
    folder = CACHE / peer
    if (folder / ".complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["mvn", "-q", "-B", "-f", str(POMS / f"{peer}.pom.xml"), "dependency:copy-dependencies",
         f"-DoutputDirectory={folder}"],
        check=True, stdin=subprocess.DEVNULL,
    )
    (folder / ".complete").touch()


def provide_maven() -> None:
    """Maven on PATH, by apt-get where we are root and it is there."""
    if shutil.which("mvn"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=True, stdin=subprocess.DEVNULL)
        subprocess.run(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", "maven"], check=True,
            stdin=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        return
    raise SystemExit("Maven is needed for the jars of Apache Kafka and HDFS that the tests run: install `maven`.")


def main() -> int:
    """Fetch every peer's jars."""
    if all((CACHE / peer / ".complete").exists() for peer in PEERS):
        return 0
    provide_maven()
    for peer in PEERS:
        fetch(peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
