"""Tests how the driver reports errors of tasks and of Spark itself."""

from __future__ import annotations

from skidway.errors import SkidwayError, Unreachable
from skidway.loader.spark.failures import TaskFailed, failure, sentence_in


def test_a_tasks_error_comes_back_with_its_status() -> None:
    """If a task on Spark cannot reach the registry, the loader ends with the exit status that means
    "unreachable"."""
    raised = TaskFailed(Unreachable('no "one" answered'))
    text = f"Job aborted ...\nloader.spark.TaskFailed: {raised}\n\n\tat org.apache..."
    error = failure(RuntimeError(text))
    assert isinstance(error, Unreachable)
    assert str(error) == 'no "one" answered'


def test_any_other_task_error_keeps_its_sentence() -> None:
    """If a task on Spark fails with another error than Unreachable, the driver raises a
    SkidwayError with the same message."""
    error = failure(RuntimeError(str(TaskFailed(SkidwayError("cannot write /out")))))
    assert (type(error), str(error)) == (SkidwayError, "cannot write /out")


def test_sparks_own_errors_are_one_sentence() -> None:
    """An error of Spark itself is reported in one line."""
    error = failure(RuntimeError("Py4J says:\n\n  Job 0 cancelled because of memory\n"))
    assert str(error) == "a Spark task failed: Job 0 cancelled because of memory"


WORKER_DIED = """An error occurred while calling o72.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed \
1 times, most recent failure: Lost task 0.0 (TID 1) (host executor driver): \
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.BasePythonRunner.applyOrElse(PythonRunner.scala:1136)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\t... 21 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:4568)
"""


def test_of_a_java_stack_trace_its_reason_is_told() -> None:
    """If the error of Spark is a Java stack trace, only the reason in it is reported, for example
    that a worker was killed."""
    error = failure(RuntimeError(WORKER_DIED))
    assert str(error) == "a Spark task failed: Python worker exited unexpectedly (crashed)."


def test_a_driver_that_does_not_start_says_why() -> None:
    """If the driver does not start, for example with a wrong spark.master, the error contains
    Spark's own reason."""
    text = (
        "WARNING: Using incubator modules\n"
        'Exception in thread "main" org.apache.spark.SparkException: '
        "Could not parse Master URL: 'foo'\n"
        "\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)\n"
    )
    assert sentence_in(text) == "Could not parse Master URL: 'foo'"
    assert sentence_in(" \n") == ""
