"""The check of a password is slow, so that guessing takes long. A password that was right once is
checked quickly afterwards. A file of users is accepted as a whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from skidway.errors import ConfigurationRefused
from skidway.schemas.registry import passwords
from skidway.schemas.registry.passwords import Hash, Users


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "LOG2_N", 10)


def users_of(path: Path, **known: str) -> Users:
    path.write_text("# users\n\n" + "".join(f"{n}:{Hash.of(p)}\n" for n, p in known.items()))
    return Users(path)


def test_a_hash_fits_its_password_alone() -> None:
    """A hash matches only the password from which it was made, even after the hash was written as
    text and read again. Each hash has its own salt."""
    made = Hash.of("geheim")
    assert Hash.read(str(made)).fits("geheim")
    assert not made.fits("Geheim")
    assert str(Hash.of("geheim")) != str(made)
    assert "geheim" not in str(made)


def test_the_hash_is_rfc_7914s() -> None:
    """The hash of a password is scrypt as in RFC 7914. The RFC's second test vector (N = 1024)
    gives the result that the RFC states."""
    derived = hashlib.scrypt(b"password", salt=b"NaCl", n=1024, r=8, p=16, dklen=64).hex()
    assert derived.startswith("fdbabe1c9d347200")
    made = Hash(10, 8, 4, b"NaCl", bytes(32))._derived("password")
    assert made == hashlib.scrypt(b"password", salt=b"NaCl", n=1024, r=8, p=4, dklen=32)


def test_users_of_a_file(tmp_path: Path) -> None:
    """A user's name and password are accepted only if the file contains the user and the password
    is right. A password may contain colons, blanks and letters that are not ASCII."""
    users = users_of(tmp_path / "users", ada="a:b c", grace="ü")
    assert users.check("ada", "a:b c")
    assert users.check("grace", "ü")
    assert not users.check("ada", "ü")
    assert not users.check("nobody", "a:b c")
    assert not users.check("", "")


def test_a_password_is_changed_without_a_gap(tmp_path: Path) -> None:
    """If a user has two lines in the file of users, with two passwords, both passwords are right
    until the old line is removed."""
    path = tmp_path / "users"
    old, new = f"ada:{Hash.of('old')}\n", f"ada:{Hash.of('new')}\n"
    path.write_text(old + new)
    users = Users(path)
    assert users.check("ada", "old")
    assert users.check("ada", "new")
    assert not users.check("ada", "other")
    replace(path, new)
    assert not users.is_remembered("ada", "old")
    assert not users.check("ada", "old")
    assert users.check("ada", "new")


def test_who_was_right_is_remembered_and_nobody_else(tmp_path: Path) -> None:
    """After a right password the slow hash is not computed again, so only a user's first request is
    slow."""
    users = users_of(tmp_path / "users", ada="x")
    assert not users.is_remembered("ada", "x")
    assert users.check("ada", "x")
    assert users.is_remembered("ada", "x")
    assert not users.is_remembered("ada", "y")
    assert not users.is_remembered("a", "dax")
    users.check("ada", "y")
    assert not users.is_remembered("ada", "y")


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    """A changed file of users is read again, so a removed user is refused at once."""
    path = tmp_path / "users"
    users = users_of(path, ada="x", grace="y")
    assert users.check("ada", "x")
    replace(path, f"grace:{Hash.of('z')}\n")
    assert not users.is_remembered("ada", "x")
    assert not users.check("ada", "x")
    assert users.check("grace", "z")


@pytest.mark.parametrize("content", ["nonsense\n", None])
def test_a_file_that_became_bad_changes_nothing(tmp_path: Path, content: str | None) -> None:
    """If the file of users becomes invalid or disappears, the users and passwords that were read
    before remain valid."""
    path = tmp_path / "users"
    users = users_of(path, ada="x")
    if content is None:
        path.unlink()
    else:
        replace(path, content)
    assert not users.is_remembered("ada", "x")
    assert users.check("ada", "x")
    assert not users.check("ada", "y")


@pytest.mark.parametrize(
    "line",
    [
        "ada",
        "ada:geheim",
        pytest.param(f":{Hash.of('x')}", id="nobody"),
        "ada:$scrypt$ln=30,r=8,p=1$c2FsdA$aGFzaA",
        "ada:$scrypt$ln=14,r=8,p=1$!$aGFzaA",
        "ada:$2y$05$abcdefghijklmnopqrstuv",
    ],
)
def test_a_line_that_is_none_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    """A file of users with an invalid line is refused at the start. The error has the line's number
    and shows no password."""
    path = tmp_path / "users"
    path.write_text(f"# users\n{line}\n")
    with pytest.raises(ConfigurationRefused, match=r"users:2: not USER:HASH") as caught:
        Users(path)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff", b"#" * (1 << 20) + b"#"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """A file of users that is missing, not UTF-8 or too large is refused."""
    path = tmp_path / "users"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationRefused, match="users"):
        Users(path)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    """If an editor saved the file of users with a byte order mark, the first user is known."""
    path = tmp_path / "users"
    path.write_text(f"anna:{Hash.of('secret')}\n", "utf-8-sig")
    assert Users(path).check("anna", "secret")


def replace(path: Path, content: Any) -> None:
    """Writes a new file with the given content, and renames it to `path`, so that it replaces the
    old file, as editors and Ansible do."""
    made = path.with_suffix(".new")
    made.write_text(content)
    os.replace(made, path)


def test_the_work_of_a_check_does_not_tell_who_is_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong password is checked against as many hashes for a user with one password, for a user
    with several, and for nobody. A hash that stands in for a missing one has the parameters of the
    file's most costly hash, also after the file has changed."""
    done: list[tuple[int, int, int]] = []
    derive = hashlib.scrypt

    def counted(password: bytes, **how: Any) -> bytes:
        done.append((how["n"], how["r"], how["p"]))
        return derive(password, **how)

    def work(name: str) -> list[tuple[int, int, int]]:
        done.clear()
        assert not users.is_remembered(name, "wrong")
        assert not users.check(name, "wrong")
        return list(done)

    path = tmp_path / "users"
    cheap, costly = (1 << 10, 8, 1), (1 << 11, 8, 2)
    two = "".join(f"ada:{Hash.of(each)}\n" for each in ("old", "new"))
    dear = str(Hash(11, 8, 2, b"salt", bytes(32)))
    path.write_text(f"grace:{Hash.of('one')}\n{two}")
    users = Users(path)
    monkeypatch.setattr(hashlib, "scrypt", counted)
    assert work("ada") == work("grace") == work("nobody") == work("") == [cheap, cheap]
    assert users.check("ada", "new")
    path.write_text(f"grace:{dear}\n{two}{two}")
    assert work("ada") == [cheap] * 4
    assert work("grace") == work("nobody") == [costly] * 4
    path.write_text("# nobody\n")
    assert work("ada") == [cheap]
