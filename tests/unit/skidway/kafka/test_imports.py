"""What the package may cost in memory, and what it gives."""

from __future__ import annotations

import subprocess
import sys

import skidway.kafka

OURS = {"bench", "pyspark_skidway", "skidway"}


def test_names_for_applications_are_loaded_when_asked_for() -> None:
    """Neither NumPy nor Arrow comes with the package itself: brokers import it."""
    code = (
        "import sys, skidway.kafka;"
        "light = not any(name in sys.modules for name in ('numpy', 'pyarrow', 'kazoo'));"
        "from skidway.kafka import Producer, Consumer;"
        "sys.exit(not light)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


KERNEL = {"", ".clock", ".coordination", ".errors", ".kafka", ".log"}


def test_producer_and_consumer_need_nothing_else_of_skidway() -> None:
    """No agent, broker, loader, audit or schemas, nor settings and command line: an application has
    the client, and of the kernel what it stands on."""
    code = "import sys; from skidway.kafka import Producer, Consumer; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {name for name in found.stdout.split() if name.partition(".")[0] in OURS}
    kafka = {name for name in loaded if name.startswith("skidway.kafka.")}
    assert kafka >= {"skidway.producer.producer", "skidway.consumer.consumer"}
    assert {name.removeprefix("skidway") for name in loaded - kafka} == KERNEL


def test_every_name_is_there() -> None:
    """What `__all__` promises can be imported; what is no name is an AttributeError."""
    for name in skidway.kafka.__all__:
        assert getattr(skidway.kafka, name).__name__ == name
    assert not hasattr(skidway.kafka, "Produser")
