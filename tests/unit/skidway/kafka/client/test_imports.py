"""Tests which modules the client imports."""

from __future__ import annotations

import subprocess
import sys


def test_the_client_is_light() -> None:
    """The client imports neither NumPy nor Arrow nor asyncio, because the mirror inside a broker
    uses the client, and a broker does without these modules."""
    code = (
        "import sys, skidway.kafka.client, skidway.kafka.client.following, skidway.kafka.source;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow', 'asyncio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
