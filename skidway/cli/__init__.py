"""The command line: `skidway <noun> <verb>`.

Each noun is an entry point of the group "skidway.commands": a function `register(subparsers)` that
adds the noun's parser and sets `run=callable(args) -> int`. Only the module of the given noun is
imported. So an agent host needs no Spark, and a broker does not have the loader's modules in
memory. In the kernel, only three modules read environment variables: `skidway.java` (SKIDWAY_JAVA
and JAVA_HOME), `skidway.systemd` (NOTIFY_SOCKET), and `profile` (used by the commands that send
requests to a cluster).

The modules in reading order: first commands (dispatch, exit status) and profile (the addresses of
the user's cluster), then options, moments, plan and output, which several nouns use, and then one
module for each noun.
"""

from __future__ import annotations

from skidway.cli.commands import main

__all__ = ["main"]
