"""The keys of the audit: how they are derived, and what the files with them say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.signing.identity import Identity, IdentityInvalid
from skidway.audit.signing.keys import (
    KeyRefused,
    MasterKey,
    SenderKey,
    master_keys_in,
    new_master_key,
    sender_keys_in,
    text_of,
)
from support.promises import promise

WEB1 = Identity.parse("agent/dc1/web1")


@promise("6 signed")
@pytest.mark.parametrize(
    "text",
    [
        "agent/dc1/web1",
        "agent/dc1/web1/payments",
        "counter/broker/dc1",
        "counter/mirror/offline/second counter",
        "loader/offline/hdfs://nn:8020/logs",
        "recount/loader1",
        "person/Ada Lovelace",
    ],
)
def test_an_identity_says_who_sends(text: str) -> None:
    """The text of an identity has the role and the names of the sender, and nothing is lost when it
    is read: a host, a cluster, or an output with slashes."""
    assert str(Identity.parse(text)) == text


@promise("6 signed")
@pytest.mark.parametrize(
    "text",
    [
        "", "agent", "agent/dc1", "agent//web1", "agent/dc1/", "agent/dc1/web1/", "root/ada",
        "counter/broker", "counter/agent/dc1", "loader/offline", "person/", "person", "recount/",
        "agent/dc1/web\n1", "agent/dc1/web\u202e1", "person/" + "a" * 9_000,
    ],
)  # fmt: skip
def test_no_other_text_is_an_identity(text: str) -> None:
    """A text that lacks a part, or that could not be shown in one line, is refused."""
    with pytest.raises(IdentityInvalid, match="is no identity"):
        Identity.parse(text)


@promise("6 signed")
def test_each_sender_has_another_key() -> None:
    """The key of a sender depends on the master key and on every letter of the identity, so no host
    can compute the key of another."""
    first, second = new_master_key(), new_master_key()
    names = ["agent/dc1/web1", "agent/dc1/web2", "agent/dc2/web1", "person/ada", "recount/web1"]
    keys = [master.sender_key(Identity.parse(x)) for master in (first, second) for x in names]
    assert len({key.secret for key in keys}) == len(keys)
    assert first.sender_key(WEB1) == MasterKey(first.number, first.secret).sender_key(WEB1)
    assert first.secret not in {key.secret for key in keys}


@promise("6 signed")
def test_no_key_is_in_a_log() -> None:
    """What Python shows of a key, for example in a traceback, does not have its secret."""
    master = MasterKey(1, b"s" * 32)
    for shown in (repr(master), repr(master.sender_key(WEB1))):
        assert "sss" not in shown
        assert "secret" not in shown


@promise("6 signed")
def test_files_are_read_as_they_are_written() -> None:
    """Both kinds of files keep their keys, in the order of the numbers, and may have remarks."""
    masters = [MasterKey(2, b"b" * 32), MasterKey(1, b"a" * 32)]
    assert master_keys_in("# ours\n\n" + text_of(masters)) == sorted(
        masters, key=lambda x: x.number
    )
    keys = [each.sender_key(WEB1) for each in masters]
    assert sender_keys_in(text_of(keys)) == sorted(keys, key=lambda x: x.number)


@promise("6 signed")
def test_a_file_has_one_key_or_two() -> None:
    """While a master key is replaced there are two; a third one is made only after one was
    dropped, and numbers are not used again."""
    first = new_master_key()
    second = new_master_key([first])
    assert [first.number, second.number] == [1, 2]
    with pytest.raises(KeyRefused, match="Drop the old one"):
        new_master_key([first, second])
    assert new_master_key([second]).number == 3
    with pytest.raises(KeyRefused, match="above 255"):
        new_master_key([MasterKey(255, b"a" * 32)])


@promise("6 signed")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no key"),
        ("# nothing\n", "has no key"),
        ("hello\n", "has a damaged key"),
        ("0 " + "00" * 36 + " agent/dc1/web1", "has a damaged key"),
        ("256 " + "00" * 36 + " agent/dc1/web1", "has a damaged key"),
        ("1 " + "00" * 36 + " agent/dc1/web1", "has a damaged key"),
        ("\u0661 " + "00" * 36 + " agent/dc1/web1", "has a damaged key"),
    ],
)
def test_a_file_without_a_good_key_says_so(text: str, words: str) -> None:
    """A file that is empty, cut or of something else is refused with a reason."""
    with pytest.raises(KeyRefused, match=words):
        sender_keys_in(text)
    with pytest.raises(KeyRefused, match=words):
        master_keys_in(text.removesuffix(" agent/dc1/web1"))


@promise("6 signed")
def test_a_file_has_the_keys_of_one_sender() -> None:
    """A master key never serves as the key of a sender, nor the other way round, and a file has
    neither the keys of two senders nor two keys of one number."""
    master = MasterKey(1, b"a" * 32)
    own, other = (
        master.sender_key(WEB1),
        MasterKey(2, b"b" * 32).sender_key(Identity.parse("agent/dc1/web2")),
    )
    again = SenderKey(1, b"c" * 32, WEB1)
    third = SenderKey(3, b"c" * 32, WEB1)
    for text, words in (
        (text_of([master]), "belongs only where a collector runs"),
        (text_of([own, other]), "several senders"),
        (text_of([own, again]), "two keys of one number"),
        (text_of([own, SenderKey(2, b"c" * 32, WEB1), third]), "more than 2 keys"),
    ):
        with pytest.raises(KeyRefused, match=words):
            sender_keys_in(text)
    with pytest.raises(KeyRefused, match="has the key of a sender"):
        master_keys_in(text_of([own]))


@promise("6 signed")
@given(st.data())
def test_a_changed_line_is_noticed(data: st.DataObject) -> None:
    """If any letter of a line is changed, the line is damaged: the key of one sender does not
    become that of another by editing its name."""
    line = text_of([MasterKey(1, bytes(range(32))).sender_key(WEB1)]).strip()
    at = data.draw(st.integers(0, len(line) - 1))
    letter = data.draw(st.sampled_from("0123456789abcdefwx/ "))
    changed = line[:at] + letter + line[at + 1 :]
    if changed != line:
        with pytest.raises(KeyRefused):
            sender_keys_in(changed)
