from __future__ import annotations

from typing import Any

from skidway.schemas.consuming.rejected import _document, _table_row

REJECTED: dict[str, Any] = {
    "reason": "encoding", "detail": "", "host": "web1", "path": "/var/log/a.log", "first": 40,
}  # fmt: skip


def row(line: bytes) -> dict[str, Any]:
    return {"timestamp": 0, "offset": 3, **_document(REJECTED | {"line": line})}


def test_a_line_that_is_not_utf_8_is_shown_as_text() -> None:
    """`skidway rejected show` prints a rejected line as text, with escapes for the bytes that are
    not UTF-8. With --json, such a line is base64, and its key says so."""
    assert _table_row(row(b"bad utf8 \xff\xfe here"))["line"] == r"bad utf8 \xff\xfe here"
    assert row(b"bad utf8 \xff\xfe here")["line_base64"] == "YmFkIHV0Zjgg//4gaGVyZQ=="
    assert _table_row(row("caf\u00e9\t1".encode()))["line"] == "caf\u00e9\N{REPLACEMENT CHARACTER}1"
    assert "line_base64" not in row(b"one")
    assert _table_row(row(b""))["line"] == ""
