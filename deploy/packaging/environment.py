"""Builds a virtual environment in a folder other than the folder in which it will be used."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from deploy.packaging.own_wheel import PackagingFailed

LAUNCHER = """#!{python}
import sys
from skidway.cli import main
sys.exit(main())
"""


def build(wheels: Path, program: str, staging: Path, home: Path) -> None:
    """Installs a program's wheels below `staging`, for use at the absolute path `home`, and
    compiles them to byte code.

    The environment does not contain paths of the machine that builds it: it uses /usr/bin/pythonX.Y
    of the host on which it is installed. The environment's only commands are `skidway` and Python.
    """
    place = staging / home.relative_to("/")
    _run([sys.executable, "-m", "venv", "--without-pip", str(place)])
    (pip,) = wheels.glob("pip-*.whl")
    _run(
        [
            *(str(place / "bin" / "python"), str(pip / "pip"), "install", "--quiet"),
            *("--no-compile", "--no-index", "--find-links", str(wheels), "--require-hashes"),
            *("-r", str(wheels / f"{program}.txt")),
        ]
    )
    _compile(place, staging)
    _settle(place, home)


def _compile(place: Path, staging: Path) -> None:
    """Compiles the source files to byte code. The byte code contains the final paths of the source
    files, and does not depend on their modification times."""
    _run(
        [
            *(sys.executable, "-m", "compileall", "-q", "-j", "0"),
            *("--invalidation-mode", "unchecked-hash", "-s", str(staging), "-p", "/"),
            str(place / "lib"),
        ],
        may_fail=True,  # some packages have files that only other versions of Python can compile
    )


def _settle(place: Path, home: Path) -> None:
    short = sysconfig.get_python_version()
    commands = place / "bin"
    for each in commands.iterdir():
        each.unlink()
    (commands / "python").symlink_to(f"/usr/bin/python{short}")
    for name in ("python3", f"python{short}"):
        (commands / name).symlink_to("python")
    launcher = commands / "skidway"
    launcher.write_text(LAUNCHER.format(python=home / "bin" / "python"))
    launcher.chmod(0o755)
    lines = ["home = /usr/bin", "include-system-site-packages = false", f"version = {short}"]
    (place / "pyvenv.cfg").write_text("\n".join(lines) + "\n")


def _run(command: list[str], *, may_fail: bool = False) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        raise PackagingFailed(f"{' '.join(command[:4])} failed:\n{done.stdout}{done.stderr}")
