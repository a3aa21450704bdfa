"""Signatures of audit messages: who can make one, and what a reader believes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.signing import signature
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import MasterKey
from skidway.audit.signing.verifier import Flaw, Verified, Verifier
from support.promises import promise

OLD, NEW = MasterKey(1, b"a" * 32), MasterKey(2, b"b" * 32)
WEB1, WEB2 = (Identity.parse(f"agent/dc1/{x}") for x in ("web1", "web2"))
VALUE = b"counts"


@promise("6 signed")
def test_a_reader_with_the_master_key_knows_who_has_signed() -> None:
    """The audit derives the key from the identity in the signature, so it needs no list of
    senders."""
    for master in (OLD, NEW):
        header = signature.sign(master.sender_key(WEB1), VALUE)
        assert Verifier([OLD, NEW]).verify(VALUE, header) == Verified(WEB1, master.number)


@promise("6 signed")
def test_a_reader_says_what_is_wrong() -> None:
    """A message without a signature, with bytes that are none, with a key that the reader does not
    have, of another value, and in the name of another sender are told apart."""
    reader, header = Verifier([NEW]), signature.sign(NEW.sender_key(WEB1), VALUE)
    former = signature.sign(OLD.sender_key(WEB1), VALUE)
    renamed = header.replace(b"web1", b"web2")
    assert reader.verify(VALUE, None).flaw is Flaw.UNSIGNED
    for damaged in (b"", header[:33], header[:33] + b"nobody", header[:33] + b"\xff"):
        assert reader.verify(VALUE, damaged).flaw is Flaw.DAMAGED
    assert reader.verify(VALUE, former) == Verified(WEB1, 1, Flaw.UNKNOWN_KEY)
    assert reader.verify(b"others", header) == Verified(WEB1, 2, Flaw.WRONG_SIGNATURE)
    assert reader.verify(VALUE, renamed) == Verified(WEB2, 2, Flaw.WRONG_SIGNATURE)
    assert reader.verify(VALUE, header).flaw is None


@promise("6 signed")
@given(st.binary(max_size=40), st.integers(0, 32 * 8 - 1))
def test_no_bit_may_differ(value: bytes, bit: int) -> None:
    """A signature with another bit, and a value with a byte more, are refused."""
    key = NEW.sender_key(WEB1)
    header = bytearray(signature.sign(key, value))
    assert signature.is_of(key, value, bytes(header))
    assert not signature.is_of(key, value + b"\0", bytes(header))
    header[bit // 8] ^= 1 << bit % 8
    assert not signature.is_of(key, value, bytes(header))


@promise("6 signed")
def test_a_sender_recognizes_its_own() -> None:
    """A sender that has only its own keys believes them, also the former one, and nobody else's."""
    reader = Verifier([master.sender_key(WEB1) for master in (OLD, NEW)])
    for master in (OLD, NEW):
        own, other = (signature.sign(master.sender_key(x), VALUE) for x in (WEB1, WEB2))
        assert reader.verify(VALUE, own).flaw is None
        assert reader.verify(VALUE, other).flaw is Flaw.UNKNOWN_KEY


@promise("6 signed")
def test_a_master_key_that_was_dropped_is_forgotten() -> None:
    """After a master key was dropped, the keys that were derived from it are worth nothing, even if
    the reader knew them."""
    reader, header = Verifier([OLD, NEW]), signature.sign(OLD.sender_key(WEB1), VALUE)
    assert reader.verify(VALUE, header).flaw is None
    reader.use([NEW])
    assert reader.verify(VALUE, header).flaw is Flaw.UNKNOWN_KEY
