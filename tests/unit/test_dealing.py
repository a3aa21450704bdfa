"""If several tests are in one group, they run in the same process of a test run. What takes long
begins first (support.dealing)."""

from __future__ import annotations

import re
from pathlib import Path

from support.dealing import LONG, TOGETHER, group_of, rank_of

ROOT = Path(__file__).parents[2]


def test_all_stories_of_the_site_are_one_process() -> None:
    """Stories are end-to-end tests of faults (see support.trials). The group "site" lists exactly
    the test modules whose stories run on the shared pipeline, whichever output they load into. If
    the group lacked one of these modules, a second process would start another pipeline for it."""
    shared = re.compile(
        r"^STORIES = Stories\((?!stage=)|^def stage\(.*pipeline: Pipeline", re.MULTILINE
    )
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests" / "e2e").glob("test_*.py")
        if shared.search(path.read_text())
    }
    assert found == set(TOGETHER["site"])


def test_what_is_named_is_there() -> None:
    """A group is a list of test files whose tests run in the same process. Every file in such a
    list exists. A file that is in no list is a group of its own."""
    for group, files in TOGETHER.items():
        for file in files:
            assert (ROOT / file).is_file()
            assert group_of(f"{file}::test_x[a@b::c]") == group
    alone = "tests/crash/broker/test_groups.py"
    assert group_of(f"{alone}::TestX::test_y") == alone


def test_what_takes_long_begins_first_and_small_files_last() -> None:
    """The groups and files that take longest begin before all others, and each of them exists. The
    unit tests, whose files are small, begin last."""
    assert all(each in TOGETHER or (ROOT / each).is_file() for each in LONG)
    ids = ["tests/unit/test_a.py::b", "tests/model/test_a.py::b", "tests/crash/x/test_a.py::b"]
    first = [f"{TOGETHER.get(each, (each,))[0]}::test_x" for each in LONG]
    assert sorted([*ids, *reversed(first)], key=rank_of) == [*first, *reversed(ids)]
