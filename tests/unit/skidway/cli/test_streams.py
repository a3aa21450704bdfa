from __future__ import annotations

import io
import json
import sys

import pytest

from skidway.cli import streams
from skidway.cli.output import print_json

HOSTILE = "\x00\x07\x1b[31m\r\t\x7f\x80\x9b\x9f\u061c\u200e\u202e\u2028\u2069\udc9b"
HOSTILE += "\u200b\ufeff\xad\U000e0041\u2060\u180e\u115f\u3164"
NEEDED = "\u0645\u06cc\u200c\u062e \u0915\u094d\u200d\u0937 👩\u200d👧 ❤\ufe0f \u0600"


def test_text_gets_through_only_with_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output and standard error alike, each control character of a text but the end of
    a line is an escape, whoever writes it. Letters of all languages stay."""
    with streams.guarded():
        print(f"größe 大 😀 {HOSTILE}")
        sys.stderr.writelines([HOSTILE, "\n"])
    for said in capsys.readouterr():
        assert said.endswith("\n")
        assert said[:-1].isprintable()
    print("\x1b[0m", end="")
    assert capsys.readouterr().out == "\x1b[0m", "the streams are as before"


def test_escapes_keep_the_meaning_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A JSON document on standard output has no control character, and means the same."""
    with streams.guarded():
        print_json({HOSTILE: [HOSTILE]})
    said = capsys.readouterr().out
    assert said.replace("\n", "").isprintable()
    assert json.loads(said) == {HOSTILE: [HOSTILE]}


def test_what_languages_and_emoji_need_is_let_through(capsys: pytest.CaptureFixture[str]) -> None:
    """Signs that join letters or emoji, or choose their form, reach the terminal as they are; those
    that nobody sees, and that hide in names, do not."""
    with streams.guarded():
        print(NEEDED)
        print("a\u200b\U000e0041\u3164b")
    assert capsys.readouterr().out == NEEDED + "\na\\u200b\\udb40\\udc41\\u3164b\n"


def test_guards_do_not_pile_up() -> None:
    """A command that is called inside of another command escapes each character once, and moves
    the same terminal's cursor."""
    before = sys.stdout
    sys.stdout = out = io.StringIO()
    try:
        with streams.guarded(), streams.guarded():
            print("\\ \x1b")
            assert streams.raw(sys.stdout) is out
    finally:
        sys.stdout = before
    assert out.getvalue() == "\\ \\u001b\n"
