import pytest

from agent.files.generations import generation


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("app.log.1", "app.log"),
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
    ],
)
def test_names_that_rotation_gives(name: str, base: str) -> None:
    """Numbers, dates and a few words, behind the name or before its ending."""
    found = generation(name)
    assert found is not None
    assert base in found.bases
    assert found.plain is None


@pytest.mark.parametrize(
    "name", ["app.log", "mail.err", "app-2.log", "app.log.bak", "app.log.swp", "1", ".1", "app.gz"]
)
def test_names_of_strangers(name: str) -> None:
    """Another log, a copy, an editor's file: nothing that is read unasked."""
    assert generation(name) is None


def test_a_compressed_generation_says_so() -> None:
    """With the name that it had before."""
    found = generation("app.log.1.gz")
    assert found is not None
    assert (found.bases, found.plain) == (("app.log",), "app.log.1")
