"""The installed package: the kernel, which every program uses, and the programs.

The programs agent, broker, loader, audit and schemas (the registry) have their own folders at the
top of the source tree. In the tree, `skidway/agent`, `skidway/broker` and so on are links to these
folders; a wheel contains the folders themselves. Because the agent is imported as `skidway.agent`,
Python never confuses the agent with a user's `agent.py`. The order of the parts is kernel, schemas,
audit, and then, side by side, agent, broker and loader. Each part may import only parts that come
earlier in this order; agent, broker and loader do not import each other.

The modules of the kernel in reading order:

    errors, clock, log, dataclass
    settings        a program's configuration
    files           state that survives a crash
    ways            follows a path link by link, and notes to whom what is on the way belongs
    state_owner     makes a command of root the user of its state
    import_path     Python's modules, for a process that gives root's rights up
    database_reader   reads the database of another program
    printable       texts of others, without what a terminal would execute
    regular_file    reads files in whose place somebody may have put a pipe
    text_file       files that people write, with their byte order marks
    wal_index       space for what SQLite maps into memory
    systemd         messages to the service manager
    service         signals and exit status
    holders         who gives way if many clients hold too much together
    turns           who begins next if many clients wait
    rare_lines      log lines that anybody on the network can cause
    reached_bounds  names in the log the bounds that clients have reached
    security        TLS and logins
    http            HTTP servers with limits, for whom they answer
    telemetry       /metrics and /health
    http_client     asks our programs for them, through no proxy
    http_answer     limits how long a whole HTTP answer takes
    own_process     objects that a fork must not share
    ports           reserves a port, and finds who listens on a port
    coordination    ZooKeeper through kazoo
    zookeeper_settings    the settings with which a program reaches ZooKeeper
    row_columns     the columns that Skidway adds to rows
    java, zookeeper a real ZooKeeper from the jars of pyspark
    lean_arrow      prevents Arrow from importing pandas, which no program uses
    extras          the packages that each program needs in addition to those of the kernel
    host_name       the name of this host in messages and printed commands
    insecure_listeners    listeners that other hosts reach without authentication
    machine_id      the id of this machine
    machine         finds what is missing on this machine
    certificates    checks the files for TLS that configurations here name
    units           the systemd units
    invocation      how a program was started, for the commands that other programs print
    cli             the command line and its output
    kafka           protocol, record batch, client
    producer, consumer    for applications; built on kafka
    demo            all programs together

Apart from `demo`, the kernel imports no program. The functions `skidway.table` and
`skidway.register`, which analysts call, belong to the loader. Their modules are imported only when
a program first uses these functions. Numpy and pyarrow are imported only where records are made or
read: in `skidway.kafka` (its docstring says where), in the producer and the consumer, and in
`skidway produce`. The kernel imports few modules, because imported modules take most of an idle
broker's memory. For the same reason the version is determined only when a program reads
`__version__`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_FOR_ANALYSTS: Final = {
    "register": "skidway.loader.datasource.registration",
    "table": "skidway.loader.table",
}
"""The functions that analysts call, and the module of each function."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("skidway")
    if name in _FOR_ANALYSTS:
        return getattr(import_module(_FOR_ANALYSTS[name]), name)
    raise AttributeError(f"module 'skidway' has no attribute {name!r}")
