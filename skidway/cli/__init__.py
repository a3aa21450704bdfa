"""The command line: `skidway <noun> <verb>`.

Each noun is an entry point (as in Python packaging) of the group "skidway.commands". The entry
point is a function `register(subparsers)`, which adds the noun's parser. The entry point also sets
the parser's default `run` to a function that gets the arguments and returns the exit status. Only
the module of the noun that the user gave is imported. So an agent host needs no Spark, and a broker
does not have the loader's modules in memory. In the kernel, only three modules read environment
variables: `skidway.java` (for example SKIDWAY_JAVA and JAVA_HOME), `skidway.systemd`
(NOTIFY_SOCKET), and `profile` (used by the commands that send requests to a cluster).

Reading order: `commands` (dispatch, exit status), `streams` (no control character of a text reaches
a terminal), `profile` (the addresses of the user's cluster) and `connection` (to this cluster) come
first. Then come `options`, `moments`, `plan` and `output`, which several nouns use. One module
follows for each noun that belongs to no other package; `acl_file` decides for `acls`, and
`zookeeper_acls` is a verb of `zookeeper`.
"""

from __future__ import annotations

from skidway.cli.commands import main

__all__ = ["main"]
