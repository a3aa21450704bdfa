"""What the package may cost in memory, and what it gives."""

from __future__ import annotations

import subprocess
import sys

import skidway.kafka


def test_names_for_applications_are_loaded_when_asked_for() -> None:
    """Neither NumPy nor Arrow comes with the package itself: brokers import it."""
    code = (
        "import sys, skidway.kafka;"
        "light = not any(name in sys.modules for name in ('numpy', 'pyarrow', 'kazoo'));"
        "from skidway.kafka import Producer, Consumer;"
        "sys.exit(not light)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_name_is_there() -> None:
    """What `__all__` promises can be imported; what is no name is an AttributeError."""
    for name in skidway.kafka.__all__:
        assert getattr(skidway.kafka, name).__name__ == name
    assert not hasattr(skidway.kafka, "Produser")
