from dataclasses import replace
from pathlib import Path

import pytest

from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import DEPTH_MAX, Pattern, patterns_of
from support.promises import promise

PATTERNS = ["/**/*.log", "/*/*.log", "/x/**", "/{x,y}/*", "/**/y/*", "/.h/*", "/x/[!c]*", "/x"]


@pytest.mark.parametrize("text", PATTERNS)
def test_paths_and_exclude_have_one_rule(tmp_path: Path, text: str) -> None:
    """A pattern of `exclude` leaves out exactly the files that the same pattern of `paths` takes,
    and a search finds exactly the files that the pattern matches."""
    names = ["a.log", "b.txt", "x/c.log", "x/y/d.log", "x/y/.e", ".h/f.log", "y/g", "x/z/y/h"]
    paths = {str(tmp_path / name) for name in names}
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    patterns = patterns_of([f"{tmp_path}{text}"])
    meant = {path for path in paths if any(each.means(path) for each in patterns)}
    assert {each.path for each in OperatingSystem().scan(patterns).found} == meant
    everything = patterns_of([f"{tmp_path}/**", f"{tmp_path}/**/.*", f"{tmp_path}/.h/*"])
    without = [replace(each, exclude=tuple(x.text for x in patterns)) for each in everything]
    left = {each.path for each in OperatingSystem().scan(without).found}
    assert left == paths - meant


