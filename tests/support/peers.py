"""Fetches peers into .cache/peers. A peer is foreign software with which tests compare Skidway, or
to which they connect Skidway. The peers are the jars of Apache Kafka, of HDFS, of Confluent's Java
client for schema registries, and of Spark's connectors for Kafka and Avro. The sources of
kafka-python, with its own tests, are a peer, too. The server of a Kerberos realm is a Debian
package.

`make peers` runs `python tests/support/peers.py`, which fetches the peers that are missing. The
tests' fixtures fetch nothing; they raise PeerMissing if a peer is missing. The program needs Maven.
If Maven is missing and the program runs as root, the program installs Maven with apt-get. If it
does not run as root, it prints a sentence that asks the user to install Maven. Maven runs on the
same Java as Skidway, so PATH does not have to contain a Java.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from skidway import java
from skidway.errors import SkidwayError

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / "tests" / "peers"
CACHE = Path(os.environ.get("SKIDWAY_PEERS", ROOT / ".cache" / "peers"))
PEERS = ("kafka", "hdfs", "registry", "spark-kafka")
SOURCES = ("kafka-python",)
"""Python distributions whose sources the tests need. Their versions and hashes are pinned in
tests/peers."""
DEBIAN = (Path("/usr/bin"), Path("/usr/sbin"))
"""The directories of the commands from Debian packages, for the case that PATH does not contain
them."""
KERBEROS = ("krb5-kdc", "krb5-admin-server", "krb5-user", "libgssapi-krb5-2")
TRIES = 2


class PeerMissing(AssertionError):
    """Raised if the files of a peer, or of a client or tool that a test needs, are missing."""


def jars(peer: str) -> Path:
    """Returns the folder with the peer's jars. If the jars are missing, raises PeerMissing, which
    says how to get them."""
    if not is_complete(peer):
        raise PeerMissing(f"the jars of {peer} are not there: run `make peers`")
    return CACHE / peer


def fetch(peer: str, maven: str) -> None:
    """Copies the peer's jars into its folder with Maven. At the end, writes the file `.complete`
    with a digest of the pom.xml that pins the jars' versions.

    Raises SkidwayError if Maven cannot get the jars.
    """
    folder = CACHE / peer
    command = [
        maven, "-q", "-B", "-C", "-f", str(_pinned(peer)),
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
            (folder / ".complete").write_text(_digest(peer))
            return
    raise SkidwayError(
        f"Maven could not fetch the jars of {peer} (exit status {done.returncode}; what it said is "
        "above): make the Maven repository reachable, or name the .cache/peers of another clone "
        "with SKIDWAY_PEERS"
    )


def source(name: str) -> Path:
    """Returns the folder with the sources of a Python distribution. If the sources are missing,
    raises PeerMissing, which says how to get them."""
    if not is_complete(name):
        raise PeerMissing(f"the sources of {name} are not there: run `make peers`")
    return next(path for path in (CACHE / name).iterdir() if path.is_dir())


def fetch_source(name: str) -> None:
    """Fetches a source distribution with pip and unpacks it. Raises SkidwayError if pip fails."""
    folder = CACHE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--no-binary", ":all:", "--dest", str(folder),
        "--require-hashes", "--requirement", str(_pinned(name)),
    ]  # fmt: skip
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SkidwayError(
            f"pip could not fetch the sources of {name} (exit status {done.returncode}; what it "
            "said is above): make the package index reachable, or name the .cache/peers of "
            "another clone with SKIDWAY_PEERS"
        )
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    (folder / ".complete").write_text(_digest(name))


def provide_maven() -> str:
    """Returns the path of Maven's command. If Maven is missing and this program runs as root,
    installs Maven with apt-get. Raises SkidwayError if there is no Maven."""
    return provide("mvn", ["maven"], "Maven is needed for the jars of Apache Kafka and HDFS")


def provide_kdc() -> None:
    """Installs the server of a Kerberos realm with apt-get, if it is missing and this program runs
    as root. Raises SkidwayError if there is none."""
    provide("krb5kdc", KERBEROS, "krb5-kdc, the server of a Kerberos realm, is one of the programs")


def provide(command: str, packages: Sequence[str], why: str) -> str:
    """Returns the path of a command. If the command is missing and this program runs as root,
    installs the command's Debian packages with apt-get.

    If the command is still missing, raises SkidwayError, which says why the command is needed and
    what to install.
    """
    if found := _found(command):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
        for step in (["apt-get", "update", "-q"], install):
            subprocess.run(step, check=False, stdin=subprocess.DEVNULL, env=quiet)
        if found := _found(command):
            return found
    raise SkidwayError(
        f"{why} that the tests run: install it (Debian, Ubuntu: apt-get install "
        f"{' '.join(packages)})"
    )


def is_complete(peer: str) -> bool:
    """Returns whether the peer was fetched completely, and the file that pins its versions has not
    changed since."""
    marker = CACHE / peer / ".complete"
    return marker.exists() and marker.read_text() == _digest(peer)


def main() -> int:
    """Fetches every peer that is missing."""
    try:
        for peer in PEERS:
            if not is_complete(peer):
                fetch(peer, provide_maven())
        for name in SOURCES:
            if not is_complete(name):
                fetch_source(name)
        provide_kdc()
    except SkidwayError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _found(command: str) -> str | None:
    usual = (str(folder / command) for folder in DEBIAN if (folder / command).exists())
    return shutil.which(command) or next(usual, None)


def _digest(peer: str) -> str:
    return hashlib.sha256(_pinned(peer).read_bytes()).hexdigest()


def _pinned(peer: str) -> Path:
    return PINNED / (f"{peer}.txt" if peer in SOURCES else f"{peer}.pom.xml")


if __name__ == "__main__":
    sys.exit(main())
