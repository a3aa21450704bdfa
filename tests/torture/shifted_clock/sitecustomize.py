"""Makes time.sleep work under libfaketime. Python imports this module when it starts, if this
folder is on its module path.

Python's own time.sleep waits until the monotonic clock reaches a certain time. If libfaketime has
set this clock back, Python's time.sleep fails with EINVAL. Therefore this module replaces
time.sleep.
"""

from __future__ import annotations

import threading
import time


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


time.sleep = _wait
