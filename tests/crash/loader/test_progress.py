"""`skidway load status` shows what real runs of the loader are doing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway.loader.state import layout
from support.processes import eventually
from tests.crash.loader.conftest import Loading, identities, lines

pytestmark = pytest.mark.java


def notes(loading: Loading) -> list[Path]:
    return sorted((Path(loading.output) / layout.RUNS).glob("*"))


def runs(loading: Loading) -> list[dict[str, Any]]:
    """Returns the runs that `load status --json` prints."""
    done = loading.spark.run(loading.arguments(verb="status"))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
    return found


def test_a_killed_run_is_named_until_the_next_run(loading: Loading) -> None:
    """While a run works, `load status` shows its process id, the number of its load, and how many
    records it loads. If the run is killed, `load status` says so. The next run loads all records.
    Each run keeps its progress in a file. The run after the killed run deletes both its own file
    and the killed run's file."""
    loading.cluster.send(loading.topic, 0, 0, 4000)
    program = loading.start()
    try:
        eventually(lambda: notes(loading) or not program.running)
        (run,) = runs(loading)
        assert (run["state"], run["sentence"]) == ("running", None)
        assert (run["topic"], run["load"], run["records_total"]) == (loading.topic, 1, 4000)
    finally:
        program.kill()
    (run,) = runs(loading)
    assert run["state"] == "killed"
    assert f"pid {run['pid']}" in run["sentence"]
    assert loading.loaded()["rows"] == 4000
    assert identities(loading.rows()) == lines(4000, (1,))
    assert (notes(loading), runs(loading)) == ([], [])
    history = loading.spark.run(loading.arguments(verb="history"))
    (load,) = json.loads(history.stdout)
    assert load["seconds"] > 0
    assert load["rows_per_second"] == round(4000 / load["seconds"])


def test_the_log_has_the_progress(loading: Loading) -> None:
    """A run that is not started from a terminal writes its progress to the log."""
    loading.cluster.send(loading.topic, 0, 0, 4000)
    done = loading.run()
    logged = [json.loads(line) for line in done.stderr.splitlines() if "load_progress" in line]
    assert logged[0]["topic"] == loading.topic
    assert {each["records_total"] for each in logged} == {4000}
    assert {each["slices_total"] for each in logged} == {40}
