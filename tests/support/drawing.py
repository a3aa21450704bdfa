"""Draws a part of the tests. With the options `--parts N --drawn-by TEXT`, a run tries about one of
every N tests; the text, for example a commit's hash, decides which tests. `.ci/run` uses these
options on a slow machine (docs/testing.md).

The tests with the mark `deploy` are steps of stories (long tests) on test hosts. A later step needs
what an earlier step did, so the steps of a file are drawn together. No later step needs a step with
the mark `aside`, so such a step is drawn on its own. A step with this mark runs only if the other
steps of its file run. If N is above STORY_PARTS_MAX, the machine is too slow for any story.
"""

from __future__ import annotations

import hashlib

import pytest

STORY_PARTS_MAX = 4
"""The largest N of `--parts` for which a run includes stories on test hosts. `.ci/run` chooses a
larger N on a machine that is slower. On such a machine, a story takes longer than the time that
`.ci/run` has left after `make test`. On a machine that needed 880 seconds for `make test`, the
fleet's story took 2,540 seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options --parts and --drawn-by."""
    parser.addoption(
        "--parts", type=int, default=1, metavar="N", help="try about one of every N tests"
    )
    parser.addoption(
        "--drawn-by", default="", metavar="TEXT", help="the text that decides which tests"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Removes from `items` all tests that this run leaves out."""
    parts, by = config.getoption("--parts"), config.getoption("--drawn-by")
    left_out = [x for x in items if not _runs(x, parts, by)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def is_drawn(test_id: str, parts: int, by: str) -> bool:
    """Returns whether this test is drawn. The text `by` draws about one of every `parts` tests."""
    lot = hashlib.sha256(f"{by}\0{test_id}".encode()).digest()
    return int.from_bytes(lot[:8]) % parts == 0


def _runs(item: pytest.Item, parts: int, by: str) -> bool:
    """Returns whether this run includes a test. `parts` and `by` are the values of the options
    --parts and --drawn-by."""
    if "deploy" not in item.keywords:
        return is_drawn(item.nodeid, parts, by)
    if parts > STORY_PARTS_MAX or not is_drawn(item.nodeid.partition("::")[0], parts, by):
        return False
    return "aside" not in item.keywords or is_drawn(item.nodeid, parts, by)
