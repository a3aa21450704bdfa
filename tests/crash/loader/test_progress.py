"""What `skidway load status` says about real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway.loader.state import layout
from support.processes import eventually
from tests.crash.loader.conftest import Loading, identities, lines

pytestmark = [pytest.mark.crash, pytest.mark.java]


def notes(loading: Loading) -> list[Path]:
    return sorted((Path(loading.output) / layout.RUNS).glob("*"))


def runs(loading: Loading) -> list[dict[str, Any]]:
    """The runs in `load status --json`."""
    done = loading.spark.run(loading.arguments(verb="status"))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
    return found


def test_a_killed_run_is_named_until_the_next_run(loading: Loading) -> None:
    """While a run works, `load status` shows it with its process, its load and its records. If it
    is killed, `load status` says so, and no program takes it for a running one. The next run loads
    everything and deletes the note of the killed run and its own."""
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
    """A run away from a terminal logs how far it has come."""
    loading.cluster.send(loading.topic, 0, 0, 4000)
    done = loading.run()
    logged = [json.loads(line) for line in done.stderr.splitlines() if "load_progress" in line]
    assert logged[0]["topic"] == loading.topic
    assert {each["records_total"] for each in logged} == {4000}
    assert {each["slices_total"] for each in logged} == {4}
