"""The kernel: what every Skidway program stands on, and nothing that only one of them needs.

Reading order: errors, clock, log, settings (what a program may be told), files (state that survives
a crash), systemd (what the service manager is told), service (signals and exit status), telemetry
(/metrics and /health), ports (kept, and who has one), coordination (ZooKeeper through kazoo), java
and zookeeper (a real ZooKeeper from the jars of pyspark), extras (what each program needs beside
the kernel), machine (what this machine lacks), units (of systemd), cli (the command line and its
output), kafka (protocol, record batch, client, and what applications use), demo (all programs
together).

Nothing here imports a higher package. Numpy and pyarrow are imported only where records are made or
read: in `skidway.kafka` (its docstring says where) and by `skidway produce`. Imports stay
light on purpose: an idle broker is mostly what it imports, so `__version__` is looked up when it is
asked for.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("skidway")
    raise AttributeError(f"module 'skidway' has no attribute {name!r}")
