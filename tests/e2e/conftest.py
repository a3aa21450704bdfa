"""One pipeline for a module's stories of faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pipeline import Pipeline
from support.trials import Stage, Story


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
    chosen: list[Story] = []
    for item in request.session.items:
        if item.path == request.path and isinstance(item, pytest.Function):
            callspec = getattr(item, "callspec", None)
            if callspec is not None and "story" in callspec.params:
                chosen.append(callspec.params["story"])
    made = Stage(pipeline, chosen)
    made.configure()
    pipeline.restart("agent")
    made.tell()
    return made
