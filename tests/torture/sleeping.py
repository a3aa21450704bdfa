"""Once this is imported, time.sleep works under libfaketime too.

Python sleeps until a moment of the monotonic clock; libfaketime fails that with EINVAL where it has
set the clock back.
"""

from __future__ import annotations

import threading
import time


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


time.sleep = _wait