def test_walking_finds_what_is_meant_and_nothing_else(tmp_path: Path) -> None:
    """The search finds exactly the files that the pattern matches and that are not excluded. The
    search ends even if a link leads to a directory above the link."""
    for name in ("a.log", "b.txt", "x/c.log", "x/y/d.log", ".h/e.log", "x/old.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "x" / "round").symlink_to(tmp_path)
    unreadable: list[tuple[str, str]] = []
    pattern = Pattern(f"{tmp_path}/**/*.log", (f"{tmp_path}/**/old.log",))
    found = [Path(path).relative_to(tmp_path) for path, _ in pattern.walk(unreadable)]
    assert [str(path) for path in found] == ["a.log", "x/c.log", "x/y/d.log"]
    assert unreadable == []
    assert list(Pattern(f"{tmp_path}/nowhere/*.log").walk(unreadable)) == []


def test_what_cannot_be_looked_into_is_reported(tmp_path: Path) -> None:
    """If the agent cannot list the names in a directory, it reports the directory, because the
    directory may contain files that the pattern matches."""
    (tmp_path / "loop").symlink_to("loop")
    unreadable: list[tuple[str, str]] = []
    assert list(Pattern(f"{tmp_path}/loop/*.log").walk(unreadable)) == []
    assert [path for path, _ in unreadable] == [f"{tmp_path}/loop"]


@promise("6 unreadable")
@pytest.mark.parametrize("pattern", ["closed/app.log", "*/app.log", "**/app.log", "closed/**"])
def test_where_no_file_can_be_looked_at_nobody_knows_of_one(tmp_path: Path, pattern: str) -> None:
    """If the agent cannot search a directory, for example because it has no right to, it reports
    the directory or a path in it, because the pattern may match a file there. This is so whether or
    not the pattern has a wildcard."""
    (tmp_path / "closed").symlink_to("x" * 300)  # a search below this link fails
    unreadable: list[tuple[str, str]] = []
    assert list(Pattern(f"{tmp_path}/{pattern}").walk(unreadable)) == []
    assert [path.startswith(f"{tmp_path}/closed") for path, _ in unreadable] == [True]


@pytest.mark.parametrize("exclude", ["/closed/**", "/*/**", "/{shut,closed}/**"])
def test_what_is_left_out_need_not_be_readable(tmp_path: Path, exclude: str) -> None:
    """A directory is not reported as unreadable if everything below it that the pattern could match
    is excluded. An operator can therefore exclude a directory that the agent has no right to
    read."""
    (tmp_path / "closed").symlink_to("x" * 300)
    unreadable: list[tuple[str, str]] = []
    for text in ("*/app.log", "**/app.log", "closed/app.log"):
        for pattern in patterns_of([f"{tmp_path}/{text}"], [f"{tmp_path}{exclude}"]):
            assert list(pattern.walk(unreadable)) == []
    assert unreadable == []


@promise("6 unreadable")
@pytest.mark.parametrize(
    ("text", "exclude"),
    [
        ("**/app.log", "closed/*"),
        ("**/app.log", "closed/app.log"),
        ("*/app.log", "closed/other.log"),
        ("*/*/app.log", "closed/*"),
        ("**/app.log", "closed"),
        ("*/.app.log", "closed/*"),
    ],
)
def test_what_may_be_read_must_be_readable(tmp_path: Path, text: str, exclude: str) -> None:
    """A directory that cannot be read is reported if `exclude` leaves out only a part of what the
    pattern could match below it."""
    (tmp_path / "closed").symlink_to("x" * 300)
    unreadable: list[tuple[str, str]] = []
    assert list(Pattern(f"{tmp_path}/{text}", (f"{tmp_path}/{exclude}",)).walk(unreadable)) == []
    assert [path.startswith(f"{tmp_path}/closed") for path, _ in unreadable] == [True]


def test_links_in_a_circle_hold_nothing(tmp_path: Path) -> None:
    """If a wildcard matches a link that points to itself, the agent does not report the link,
    because the link has no file."""
    (tmp_path / "circle").symlink_to("circle")
    unreadable: list[tuple[str, str]] = []
    for text in ("*/app.log", "**/app.log"):
        assert list(Pattern(f"{tmp_path}/{text}").walk(unreadable)) == []
    assert unreadable == []


@pytest.mark.parametrize("text", ["**/*.log", "**", "**/**/*.log", "*/*/*/*/*/*/*/*/*.log"])
def test_links_do_not_multiply_what_is_searched(tmp_path: Path, text: str) -> None:
    """A search ends soon, whatever links lie in the directories, and finds each file once."""
    deep = tmp_path.joinpath(*["d"] * 8)
    names = [f"n{number}" for number in range(14)]
    for name in names:
        (deep / name).mkdir(parents=True)
        (deep / name / "a.log").write_text("")
        for other in names:
            (deep / name / f"to-{other}").symlink_to(f"../{other}")
        (tmp_path / name).symlink_to(deep)
    for _ in range(7):
        deep = deep.parent
        (deep / "up").symlink_to(tmp_path / "d")
    unreadable: list[tuple[str, str]] = []
    paths = [path for path, _ in Pattern(f"{tmp_path}/{text}").walk(unreadable)]
    files = [Path(path).resolve() for path in paths if path.endswith(".log")]
    assert sorted(files) == sorted(set(tmp_path.resolve().glob("**/*.log")))
    assert unreadable == []


def test_a_directory_is_found_under_its_path_without_links(tmp_path: Path) -> None:
    """If links lead to a directory that the pattern reaches without them, its files have the path
    without links, and this path alone; otherwise the path of the first link."""
    for name in ("2026-11-28", "2026-11-29"):
        (tmp_path / "logs" / "shop" / name).mkdir(parents=True)
        (tmp_path / "logs" / "shop" / name / "a.log").write_text("")
    (tmp_path / "outside" / "below").mkdir(parents=True)
    (tmp_path / "outside" / "below" / "b.log").write_text("")
    (tmp_path / "logs" / "shop" / "0-current").symlink_to("2026-11-29")
    (tmp_path / "logs" / "0-all").symlink_to("shop")
    (tmp_path / "logs" / "z").symlink_to(tmp_path / "outside")
    (tmp_path / "logs" / "y").symlink_to(tmp_path / "outside")
    found = [path for path, _ in Pattern(f"{tmp_path}/logs/**/*.log").walk([])]
    assert [str(Path(path).relative_to(tmp_path / "logs")) for path in found] == [
        "shop/2026-11-28/a.log",
        "shop/2026-11-29/a.log",
        "y/below/b.log",
    ]
    through = [path for path, _ in Pattern(f"{tmp_path}/logs/shop/0-current/**/*.log").walk([])]
    assert through == [f"{tmp_path}/logs/shop/0-current/a.log"]


def test_a_link_that_is_not_followed_hides_no_other_way(tmp_path: Path) -> None:
    """If the rules refuse one of two links to a directory, the search takes the other one."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.log").write_text("")
    for name in ("logs/a", "logs/b"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "to").symlink_to(tmp_path / "outside")
    found = Pattern(f"{tmp_path}/logs/**/*.log").walk([], lambda path: "/b/" in path)
    assert [path for path, _ in found] == [f"{tmp_path}/logs/b/to/a.log"]


def test_directories_that_lie_too_deep_are_named(tmp_path: Path) -> None:
    """The agent does not search directories that are deeper than the limit. It reports these
    directories, because they may contain files."""
    deep = tmp_path.joinpath(*["d"] * (DEPTH_MAX + 2))
    deep.mkdir(parents=True)
    unreadable: list[tuple[str, str]] = []
    list(Pattern(f"{tmp_path}/**/*.log").walk(unreadable))
    assert [reason for _, reason in unreadable] == ["it lies more than 64 directories deep"]


def test_the_directory_to_watch() -> None:
    """The agent watches the directory above a pattern's first wildcard. If the pattern can match in
    subdirectories of this directory, the agent also watches the subdirectories."""
    assert (Pattern("/a/b/*.log").root, Pattern("/a/b/*.log").is_deep) == ("/a/b", False)
    assert (Pattern("/a/*/b.log").root, Pattern("/a/*/b.log").is_deep) == ("/a", True)
    assert (Pattern("/a/**").is_deep, Pattern("/a/**").means("/a/b/c")) == (True, True)
    assert (Pattern("/a/b.log").root, Pattern("/a/**").root) == ("/a", "/a")
