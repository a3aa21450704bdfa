"""A sender reads its key from a file, and goes on when the file is mended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import KeyRefused, MasterKey, text_of
from skidway.audit.signing.master_file import MasterFile
from skidway.audit.signing.signature import sign
from skidway.audit.signing.signer import LOOK_EVERY_S, Signer
from skidway.audit.signing.verifier import Flaw, Verifier
from support.clock import ManualClock
from support.promises import promise

MASTERS = [MasterKey(1, b"a" * 32), MasterKey(2, b"b" * 32)]
WEB1, WEB2 = (Identity.parse(f"agent/dc1/{x}") for x in ("web1", "web2"))


@promise("6 signed")
def test_the_newest_key_of_the_file_signs(tmp_path: Path) -> None:
    """While a master key is replaced, the file has two keys, and the one with the greatest number
    signs. When the file changes, the program uses the new content without a restart."""
    path, clock = tmp_path / "key", ManualClock()
    path.write_text(text_of([MASTERS[0].sender_key(WEB1)]))
    signer = Signer(path, _of_web1, clock)
    assert Verifier(MASTERS).verify(b"v", signer.sign([b"v"])[0]).key == 1
    path.write_text(text_of(x.sender_key(WEB1) for x in reversed(MASTERS)))
    assert Verifier(MASTERS).verify(b"v", signer.sign([b"v"])[0]).key == 1
    clock.advance(LOOK_EVERY_S)
    [header] = signer.sign([b"v"])
    assert Verifier(MASTERS).verify(b"v", header).key == 2
    assert signer.is_own(b"v", header)
    assert not signer.is_own(b"w", header)
    assert not signer.is_own(b"v", None)


@promise("6 signed")
@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda path: path.unlink(), "cannot be read: No such file or directory"),
        (lambda path: path.write_text("no key"), "has a damaged key"),
        (lambda path: path.write_text(""), "has no key"),
        (lambda path: path.write_bytes(b"\xff" * 70_000), "is too large for a key"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "cannot be read: It is not a regular file"),
        (
            lambda path: path.write_text(text_of([MASTERS[0].sender_key(WEB2)])),
            "is that of agent/dc1/web2, which may not sign a message of host web1",
        ),
        (lambda path: path.write_text(text_of([MASTERS[0]])), "has a master key"),
    ],
)
def test_a_key_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, break_it: object, words: str
) -> None:
    """If the key is missing, damaged, another host's or no file, nothing is signed with the former
    key, and one sentence says why. When the file is mended, signing goes on."""
    path, clock = tmp_path / "key", ManualClock()
    good = text_of([MASTERS[0].sender_key(WEB1)])
    path.write_text(good)
    signer = Signer(path, _of_web1, clock)
    assert signer.refusal is None
    assert callable(break_it)
    break_it(path)
    clock.advance(LOOK_EVERY_S)
    for _ in range(2):  # it stays refused
        assert f"The key of the audit messages ({path}) {words}" in str(signer.refusal)
        clock.advance(LOOK_EVERY_S)
    for use in (lambda: signer.sign([b"v"]), lambda: signer.is_own(b"v", None)):
        with pytest.raises(KeyRefused):
            use()
    path.unlink(missing_ok=True)
    path.write_text(good)
    clock.advance(LOOK_EVERY_S)
    assert signer.refusal is None
    assert signer.sign([b"v"])


@promise("6 signed")
def test_a_doubt_may_pass_without_a_change_of_the_file(tmp_path: Path) -> None:
    """If a program takes another name, the same file is asked again."""
    path, clock, doubts = tmp_path / "key", ManualClock(), ["a message of host web9"]
    path.write_text(text_of([MASTERS[0].sender_key(WEB1)]))
    signer = Signer(path, lambda _: doubts[0] if doubts else None, clock)
    assert "host web9" in str(signer.refusal)
    doubts.clear()
    clock.advance(LOOK_EVERY_S)
    assert signer.refusal is None


@promise("6 signed")
def test_the_collector_keeps_its_keys_when_the_file_is_bad(tmp_path: Path) -> None:
    """A collector does not start without master keys. While it runs, it keeps those that it read
    last, and says what is wrong with the file."""
    path, clock = tmp_path / "masters", ManualClock()
    with pytest.raises(KeyRefused, match="cannot be read: No such file"):
        MasterFile(path, clock)
    path.write_text(text_of(MASTERS[:1]))
    file = MasterFile(path, clock)
    header = _signed(MASTERS[0])
    assert file.verifier.verify(b"v", header).flaw is None
    path.write_text("no key")
    for _ in range(2):  # it stays refused
        clock.advance(LOOK_EVERY_S)
        file.look()
        assert file.problem == (
            f"The file of the master keys ({path}) has a damaged key. The keys read before hold."
        )
    assert file.verifier.verify(b"v", header).flaw is None
    path.write_text(text_of(MASTERS[1:]))
    clock.advance(LOOK_EVERY_S)
    file.look()
    assert file.problem is None
    assert file.verifier.verify(b"v", header).flaw is Flaw.UNKNOWN_KEY


def _of_web1(identity: Identity) -> str | None:
    return None if identity == WEB1 else "a message of host web1"


def _signed(master: MasterKey) -> bytes:
    return sign(master.sender_key(WEB1), b"v")
