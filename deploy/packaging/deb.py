"""`make deb [VERSION=x]`: builds the agent as a Debian package that contains all its Python
packages.

    /opt/skidway/<version>/          virtual environment, from the wheels of `make wheels`
    /opt/skidway/current/agent       link to the environment
    /usr/bin/skidway                 link to the environment's command
    /lib/systemd/system/             the unit, as `skidway unit show agent` prints it
    /etc/skidway/agent.yml           conffile; not valid until it is edited

The package works only on a Debian release whose Python has the same minor version as the Python
that built the package. (Debian bookworm has 3.11.) The scripts that dpkg runs are in debian/ beside
this file.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.packaging import environment, own_wheel, wheels
from deploy.packaging.own_wheel import ROOT, PackagingFailed
from skidway import units

DEBIAN = Path(__file__).parent / "debian"
DIST = ROOT / "dist"
PACKAGE = "skidway-agent"
CONFIG = "etc/skidway/agent.yml"
SCRIPTS = ("postinst", "prerm", "postrm")

CONTROL = """\
Package: {package}
Version: {version}
Architecture: {architecture}
Maintainer: The Skidway maintainers <skidway@localhost>
Installed-Size: {kilobytes}
Depends: python{python}, libc6 (>= 2.28), libstdc++6, adduser
Section: admin
Priority: optional
Description: tails log files and publishes them to Kafka, exactly once
 The agent of Skidway, with a virtual environment of its own. Application logs go to brokers that
 speak the Kafka protocol; counts of what was sent prove later that all of it arrived.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the package, prints its path and returns 0. If the build fails, prints the reason and
    returns 1. Returns 2 if the version for the package is not in PEP 440's normal form."""
    parser = argparse.ArgumentParser(prog="make deb", description="the agent's Debian package")
    parser.add_argument("--version", help="instead of pyproject's; the tree is not changed")
    args = parser.parse_args(argv)
    try:
        version = own_wheel.version_or_default(args.version)
    except PackagingFailed as error:
        sys.stderr.write(f"make deb: {error}\n")
        return 2
    try:
        file = build(version, wheels.collect(version))
    except PackagingFailed as error:
        sys.stderr.write(f"make deb: {error}\n")
        return 1
    sys.stdout.write(f"{file}\n")
    return 0


def debian_version(version: str) -> str:
    """Returns the version, rewritten so that dpkg orders versions as PEP 440 does. For dpkg, `~`
    sorts before the end of a version, and `~~` sorts before `~a`.

        1.3.0.dev4 < 1.3.0a1 < 1.3.0rc1 < 1.3.0 < 1.3.0.post1 < 1.3.1
    """
    public, plus, local = version.partition("+")
    public = re.sub(r"(a|b|rc)(?=\d)", r"~\1", public)
    public = public.replace(".dev", "~~dev").replace(".post", "+post")
    return public + plus + local


def build(version: str, folder: Path, dist: Path = DIST) -> Path:
    """Builds the Debian package of a version from the wheels in `folder`, and returns the package's
    file. Raises PackagingFailed."""
    if shutil.which("dpkg-deb") is None:
        raise PackagingFailed("dpkg-deb is missing: install the package dpkg")
    architecture = _output(["dpkg", "--print-architecture"])
    file = dist / f"{PACKAGE}_{debian_version(version)}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix="skidway-deb-") as name:
        staging = Path(name) / "root"
        staging.mkdir(mode=0o755)
        _fill(staging, version, folder)
        _control(staging, version, architecture)
        _output(["dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(staging), str(file)])
    return file


def _fill(staging: Path, version: str, folder: Path) -> None:
    home = Path("/opt/skidway") / version
    environment.build(folder, "agent", staging, home)
    _link(staging / "opt/skidway/current/agent", f"../{version}")
    _link(staging / "usr/bin/skidway", "/opt/skidway/current/agent/bin/skidway")
    unit = "skidway-agent.service"
    _write(staging / "lib/systemd/system" / unit, units.text(unit))
    _write(staging / CONFIG, (DEBIAN / "agent.yml").read_text())
    _write(staging / "usr/share/doc" / PACKAGE / "copyright", (DEBIAN / "copyright").read_text())


def _control(staging: Path, version: str, architecture: str) -> None:
    files = sorted(f for f in staging.rglob("*") if f.is_file() and not f.is_symlink())
    sums = [f"{_md5(file)}  {file.relative_to(staging)}\n" for file in files]
    kilobytes = sum(file.stat().st_size for file in files) // 1024
    control = staging / "DEBIAN"
    _write(
        control / "control",
        CONTROL.format(
            package=PACKAGE,
            version=debian_version(version),
            architecture=architecture,
            kilobytes=kilobytes,
            python=sysconfig.get_python_version(),
        ),
    )
    _write(control / "conffiles", f"/{CONFIG}\n")
    _write(control / "md5sums", "".join(sums))
    for name in SCRIPTS:
        _write(control / name, (DEBIAN / name).read_text(), mode=0o755)


def _write(file: Path, text: str, *, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def _link(file: Path, target: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(target)


def _md5(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackagingFailed(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
