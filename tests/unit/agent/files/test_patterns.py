from pathlib import Path

import pytest

from agent.files.patterns import Pattern


@pytest.mark.parametrize(
    ("pattern", "path", "means"),
    [
        ("/a/*.log", "/a/b.log", True),
        ("/a/*.log", "/a/b/c.log", False),
        ("/a/*.log", "/a/.b.log", False),
        ("/a/.*.log", "/a/.b.log", True),
        ("/a/**/*.log", "/a/c.log", True),
        ("/a/**/*.log", "/a/x/y/c.log", True),
        ("/a/**/*.log", "/a/.x/c.log", False),
        ("/a/**", "/a/x/y/c", True),
        ("/a/?[bc].log", "/a/xc.log", True),
        ("/a/x.log", "/a/x.log", True),
        ("/a/x.log", "/a/x.log/y", False),
    ],
)
def test_patterns_mean_what_a_shell_means(pattern: str, path: str, means: bool) -> None:
    """*, ?, [...] stay within a name, ** goes down; hidden names are not meant."""
    assert Pattern(pattern).means(path) is means


def test_walking_finds_what_is_meant_and_nothing_else(tmp_path: Path) -> None:
    """Walking and meaning agree; exclusions hold; links that go round in circles end."""
    for name in ("a.log", "b.txt", "x/c.log", "x/y/d.log", ".h/e.log", "x/old.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "x" / "round").symlink_to(tmp_path)
    unreadable: list[tuple[str, str]] = []
    pattern = Pattern(f"{tmp_path}/**/*.log", (f"{tmp_path}/*/old.log",))
    found = [Path(path).relative_to(tmp_path) for path, _ in pattern.walk(unreadable)]
    assert [str(path) for path in found] == ["a.log", "x/c.log", "x/y/d.log"]
    assert unreadable == []
    assert list(Pattern(f"{tmp_path}/nowhere/*.log").walk(unreadable)) == []


def test_what_cannot_be_looked_into_is_reported(tmp_path: Path) -> None:
    """A directory that gives an error may hold files that nobody counts."""
    (tmp_path / "loop").symlink_to("loop")
    unreadable: list[tuple[str, str]] = []
    assert list(Pattern(f"{tmp_path}/loop/*.log").walk(unreadable)) == []
    assert [path for path, _ in unreadable] == [f"{tmp_path}/loop"]


def test_the_directory_to_watch() -> None:
    """The directory above the first wildcard, with or without those below it."""
    assert (Pattern("/a/b/*.log").root, Pattern("/a/b/*.log").is_deep) == ("/a/b", False)
    assert (Pattern("/a/*/b.log").root, Pattern("/a/*/b.log").is_deep) == ("/a", True)
    assert (Pattern("/a/b.log").root, Pattern("/a/**").root) == ("/a", "/a")
