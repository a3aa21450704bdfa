"""Tests how `skidway audit trace` and `compare` check their arguments. No test opens a
connection."""

from __future__ import annotations

import pytest

from skidway.cli.commands import main

AT = ("--bootstrap-server", "127.0.0.1:1")
COMPARE = ("compare", "--files", "/nowhere", "--topic", "t", "--shape", "text", *AT)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("trace", *AT), "Name a line as HOST:FILE:BYTE"),
        (("trace", "web1:/a:5", "--row", "_file_id=1,_offset=1", *AT), "Name a line as"),
        (("trace", "--partition", "0", "--offset", "5", *AT), "Name a line as"),
        (("trace", "web1", *AT), "is not HOST:FILE:BYTE"),
        (("trace", "web1:/a:5", "--since", "soon", *AT), "--since 'soon' is neither"),
        (("trace", "web1:/a:5", "--output", "/nowhere", *AT), "there is no such directory"),
        ((*COMPARE, "--limit", "0"), "--limit must lie in"),
        ((*COMPARE, "--since", "soon"), "--since 'soon' is neither"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the arguments of `trace` or `compare` make no sense, the command ends with status 2 and a
    sentence, before it asks any server."""
    assert main(["audit", *arguments]) == 2
    assert words in capsys.readouterr().err
