"""Chooses the seeds and random examples of a test run, in such a way that a failure can be
repeated.

By default every run tries the same seeds and examples: a test's seeds are written in its code, and
Hypothesis derives its examples from the code of the test. With the option `--share N`, a run tries
only one of every N seeds and examples; `make test` and `make test-deep` use this option. A run with
`--hypothesis-seed N` is called an exploration. It tries other seeds and examples: Hypothesis starts
from N, and N times STRIDE is added to each seed that is written in a test. `make test-deep` is the
exploration 1, so it tries what `make test` has not tried. A test takes all its seeds from the
fixture `seeds`, or a single seed from the parameter `seed`::

    def test_order(seeds):
        for seed in seeds(range(500)): ...

    @pytest.mark.parametrize("seed", range(40), indirect=True)
    def test_order(seed): ...

Every test that uses such seeds or examples gets the pytest mark `random`. `make explore` runs these
tests with new seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

Seeds = Callable[[range], range]

STRIDE = 1_000_000
"""With `--hypothesis-seed N`, N times this number is added to each seed that is written in a
test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option --share."""
    parser.addoption(
        "--share",
        type=int,
        default=1,
        metavar="N",
        help="try one of every N random schedules and examples",
    )


@pytest.hookimpl(tryfirst=True)  # must run before a test module makes its own Hypothesis settings
def pytest_configure(config: pytest.Config) -> None:
    """Sets up Hypothesis without time limits for single examples, so that no test fails only
    because the machine is busy."""
    settings.register_profile(
        "skidway",
        deadline=None,
        database=None,
        derandomize=_explored(config) is None,
        max_examples=100 // config.getoption("--share"),
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("skidway")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives the mark `random` to the tests that use seeds or random examples. With --share N, keeps
    only one of every N tests that differ only by their seed."""
    for item in items:
        if _is_random(item):
            item.add_marker(pytest.mark.random)
    share = config.getoption("--share")
    left_out = [item for item in items if not _is_of_share(item, share)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _is_of_share(item, share)]


def share_of(count: int) -> int:
    """Returns the number of examples for a test that asks for `count` examples. With --share, the
    number is smaller."""
    return max(1, count * settings.default.max_examples // 100)


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> Seeds:
    """Returns a function. The function gets the range of all seeds of a test, and returns the range
    of those that this run tries. With --share, these are fewer seeds. In an exploration (a run with
    --hypothesis-seed), they are other seeds than in ordinary runs."""
    share, moved = request.config.getoption("--share"), STRIDE * (_explored(request.config) or 0)

    def chosen(named: range) -> range:
        count = max(1, len(named) // share)
        first = named.start + moved
        return range(first, first + count)

    return chosen


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Returns the test's parameter `seed`. In an exploration (a run with --hypothesis-seed N), adds
    N times STRIDE to this parameter."""
    return int(request.param) + STRIDE * (_explored(request.config) or 0)


def _explored(config: pytest.Config) -> int | None:
    """Returns the N of the option --hypothesis-seed, or None if this run does not have the
    option."""
    given = config.getoption("--hypothesis-seed", default=None)
    return None if given is None else int(given)


def _is_random(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "seeds" in names or "seed" in names or is_hypothesis_test(getattr(item, "obj", None))


def _is_of_share(item: pytest.Item, share: int) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is None or callspec.params.get("seed", 0) % share == 0
