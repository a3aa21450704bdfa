"""Python imports this module at its start if this folder is on its path. Then time.sleep works
under libfaketime.

Python's own time.sleep waits until a moment of the monotonic clock. If libfaketime has set that
clock back, Python's time.sleep fails with EINVAL. So this module replaces time.sleep.
"""

from __future__ import annotations

import threading
import time


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


time.sleep = _wait
