"""Runs a real ZooKeeper 3.9 server from the jars that PyPI's pyspark contains.

The server is a JVM and a child process of this program. When this program gets SIGTERM, it stops
the JVM cleanly. When the JVM dies, this program ends with the JVM's status (1 if that is 0, and 128
+ n after signal n). When this program dies, even by a kill -9, the kernel kills the JVM. The server
binds to `clientPortAddress`, which is loopback by default. Its HTTP admin server is off. Of
ZooKeeper's commands of four letters, the server answers only `srvr`, which /health and /metrics
use, and `ruok`, which tells whether a member of an ensemble has started. The server's log is text,
in a file that is rolled by size, or on this program's standard output.

With `secureClientPort`, clients from elsewhere use this port, with TLS; the other one is for this
program's own questions. With `sslQuorum`, the servers of the ensemble speak TLS with each other.

`dataDir` contains ZooKeeper's own `version-2/`. At each start, this program writes `zoo.cfg`,
`log4j2.properties` and, if the setting `myid` is given, the file `myid` into the same directory,
and copies of the files for TLS.

    settings        the settings, under ZooKeeper's names
    configuration   the files and the command line of the JVM
    tls             the files for TLS, as the JVM reads them
    server          the JVM as a child process
    system_nodes    closes ZooKeeper's own nodes, by which a stranger could end the server
    program         runs it all; health and metrics
"""

from __future__ import annotations

from skidway.zookeeper.configuration import start_command
from skidway.zookeeper.program import run
from skidway.zookeeper.settings import ZookeeperSettings

__all__ = ["ZookeeperSettings", "run", "start_command"]
