"""One pipeline for the stories of all modules; each module's stories share their loads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pipeline import Pipeline
from support.trials import Stage, chosen


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Every program of a site, running; the agent has no file yet."""
    folder = tmp_path_factory.mktemp("pipeline")
    made = Pipeline(folder, [{"topic": "nothing", "paths": [str(folder / "nothing")]}])
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, pipeline: Pipeline) -> Stage:
    """The module's stories, told to their ends; those alone that tests were asked for."""
    return Stage(pipeline, chosen(request)).tell()
