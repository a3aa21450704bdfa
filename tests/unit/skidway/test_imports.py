"""Tests which modules the producer and the consumer import into an application, and which names
they export."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skidway import consumer, producer

OURS = {"bench", "pyspark_skidway", "skidway"}

KERNEL = {
    "", ".clock", ".coordination", ".coordination.client", ".coordination.security",
    ".coordination.session", ".dataclass", ".errors", ".log", ".own_process", ".regular_file",
    ".security", ".security.sasl", ".security.secret_file", ".text_file",
}  # fmt: skip
"""The modules of the package `skidway` itself that producer and consumer may import, in addition to
the packages in CLIENT. "" is `skidway/__init__.py`."""

CLIENT = (".consumer", ".kafka", ".producer")


def test_producer_and_consumer_need_nothing_else_of_skidway() -> None:
    """The producer and the consumer import only the packages in CLIENT and the modules in KERNEL.
    They import no program, no schemas, no settings and no command line."""
    code = "import sys, skidway.consumer, skidway.producer; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {name for name in found.stdout.split() if name.partition(".")[0] in OURS}
    kernel = {name.removeprefix("skidway") for name in loaded}
    client = {name for name in kernel if name.startswith(CLIENT)}
    assert client >= {".producer.producer", ".consumer.consumer"}
    assert kernel - client == KERNEL


@pytest.mark.parametrize("package", [consumer, producer])
def test_every_name_is_there(package: object) -> None:
    """Every name in `__all__` can be imported."""
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name).__name__ == name
