"""Random schedules and examples: which ones a run tries, and how one of them is had again.

By default every run tries the same ones: seeds are written in the tests, and Hypothesis derives its
examples from the test's own code. `--short` tries a share of them (what `make test` runs).
`--hypothesis-seed N` tries others: Hypothesis starts from N, and the tests' own seeds move by it.
A test takes its seeds from the fixture `seeds`, or one a test from the parameter `seed`::

    def test_order(seeds):
        for seed in seeds(range(500)): ...

    @pytest.mark.parametrize("seed", range(40), indirect=True)
    def test_order(seed): ...

What draws anything at all carries the mark `random`; `make explore` runs these with new seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import is_hypothesis_test, settings

Seeds = Callable[[range], range]

SHARE = 8
"""One of so many is tried with --short."""
STRIDE = 1_000_000
"""So far apart are the seeds of two explorations."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """--short."""
    parser.addoption(
        "--short",
        action="store_true",
        help=f"try one of {SHARE} random schedules and examples",
    )


@pytest.hookimpl(tryfirst=True)  # before a test module makes settings of its own
def pytest_configure(config: pytest.Config) -> None:
    """How Hypothesis runs: without deadlines, since a busy machine is no fault of the code."""
    settings.register_profile(
        "skidway",
        deadline=None,
        database=None,
        derandomize=_explored(config) is None,
        max_examples=100 // SHARE if config.getoption("--short") else 100,
        print_blob=True,
    )
    settings.load_profile("skidway")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what is random; --short keeps one of SHARE of the tests that differ by their seed."""
    for item in items:
        if _is_random(item):
            item.add_marker(pytest.mark.random)
    if config.getoption("--short"):
        config.hook.pytest_deselected(items=[item for item in items if not _is_of_share(item)])
        items[:] = [item for item in items if _is_of_share(item)]


def share_of(count: int) -> int:
    """So many examples for a test that wants `count` of them: fewer with --short."""
    return max(1, count * settings.default.max_examples // 100)


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> Seeds:
    """Of the seeds that a test names, those that this run tries."""
    short, moved = request.config.getoption("--short"), STRIDE * (_explored(request.config) or 0)

    def chosen(named: range) -> range:
        count = max(1, len(named) // SHARE) if short else len(named)
        first = named.start + moved
        return range(first, first + count)

    return chosen


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The test's parameter of that name, moved in an exploration."""
    return int(request.param) + STRIDE * (_explored(request.config) or 0)


def _explored(config: pytest.Config) -> int | None:
    """The number of an exploration; None when this run is none."""
    given = config.getoption("--hypothesis-seed", default=None)
    return None if given is None else int(given)


def _is_random(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "seeds" in names or "seed" in names or is_hypothesis_test(getattr(item, "obj", None))


def _is_of_share(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is None or callspec.params.get("seed", 0) % SHARE == 0
