"""What is installed: the kernel, which every program stands on, and the programs.

The programs agent, broker, loader, audit and schemas (the registry) lie in folders of their own at
the top of the tree, to which `skidway/agent` and its like are links; a wheel has the folders here.
So a file `agent.py` beside somebody's script is never taken for ours. Imports go one way: kernel,
schemas, audit, then agent, broker and loader.

Reading order of the kernel: errors, clock, log, settings (what a program may be told), files (state
that survives a crash), systemd (what the service manager is told), service (signals and exit
status), telemetry (/metrics and /health), ports (kept, and who has one), coordination (ZooKeeper
through kazoo), java and zookeeper (a real ZooKeeper from the jars of pyspark), extras (what each
program needs beside the kernel), machine (what this machine lacks), units (of systemd), cli (the
command line and its output), kafka (protocol, record batch, client), producer and consumer (what
applications import, built on kafka), demo (all programs together).

The kernel imports no program. Numpy and pyarrow are imported only where records are made or read:
in `skidway.kafka` (its docstring says where), by producer and consumer, and by `skidway produce`.
Imports stay light on purpose: an idle broker is mostly what it imports, so `__version__` is looked
up when it is asked for.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("skidway")
    raise AttributeError(f"module 'skidway' has no attribute {name!r}")
