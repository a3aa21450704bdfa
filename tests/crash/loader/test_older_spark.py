"""The loader works on the oldest Spark version that pyproject.toml allows, with that version's own
pyspark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import foreign
from support.promises import promise
from tests.crash.loader.conftest import ON_SPARK, Loading, counted, fill, identities, lines

pytestmark = [pytest.mark.java, pytest.mark.foreign]


@promise("5 real loader")
def test_a_load_on_the_oldest_spark(loading: Loading, tmp_path: Path) -> None:
    """With Spark 4.1, each line is loaded once, and a later load continues after the first load."""
    older = {"PYTHONPATH": f"{foreign.older_spark()}:{os.environ.get('PYTHONPATH', '')}"}
    log = tmp_path / "spark.log"
    loading.way = ON_SPARK
    fill(loading, 0, 2000)
    program = loading.start(f"spark.log.file={log}", env=older)
    assert program.wait() == 0, program.output()
    assert "Running Spark version 4.1.0" in log.read_text()
    fill(loading, 1900, 200)
    program = loading.start(env=older)
    assert program.wait() == 0, program.output()
    assert identities(loading.rows()) == lines(2100)
    assert counted(loading) == 4200
    assert loading.state("staging/*") == []
