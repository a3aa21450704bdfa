"""What surrounds Spark: its log's configuration, and the errors that come back through it."""

from __future__ import annotations

import re
from pathlib import Path

from loader.settings import LoaderSettings
from loader.spark import TaskFailed, failure, log4j_properties, properties
from skidway.demo.sources import SPARK_LINE
from skidway.errors import SkidwayError, Unreachable


def settings(**more: object) -> LoaderSettings:
    given = {"bootstrap_servers": "x:1", "schema_registry_url": "http://x", "topics": ["t"]}
    return LoaderSettings(**given, output="/out", **more)  # type: ignore[arg-type]


def test_a_tasks_error_comes_back_with_its_status() -> None:
    """An unreachable registry in a task ends the program with the status of unreachable."""
    raised = TaskFailed(Unreachable('no "one" answered'))
    text = f"Job aborted ...\nloader.spark.TaskFailed: {raised}\n\n\tat org.apache..."
    error = failure(RuntimeError(text))
    assert isinstance(error, Unreachable)
    assert str(error) == 'no "one" answered'


def test_any_other_task_error_keeps_its_sentence() -> None:
    """A refusal of ours is no unreachable peer."""
    error = failure(RuntimeError(str(TaskFailed(SkidwayError("cannot write /out")))))
    assert (type(error), str(error)) == (SkidwayError, "cannot write /out")


def test_sparks_own_errors_are_one_sentence() -> None:
    """What Spark says by itself is cut to one line."""
    error = failure(RuntimeError("Py4J says:\n\n  Job 0 cancelled because of memory\n"))
    assert str(error) == "a Spark task failed: Job 0 cancelled because of memory"


def test_the_log_file_has_the_line_that_is_tailed() -> None:
    """Spark's log file can be read with the expression that the demo gives its agent."""
    text = log4j_properties(Path("/tmp/spark.log"))
    assert "appender.a.fileName = /tmp/spark.log" in text
    line = "2026-01-02 03:04:05.678 INFO  [main] SparkContext - Running Spark"
    assert "%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p [%t] %c{1} - %m%n" in text
    assert re.fullmatch(SPARK_LINE, line)


def test_properties_of_the_operator_win(tmp_path: Path) -> None:
    """Every Spark property can be set, ours included."""
    given = properties(settings(spark_conf={"spark.ui.enabled": "true", "x": "y"}), tmp_path)
    assert (given["spark.ui.enabled"], given["x"]) == ("true", "y")
    assert given["spark.master"] == "local[*]"
    assert (tmp_path / "log4j2.properties").read_text().startswith("status = error")
