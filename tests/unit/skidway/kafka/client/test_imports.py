"""What the client may cost in memory."""

from __future__ import annotations

import subprocess
import sys


def test_the_client_is_light() -> None:
    """Neither NumPy nor Arrow comes with the client: a broker's mirror has it inside."""
    code = (
        "import sys, skidway.kafka.client, skidway.kafka.client.following, skidway.kafka.source;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow', 'asyncio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
