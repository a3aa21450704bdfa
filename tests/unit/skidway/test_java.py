from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from skidway import java
from skidway.errors import SkidwayError
from skidway.java import DROPPED_OPTION


def fake_java(home: Path, version: str) -> Path:
    """Writes a script that gives the same answer as Java of the given version, and returns its
    path."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        "#!/bin/sh\ncat >&2 <<END\nProperty settings:\n"
        f"    java.home = {home}\n    java.specification.version = {version}\nEND\n"
    )
    command.chmod(0o755)
    return command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    java.home = /j v\n    java.specification.version = 17\n", (17, Path("/j v"))),
        ("    java.specification.version = 1.8\n    java.home = /j/jre\n", (8, Path("/j/jre"))),
        ("    java.specification.version = 17\n", None),
        ("not java", None),
    ],
)
def test_version_and_home_are_read(text: str, expected: tuple[int, Path] | None) -> None:
    """Java's feature version and home directory are read from the properties that Java prints, even
    in Java 8's form. A program that prints anything else is not mistaken for Java."""
    assert java.parse_properties(text) == expected


def test_script_drops_only_the_missing_module(tmp_path: Path) -> None:
    """Skidway's start script starts the real Java command without the argument DROPPED_OPTION,
    because the installed Java may lack the module that this argument names. All other arguments are
    passed on unchanged, even if they are empty or contain quotes."""
    real = tmp_path / "it's java"
    real.write_text('#!/bin/sh\nfor a in "$@"; do printf "<%s>" "$a"; done\n')
    real.chmod(0o755)
    start = tmp_path / "start"
    start.write_bytes(java.script(real))
    start.chmod(0o755)
    given = ["-Xmx1g", DROPPED_OPTION, "a b", "", DROPPED_OPTION, "$x", "'", "--add-modules=other"]
    said = subprocess.run([start, *given], capture_output=True, text=True, check=True).stdout
    assert said == "<-Xmx1g><a b><><$x><'><--add-modules=other>"


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    """If the Java in JAVA_HOME is new enough, it is used. If it is not, the Java on PATH is
    used."""
    fake_java(tmp_path / "home", "21")
    fake_java(tmp_path / "path", "17")
    fake_java(tmp_path / "old", "11")
    path = f"{tmp_path / 'path' / 'bin'}:/usr/bin:/bin"
    found = java.find({"JAVA_HOME": str(tmp_path / "home"), "PATH": path})
    assert (found.version, found.source, found.home) == (21, "machine", tmp_path / "home")
    found = java.find({"JAVA_HOME": str(tmp_path / "old"), "PATH": path})
    assert found.command == tmp_path / "path" / "bin" / "java"
    assert java.environment(found) == {"JAVA_HOME": str(tmp_path / "path")}


def test_a_java_home_that_holds_a_script_stays_the_java_home(tmp_path: Path) -> None:
    """If JAVA_HOME or SKIDWAY_JAVA already names the directory of Skidway's own script that starts
    Java, this script is still used."""
    behind = fake_java(tmp_path / "real", "21")
    home = java.script_home(behind, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    for named in ("JAVA_HOME", "SKIDWAY_JAVA"):
        found = java.find({named: str(home), "PATH": "/nonexistent"})
        assert (found.command, found.home) == (home / "bin" / "java", home)


def test_named_java_is_taken_or_refused(tmp_path: Path) -> None:
    """The environment variable SKIDWAY_JAVA may be the path of a Java command or of a Java home
    directory. If there is no Java at this path, or too old a version, `find` raises an error and
    does not look for another Java."""
    command = fake_java(tmp_path / "a", "17")
    for name in (command, tmp_path / "a"):
        assert java.find({"SKIDWAY_JAVA": str(name)}).command == command
    fake_java(tmp_path / "old", "11")
    with pytest.raises(SkidwayError, match="is Java 11, but 17 or newer is needed"):
        java.find({"SKIDWAY_JAVA": str(tmp_path / "old")})
    with pytest.raises(SkidwayError, match="is no Java that starts"):
        java.find({"SKIDWAY_JAVA": str(tmp_path / "none")})


def test_no_java_at_all_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no Java is found, the error says how to install it."""
    monkeypatch.setattr(java.util, "find_spec", lambda _: None)
    with pytest.raises(SkidwayError, match="no Java found: install Java 17 or newer"):
        java.find({"PATH": "/nonexistent"})


def test_script_is_made_once_and_repaired(tmp_path: Path) -> None:
    """Skidway's script that starts Java is written once, to the user's cache directory. If it is
    damaged, it is written again."""
    real = tmp_path / "java"
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = java.script_home(real, environ)
    command = home / "bin" / "java"
    assert command.stat().st_mode & 0o111
    inode = command.stat().st_ino
    assert java.script_home(real, environ) == home
    assert command.stat().st_ino == inode
    command.write_text("broken")
    java.script_home(real, environ)
    assert command.read_bytes() == java.script(real)


def test_script_goes_to_an_own_temporary_directory_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a service user has no writable cache directory, the script that starts Java is written to
    a temporary directory that no other user can open."""
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "file").write_text("")
    home = java.script_home(tmp_path / "java", {"HOME": str(tmp_path / "file")})
    assert home.is_relative_to(tmp_path)
    assert next(tmp_path.glob("skidway-*")).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("with_home", [True, False])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_temporary_directory_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, with_home: bool
) -> None:
    """Skidway writes a script that starts Java. If the script can be written neither to the cache
    nor to the temporary directory, the error names both directories, or only the temporary one if
    the user has no home directory. In this test, a file or a link has the name that the temporary
    directory should have."""
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    own = tmp_path / f"skidway-{java.os.getuid()}"
    (tmp_path / "file").write_text("")
    if kind == "file":
        own.write_text("")
    else:
        (tmp_path / "elsewhere").mkdir()
        own.symlink_to(tmp_path / "elsewhere")
    environ = {"HOME": str(tmp_path / "file")} if with_home else {}
    with pytest.raises(SkidwayError, match="cannot write the start script") as raised:
        java.script_home(tmp_path / "java", environ)
    assert str(own) in str(raised.value)
    assert (str(tmp_path / "file") in str(raised.value)) == with_home


def test_a_java_that_tells_its_version_has_no_terminal(tmp_path: Path) -> None:
    """Java that is asked for its version has a session of its own. So if root has become a
    program's user, nobody writes through it to root's terminal."""
    command = fake_java(tmp_path / "home", "21")
    with command.open("a") as file:
        file.write(f"cut -d' ' -f6 /proc/$$/stat >{tmp_path}/session\n")
    java.find({"JAVA_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"})
    assert int((tmp_path / "session").read_text()) != os.getsid(0)
