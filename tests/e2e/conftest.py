"""The stories of the modules in this directory share one pipeline, except in modules that need a
different one. A story is a generator that causes a fault while lines are written, and then checks
the rows (see support.trials). The stories also share the runs of the loader, to save time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pipeline import Pipeline
from support.trials import Stage, Story, chosen


@pytest.hookimpl(tryfirst=True)  # runs before pytest's option -m selects tests by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives each test of a quick story the pytest mark `quick`."""
    for item in items:
        if isinstance(item, pytest.Function) and Path(__file__).parent in item.path.parents:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            story = params.get("story")
            if isinstance(story, Story) and story.is_quick:
                item.add_marker(pytest.mark.quick)


@pytest.fixture(scope="package")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Yields a pipeline whose programs all run. The agent has no file to read yet. The programs end
    with the last test here: they would take a tenth of a core from the tests that come after."""
    folder = tmp_path_factory.mktemp("pipeline")
    made = Pipeline(folder, [{"topic": "nothing", "paths": [str(folder / "nothing")]}])
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="package")
def site(request: pytest.FixtureRequest, pipeline: Pipeline) -> Stage:
    """Runs the stories of the selected tests to their ends, and returns the stage (a pipeline with
    its output) on which they ran."""
    return Stage(pipeline, chosen(request)).tell()


@pytest.fixture(scope="module")
def stage(site: Stage) -> Stage:
    """The stage on which a module's stories run. A stage consists of a pipeline and an output. A
    module that needs a different stage overrides this fixture."""
    return site
