"""Tests how the driver reports errors of tasks and of Spark itself."""

from __future__ import annotations

import socket

import pytest

from skidway.errors import SkidwayError, Unreachable
from skidway.loader.spark.failures import (
    GONE,
    TaskFailed,
    failure,
    newest_warning,
    not_started,
    sentence_in,
)

TEMPORARY = "/tmp/skidway-spark-1"


def test_a_tasks_error_comes_back_with_its_status() -> None:
    """If a task on Spark cannot reach the registry, the loader ends with the exit status that means
    "unreachable"."""
    raised = TaskFailed(Unreachable('no "one" answered'))
    text = f"Job aborted ...\nloader.spark.TaskFailed: {raised}\n\n\tat org.apache..."
    error = failure(RuntimeError(text), TEMPORARY)
    assert isinstance(error, Unreachable)
    assert str(error) == 'no "one" answered'


def test_any_other_task_error_keeps_its_sentence() -> None:
    """If a task on Spark fails with another error than Unreachable, the driver raises a
    SkidwayError with the same message."""
    error = failure(RuntimeError(str(TaskFailed(SkidwayError("cannot write /out")))), TEMPORARY)
    assert (type(error), str(error)) == (SkidwayError, "cannot write /out")


def test_sparks_own_errors_are_one_sentence() -> None:
    """An error of Spark itself is reported in one line."""
    error = failure(RuntimeError("Py4J says:\n\n  Job 0 cancelled because of memory\n"), TEMPORARY)
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
    error = failure(RuntimeError(WORKER_DIED), TEMPORARY)
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
    java = "Unrecognized option: -x\nError: Could not create the Java Virtual Machine.\n"
    assert sentence_in(f"{java}Error: A fatal exception has occurred. Program will exit.\n") == (
        "Unrecognized option: -x"
    )
    assert sentence_in(" \n") == ""


MASTER_IS_AWAY = """WARNING: Using incubator modules: jdk.incubator.vector
2026-11-29 00:20:04.897 WARN  [pool-0] StandaloneAppClient$ClientEndpoint - Failed to connect to \
master 127.0.0.1:9
org.apache.spark.SparkException: Exception thrown in awaitResult: 
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.IOException: Failed to connect to /127.0.0.1:9
\t... 4 more
Caused by: java.net.ConnectException: finishConnect(..) failed: Connection refused
2026-11-29 00:20:24.874 ERROR [retry] StandaloneSchedulerBackend - Application has been killed. \
Reason: All masters are unresponsive! Giving up.
2026-11-29 00:20:31.392 WARN  [loop-0] StandaloneAppClient - Drop UnregisterApplication(null)
Caused by: java.lang.IllegalStateException: RpcEnv is stopped
"""  # noqa: W291 - Spark's own text
STOPPED = RuntimeError(
    "An error occurred\n: java.lang.IllegalStateException: stopped\n\tat org.X.a("
)
MISSING = RuntimeError(
    "An error\n: java.io.FileNotFoundException: /a.tar.gz\n\tat org.X.f(X.scala:1)"
)


def test_a_start_whose_application_was_dropped_has_the_reason_from_sparks_log() -> None:
    """If the master of a cluster drops the application, the error names the master, and the reason
    and its cause from Spark's log: the error that Spark raises has none of them."""
    error = not_started("spark://h:9", STOPPED, MASTER_IS_AWAY, TEMPORARY)
    assert (type(error), str(error)) == (
        Unreachable,
        "Spark did not start on spark://h:9: All masters are unresponsive! Giving up. "
        "(finishConnect(..) failed: Connection refused)",
    )
    removed = "x ERROR a - Application has been killed. Reason: Master removed our application"
    error = not_started("spark://h:9", STOPPED, removed, TEMPORARY)
    assert type(error) is SkidwayError
    assert str(error).endswith(": Master removed our application")


def test_a_start_that_failed_otherwise_has_the_reason_from_the_error() -> None:
    """If the start fails for another reason, the error has it, with the class of the exception if
    its message is only a name."""
    error = not_started("yarn", MISSING, "", TEMPORARY)
    assert (type(error), str(error)) == (
        SkidwayError,
        "Spark did not start on yarn: FileNotFoundException: /a.tar.gz",
    )
    away = RuntimeError(f"{MISSING}x)\nCaused by: java.net.ConnectException: Connection refused\n")
    error = not_started("k8s://h", away, "", TEMPORARY)
    assert type(error) is Unreachable
    assert str(error).endswith(": FileNotFoundException: /a.tar.gz (Connection refused)")
    assert str(not_started("yarn", ValueError("no port"), "", TEMPORARY)).endswith(": no port")
    assert str(not_started("yarn", KeyError(), "", TEMPORARY)).endswith(": KeyError")


