"""If the source has rules that hide secrets, the agent masks a rejected line before it sends the
line, or sends only a part of it, or none of its text."""

from __future__ import annotations

import pytest

from skidway.agent.parsers import escapings
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.rejected_text import (
    HEAD_BYTES_LEFT_OUT,
    WITHHELD,
    WITHHELD_DETAIL,
    RejectedText,
)

LINE = b"4111111111111111 secret=x 10.0.0.1"


def text(shape: str, encoding: str = "utf-8") -> RejectedText:
    return RejectedText(parse(shape), encoding, escapings())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("drop a = 1\nrename a to b\nsample 1/2", LINE),
        ("mask a for cards\nmask b for ips", b"[card] secret=x [ip]"),
        ('mask a matching "secret=."', b"4111111111111111 [masked] 10.0.0.1"),
        (r'mask a matching "[^ ]+=\\$?x"', b"4111111111111111 [masked] 10.0.0.1"),
        ('mask a matching "^secret"', WITHHELD),
        ('mask a matching "x$"', WITHHELD),
        (r'mask a matching "\bx"', WITHHELD),
        (r'mask a matching "(?:^|;)x"', WITHHELD),
        ("hash a", WITHHELD),
        ("mask a for cards\nremove b", WITHHELD),
    ],
)
def test_a_line_has_no_more_than_the_rules_allow(shape: str, expected: bytes) -> None:
    """Masks are applied to the whole rejected line. If the agent cannot know which part of the line
    is secret, it sends neither the line's text nor the detail (a text about the reason of the
    rejection)."""
    made = text(shape)
    assert made.line(LINE) == expected
    detail = "not 10.0.0.1"
    if expected == WITHHELD:
        assert made.detail(detail) == WITHHELD_DETAIL
    elif b"[ip]" in expected:
        assert made.detail(detail) == "not [ip]"
    else:
        assert made.detail(detail) == detail


def test_lines_in_other_encodings_are_masked() -> None:
    """With `on_error: replace`, a line with bytes that are not UTF-8 may be rejected for another
    reason. The masks are applied to such a line, too. If they find nothing in the line, the line
    keeps its bytes."""
    made = text("mask a for cards")
    assert made.line(b"\xff 4111111111111111") == "\ufffd [card]".encode()
    assert made.line(b"\xff plain") == b"\xff plain"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16le", "utf-16be", "shift-jis", "gb18030"])
def test_a_masked_line_keeps_its_encoding(encoding: str) -> None:
    """A masked line has the encoding of its source, like any other rejected line. If the masked
    text cannot be written in this encoding, the agent does not send the line's text."""
    word = "表" if encoding in ("shift-jis", "gb18030") else "ü"
    made = text("mask a for cards", encoding)
    found = made.line(f"{word} 4111111111111111".encode(encoding))
    assert found == f"{word} [card]".encode(encoding)
    if encoding == "shift-jis":
        assert made.line(b"\x81 4111111111111111") == WITHHELD


def test_the_end_of_a_head_is_left_out() -> None:
    """The agent has only the beginning of an over-long line. If the source has masks, the agent
    does not send the last bytes of this beginning, because they may be a part of a secret."""
    head = b"x" * HEAD_BYTES_LEFT_OUT + b" 411111111111"
    assert text("mask a for cards").line(head, is_head=True) == head[: len(b" 411111111111")]
    assert text("drop a = 1").line(head, is_head=True) == head


CARD = "4111111111111111"


@pytest.mark.parametrize(
    "line",
    [
        rf'{{"msg":"card:\n{CARD}"}}',
        rf'{{"log":"{{\"msg\":\"card:\\t{CARD}\"}}\n"}}',
        rf"card \u003c{CARD}\u003e a\u0040b.de",
        r'{"msg":"Bearer abcdefgh12345678\/SECRETREST0123456789"}',
        r'{"msg":"password\u003dgeheim123"}',
        r'{"msg":"pin \"1234\""}',
        '1,"pin ""1234"""',
        rf'"{{""msg"":""card:\n{CARD}""}}"',
        r'{"log":"1,\"{\"\"password\"\":\"\"hunter2secret\"\"}\",3\n"}',
        rf"\u001b]8;;https://a/?c={CARD}\u001b\\ link",
    ],
)
def test_escapes_hide_nothing_from_the_masks(line: str) -> None:
    """If the masks find more secrets in a rejected line after its escapes are decoded, the agent
    sends neither the line's text nor the detail (the reason in words)."""
    made = text('mask a for cards, emails, keys, tokens\nmask a matching "pin \\"[0-9]+\\""')
    assert made.line(line.encode()) == WITHHELD
    assert made.detail(line) == WITHHELD_DETAIL


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("\x1b]8;;https://ann:hunter2secret@h/\x1b\\ link", "[withheld]"),
        ("\x1b]0;ann@example.com\x07 title", "[withheld]"),
        (f"\x1b[{CARD}m x", "[withheld]"),
        (f"{CARD[:8]}\x1b[1m{CARD[8:]}", "[card]"),
        (f"\x1b[31m{CARD}\x1b[0m", "[card]"),
        ("\x1b[31mred\x1b[0m", None),
    ],
)
def test_codes_for_terminals_hide_nothing_from_the_masks(line: str, expected: str | None) -> None:
    """If a code for a terminal, such as the address of a link, has a secret, the agent does not
    send the line's text."""
    made = text("mask a for cards, emails, keys, tokens")
    assert made.line(line.encode()) == (expected or line).encode()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (rf'{{"msg":"a\n\u003c card {CARD}"}}', r'{"msg":"a\n\u003c card [card]"}'),
        (r'{"log":"{\"password\":\"a b\"}"}', r'{"log":"{\"password\":\"[key]\"}"}'),
        (r'{"path":"C:\\new\\d","n":"","x":"\ud83d\ude00"}', None),
    ],
)
def test_escapes_alone_withhold_nothing(line: str, expected: str | None) -> None:
    """A line with escapes is masked and sent if the escapes hide no secret from the masks."""
    made = text("mask a for cards, keys")
    assert made.line(line.encode()) == (expected or line).encode()


def test_what_masks_cannot_read_is_withheld() -> None:
    """If a source has masks, the agent does not send the text of a line that is not in the source's
    encoding."""
    made = text("mask a for keys")
    assert made.line("password=geheim".encode("utf-16-le")) == WITHHELD
    assert made.unreadable("passw\xf6rter".encode("latin-1")) == WITHHELD
    assert text("drop a = 1").unreadable(b"\xff") == b"\xff"


def test_a_head_keeps_no_piece_of_a_private_text() -> None:
    """The agent has only the beginning of an over-long line. It does not send this beginning if a
    secret may begin in it and end in the missing rest of the line."""
    long = b"x " * HEAD_BYTES_LEFT_OUT
    assert text('mask a matching "<s>.*?</s>"').line(b"<s>" + long, is_head=True) == WITHHELD
    token = b"eyJhbGciOiJIUzI1NiJ9." + b"e" * HEAD_BYTES_LEFT_OUT
    assert text("mask a for tokens").line(token, is_head=True) == WITHHELD
    assert text("mask a for tokens").line(long, is_head=True) == long[:-HEAD_BYTES_LEFT_OUT]
