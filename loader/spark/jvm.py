"""The driver's JVM: starts its process, connects to it, and ends it.

pyspark could start the JVM itself, but would return the process only when the JVM is ready, so that
nobody could end the start. So the loader starts the process as pyspark does, with the Java that
`skidway.java` finds and with the output in a file, and then tells pyspark where the JVM listens. If
this process is killed, the JVM ends by itself, because its standard input is closed.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from skidway.errors import SkidwayError
from skidway.loader.spark.failures import sentence_in

ENDS_WITHIN_S: Final = 30.0
"""The JVM ends by itself when its standard input is closed. If the JVM still runs after this time,
the loader kills it."""

POLL_S: Final = 0.1
OUTPUT: Final = "spark.out"
ADDRESS: Final = "gateway"


def launch(properties: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """Starts a JVM with these properties of Spark, and does not wait for it. Its output goes to a
    file in `folder`. Raises OSError."""
    from pyspark.find_spark_home import _find_spark_home

    command = [f"{_find_spark_home()}/bin/spark-submit"]
    for name, value in properties.items():
        command += ["--conf", f"{name}={value}"]
    environment = {
        **os.environ,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / ADDRESS),
    }
    with open(folder / OUTPUT, "ab") as output:
        return subprocess.Popen(
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            # Ctrl-C does not end it, `kill` ends all that it has started, and nobody writes through
            # it to the terminal of root who began the run.
            start_new_session=True,
        )


def connect(process: subprocess.Popen[bytes], folder: Path) -> Any:
    """Waits until the JVM listens, and returns pyspark's connection to it. Raises SkidwayError if
    the JVM ends before, and errors of py4j."""
    from pyspark.java_gateway import launch_gateway

    address = folder / ADDRESS
    while not address.exists():
        if process.poll() is not None:
            raise SkidwayError(sentence_in(output(folder)) or "its Java process said nothing")
        time.sleep(POLL_S)
    port, length = struct.unpack_from(">ii", content := address.read_bytes())
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = content[8 : 8 + length].decode()
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    gateway.proc = process
    return gateway


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the JVM, and waits until its process has ended."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        kill(process)
        process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the JVM, in whatever state it is."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def output(folder: Path) -> str:
    """Returns what the JVM has written until now: its errors, and the warnings of Spark's log."""
    try:
        return (folder / OUTPUT).read_text(errors="replace")
    except OSError:
        return ""
