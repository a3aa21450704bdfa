"""Python imports this module at its start if this folder is on its path. Then time.sleep works
under libfaketime.

Python's time.sleep waits until a moment of the monotonic clock. Where libfaketime has set that
clock back, this call fails with EINVAL.
"""

from __future__ import annotations

import threading
import time


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


time.sleep = _wait
