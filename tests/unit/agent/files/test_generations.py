"""Tests how the agent derives the name of a log from the name of one of its rotated files, such as
`app.log.1`."""

import pytest

from skidway.agent.files.generations import generation


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("app.log.1", "app.log"),
        ("a\nb.log.1", "a\nb.log"),
        ("app.log-2", "app.log"),
        ("app.log.old", "app.log"),
        ("app.log-20261120", "app.log"),
        ("app.log-20261120-1763643325", "app.log"),
        ("app.log.2026-11-20_13-04-05", "app.log"),
        ("app.log.2026-11", "app.log"),
        ("messages-20261120", "messages"),
        ("app.1.log", "app.log"),
        ("app-20261120.log", "app.log"),
        ("app.2026-11-20.log", "app.log"),
        ("app.log.1.log.2", "app.log.1.log"),
        ("app-11-02-2026-1.log", "app.log"),
        ("app.log.bak1", "app.log"),
        ("app.log20261120", "app.log"),
        ("app20261120_001.log", "app.log"),
        ("app-2.log", "app.log"),
        ("app1.log", "app.log"),
        ("app_1.log", "app.log"),
        ("app.log.20-11-2026", "app.log"),
        ("app.log.2026-Nov-20", "app.log"),
        ("app.log.2026-11-20T13:04:05Z", "app.log"),
        ("app.log.bak", "app.log"),
        ("app.log.save", "app.log"),
        ("app.log.backup", "app.log"),
        ("app.log.orig", "app.log"),
        ("app.log~", "app.log"),
        ("app (2).log", "app.log"),
        ("app - Copy.log", "app.log"),
        ("0.log.20261121-070000", "0.log"),
        ("abc-json.log.1", "abc-json.log"),
        ("access.log.1763643325", "access.log"),
    ],
)
def test_names_that_rotation_gives(name: str, base: str) -> None:
    """The name of a rotated file contains a number, a date or a word such as `old`, after the log's
    name or before the log's file extension. There may be a separator before this part."""
    found = generation(name)
    assert found is not None
    assert base in found.bases
    assert found.plain is None


@pytest.mark.parametrize(
    "name",
    ["app.log", "mail.err", "app.log.swp", "1", ".1", "worker.log", "mailold.log", "archive.log"],
)
def test_names_of_strangers(name: str) -> None:
    """The name of another log, or of an editor's file, does not count as the name of a rotated
    file."""
    assert generation(name) is None


def test_a_compressed_generation_says_so() -> None:
    """From the name of a compressed rotated file, the agent derives the name that the file had
    before its compression."""
    strange = generation("a\nb.log.1.gz")
    assert strange is not None
    assert "a\nb.log" in strange.bases
    found = generation("app.log.1.gz")
    assert found is not None
    assert (found.bases, found.plain) == (("app.log", "app.log.1"), "app.log.1")
    assert generation("app.log.gz") == (("app.log",), "app.log")