def test_a_start_on_a_machine_without_a_name_says_what_etc_hosts_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If Spark did not start and this machine's name has no address, the error also names the line
    that /etc/hosts lacks."""

    def unknown(name: str, _: None) -> list[object]:
        if name == "db7":
            raise socket.gaierror(-2, "Name or service not known")
        return []

    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: "db7")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    said = str(
        not_started("local[2]", RuntimeError("db7: Name or service not known"), "", TEMPORARY)
    )
    assert said.endswith("; add the line `127.0.1.1 db7` to /etc/hosts")
    assert said.startswith("Spark did not start on local[2]: db7: Name or service not known; 'db7'")


def test_an_error_whose_text_the_ended_jvm_has_still_is_one_sentence() -> None:
    """Only the JVM has the text of a Java error. If the JVM has ended, the error says so."""

    class Java(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError(111, "Connection refused")

    assert (
        str(not_started("local", Java(), "", TEMPORARY)) == f"Spark did not start on local: {GONE}"
    )
    assert str(failure(Java(), TEMPORARY)) == f"a Spark task failed: {GONE}"
    assert str(failure(ConnectionResetError(), TEMPORARY)) == f"a Spark task failed: {GONE}"


def test_the_newest_warning_of_sparks_log() -> None:
    """While Spark starts, the newest warning of its log may be the reason why this takes long."""
    assert newest_warning(MASTER_IS_AWAY) == "Drop UnregisterApplication(null)"
    assert "spark.log.file" in newest_warning("WARNING: Using incubator modules\n")


NO_DIRECTORY = """WARNING: Using incubator modules: jdk.incubator.vector
2026-11-29 04:16:13.129 ERROR [Thread-3] JavaUtils - Failed to create directory /x/y/blockmgr-ec
java.nio.file.NoSuchFileException: /x
\tat java.base/java.lang.Thread.run(Thread.java:840)
2026-11-29 04:16:13.140 ERROR [Thread-3] DiskBlockManager - Failed to create local dir in /x/y. \
Ignoring this directory.
java.io.IOException: Failed to create a temp directory (under /x/y) after 10 attempts!
\tat java.base/java.lang.Thread.run(Thread.java:840)
2026-11-29 04:16:13.141 ERROR [Thread-3] DiskBlockManager - Failed to create any local dir.
2026-11-29 04:16:13.142 WARN  [main] Utils - Set SPARK_LOCAL_IP if you need to
"""
NO_MEMORY = """2026-11-29 04:16:13.129 ERROR [x - y] Handler - Uncaught exception in thread x
java.lang.OutOfMemoryError: Metaspace
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


def test_if_the_jvm_ended_during_the_start_its_last_errors_are_told() -> None:
    """If Spark's Java process ends while Spark starts, the error contains the last errors of its
    log, which name for example the directory that Spark cannot use."""
    said = str(not_started("local", ConnectionRefusedError(), NO_DIRECTORY, TEMPORARY))
    assert said == (
        f"Spark did not start on local: {GONE}; its last errors: Failed to create local dir in "
        "/x/y. Ignoring this directory (IOException: Failed to create a temp directory (under "
        "/x/y) after 10 attempts!); Failed to create any local dir"
    )
    said = str(not_started("local", ConnectionRefusedError(), NO_MEMORY, TEMPORARY))
    assert said.endswith("errors: Uncaught exception in thread x (OutOfMemoryError: Metaspace)")


@pytest.mark.parametrize("place", ['at [row,col]: [1,20,"/c/core-site.xml"]', "at [Source: /c/a]"])
def test_a_file_that_java_could_not_read_is_named(place: str) -> None:
    """If a parser of Java could not read a file, the error names the file, which is in the line
    after the message of the exception."""
    thrown = f"java.lang.RuntimeException: x.EofException: Unexpected end\n {place}\n"
    stack = "\tat org.X.f(X.scala:1)\n"
    text = f"An error occurred\n: {thrown}{stack}Caused by: x.EofException: Unexpected end\n"
    said = str(not_started("yarn", RuntimeError(text), "", TEMPORARY))
    assert said == f"Spark did not start on yarn: Unexpected end {place}"
    assert str(failure(RuntimeError(text), TEMPORARY)).endswith(f": Unexpected end {place}")
    assert sentence_in(f"{thrown}{stack}") == f"Unexpected end {place}"


@pytest.mark.parametrize("reason", ["[Errno 28] No space left on device", "Disk quota exceeded"])
def test_a_full_disk_of_spark_is_named(reason: str) -> None:
    """If the disk of Spark's temporary files is full, at the start or later, the error names their
    directory and the property that chooses it, once. A task's own error names its file itself."""
    room = f"{reason}; make room for Spark's temporary files in {TEMPORARY} (spark.local.dir)"
    later = failure(OSError(reason), TEMPORARY)
    assert str(later) == f"a Spark task failed: {room}"
    text = f": org.apache.spark.SparkException: Job aborted: java.io.IOException: {reason}\n"
    assert str(failure(RuntimeError(f"{text}\tat org.X.f(X.scala:1)\n"), TEMPORARY)) == str(later)
    cause = f": x.SparkException: Job aborted\n\tat org.X.f(X.scala:1)\nCaused by: x.Y: {reason}\n"
    said, _, advice = str(failure(RuntimeError(cause), TEMPORARY)).partition("; ")
    assert said == f"a Spark task failed: Job aborted ({reason.rpartition('] ')[2]})"
    assert advice == room.partition("; ")[2]
    begun = str(not_started("local", OSError(reason), "", TEMPORARY))
    assert begun == f"Spark did not start on local: {room}"
    assert str(not_started("local", later, "", TEMPORARY)).count("make room") == 1
    own = TaskFailed(SkidwayError(f"cannot write /out/a: {reason}"))
    assert str(failure(RuntimeError(str(own)), TEMPORARY)) == f"cannot write /out/a: {reason}"
