"""Tests the names and versions of wheels, and the lines for wheels in lists of requirements."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.packaging import own_wheel, third_party, wheels
from deploy.packaging.own_wheel import PackagingFailed, version_or_default
from deploy.packaging.third_party import PROGRAMS


def test_a_requirement_is_pinned_to_one_file() -> None:
    """The requirement line of a wheel contains the name and version from the wheel's file name, and
    the file's hash."""
    line = wheels.requirement("google_crc32c-1.9.0-cp311-cp311-manylinux_2_17_x86_64.whl", "ab12")
    assert line == "google-crc32c==1.9.0 --hash=sha256:ab12"


@pytest.mark.parametrize("version", ["1.2.3", "1.3.0rc1", "1.3.0.dev4", "2.0+site.7", "1.0.post1"])
def test_versions_in_normal_form_are_taken(version: str) -> None:
    """A version in pip's normal form is accepted. Such a version can be part of the names of
    directories, systemd units and packages."""
    assert version_or_default(version) == version


@pytest.mark.parametrize("version", ["v1.2", "1.2-rc1", "1.2.0-dev", "../up", "1.2 3", "1:2"])
def test_other_versions_are_refused_with_a_sentence(version: str) -> None:
    """A version that is not in pip's normal form, or that is a path, is refused. So such a version
    never becomes the name of a directory."""
    with pytest.raises(PackagingFailed, match="no version in normal form"):
        version_or_default(version)
    assert wheels.main(["--version", version]) == 2


def test_without_a_version_it_is_that_of_the_project() -> None:
    """`make wheels` without a version builds the version that pyproject.toml gives."""
    assert version_or_default(None) == own_wheel.project()["project"]["version"]


def test_a_build_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If pip fails, `make wheels` leaves the directory of an earlier build as it is, and no half
    directory beside it."""

    def fail(*_: str, **__: object) -> None:
        raise PackagingFailed("pip wheel failed")

    earlier = tmp_path / "1.2.3" / "wheels.json"
    earlier.parent.mkdir()
    earlier.touch()
    monkeypatch.setattr(own_wheel, "pip", fail)
    with pytest.raises(PackagingFailed, match="pip wheel failed"):
        wheels.collect("1.2.3", tmp_path)
    assert [*tmp_path.rglob("*")] == [earlier.parent, earlier]


def test_a_machine_on_which_wheels_cannot_be_built_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a clone's machine has no git, or the directory for temporary files is too small to build
    pyspark, `make wheels` says so in one sentence with what to do, before it builds anything."""
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(own_wheel, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PackagingFailed, match="apt-get install git"):
        own_wheel._files(["pyproject.toml"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2_400_000_000))
    with pytest.raises(PackagingFailed, match=r"has 2\.4 GB free.*needs 3 GB.*TMPDIR"):
        third_party._fetch(tmp_path)


def test_every_program_is_an_extra() -> None:
    """pyproject.toml has an extra with the name of each program. The program's list of requirements
    is made from this extra."""
    assert set(PROGRAMS) <= set(own_wheel.project()["project"]["optional-dependencies"])


def wheel(folder: Path, name: str) -> Path:
    """Writes a wheel that has only a name and a version."""
    made, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return made


@pytest.mark.parametrize("changed", [None, "thing", "setuptools"])
def test_only_files_with_the_locked_hashes_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str | None
) -> None:
    """If an index has another file for a locked version than when the version was locked, `make
    wheels` fails and names the hashes, whether a host would install the file or the file would
    only build others."""
    index, folder = tmp_path / "index", tmp_path / "wheels"
    index.mkdir()
    made = {name: wheel(index, name) for name in ("thing", "setuptools")}
    lock = tmp_path / "lock.txt"
    lock.write_text(
        "".join(
            f"{name}==1.0 \\\n    --hash=sha256:{third_party.sha256_of(file)}\n"
            for name, file in made.items()
        )
    )
    if changed is not None:
        with zipfile.ZipFile(made[changed], "a") as archive:
            archive.writestr("implant.py", "")
    monkeypatch.setattr(third_party, "LOCK", lock)
    monkeypatch.setattr(third_party, "TEMPORARY_BYTES", 0)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    if changed is None:
        third_party._fetch(folder)
        assert {each.name for each in folder.iterdir()} == {each.name for each in made.values()}
    else:
        with pytest.raises(PackagingFailed, match="DO NOT MATCH THE HASHES"):
            third_party._fetch(folder)


def test_hosts_get_the_versions_of_the_tests() -> None:
    """The list of the wheels locks each package in the version that the tests use, with hashes.
    It has pip and the builder of other wheels, too."""
    texts = [(own_wheel.ROOT / "requirements" / f"{x}.txt").read_text() for x in ("wheels", "test")]
    hosts, tests = (set(re.findall(r"^[\w.-]+==.*", text, re.M)) for text in texts)
    names = {line.partition("==")[0] for line in hosts - tests}
    assert names == {"pip", "setuptools"}
    blocks = re.split(r"^(?=\S)", texts[0], flags=re.M)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    assert third_party.locked("setuptools") in blocks
