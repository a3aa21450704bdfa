"""If several tests are in one group, they run in the same process of a test run
(support.dealing)."""

from __future__ import annotations

import re
from pathlib import Path

from support.dealing import TOGETHER, group_of

ROOT = Path(__file__).parents[2]


def test_all_stories_of_the_site_are_one_process() -> None:
    """Stories are end-to-end tests of faults (see support.trials). The group "site" lists exactly
    the test modules whose stories run on the shared pipeline. If the group lacked one of these
    modules, a second process would start another pipeline for the module."""
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests" / "e2e").glob("test_*.py")
        if re.search(r"^STORIES = Stories\((?!stage=)", path.read_text(), re.MULTILINE)
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
