"""A real KDC (MIT Kerberos) for tests. By default, it listens on the loopback interface."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hdfs_native import Client

from skidway.audit.output import OutputConnection
from skidway.audit.output.hadoop_client import HadoopClient
from skidway.audit.output.hdfs.answer import Answers
from skidway.audit.output.hdfs.client import connect
from support import peers
from support.places import LOOPBACK, Place
from support.processes import Program, free_port, running

REALM = "EXAMPLE.TEST"
CLOCK_SKEW_S = 5
"""For how long after its end a ticket is still taken."""
LOADER = f"loader@{REALM}"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SERVER = Path("/usr/sbin/krb5kdc")

_CLIENT = """[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
clockskew = {skew}
kdc_timesync = 0
[realms]
{realm} = {{
  kdc = {host}:{port}
}}
[domain_realm]
localhost = {realm}
"""
_SERVER = """[kdcdefaults]
kdc_listen = {host}:{port}
kdc_tcp_listen = {host}:{port}
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  max_life = 10h
}}
"""


def administrator(kdc: Kdc, url: str, conf_dir: str | None = None) -> Client:
    """Returns a client of the superuser of an HDFS with Kerberos."""
    superuser = HadoopClient(conf_dir, f"nn/{kdc.host}@{REALM}", str(kdc.service("nn")))
    return connect(OutputConnection(f"{url}/logs", superuser), Answers())[1]


def give_logs(client: Client) -> None:
    """Makes the folder /logs, and gives it to the loader."""
    client.mkdirs("/logs", 0o750, create_parent=True)
    client.set_owner("/logs", "loader", "hadoop")


class Kdc:
    """A realm with its own KDC. conf: the krb5.conf of its clients. env: the variables with which
    programs use this realm. host: that of the services' principals, to which Hadoop binds the
    sockets of their connections."""

    def __init__(self, folder: Path, place: Place = LOOPBACK) -> None:
        self._place, self.folder, self.port = place, folder, free_port()
        self.host = "localhost" if place is LOOPBACK else place.host
        self.conf = folder / "krb5.conf"
        self.env = {"KRB5_CONFIG": str(self.conf), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
        self.server = Program(
            place.command([str(SERVER), "-n"]), folder / "krb5kdc.out", env=self.env
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[Kdc]:
        """Makes the realm, and runs its KDC during the `with` block."""
        self.make()
        with running(self.server, self.is_ready):
            yield self

    def make(self) -> None:
        """Makes the realm. Its KDC can then be started."""
        if not SERVER.exists():
            raise peers.PeerMissing("krb5-kdc is not there: run `make peers`")
        self.folder.mkdir(parents=True, exist_ok=True)
        words = {
            "realm": REALM, "host": self._place.host, "port": self.port, "folder": self.folder,
            "skew": CLOCK_SKEW_S,
        }  # fmt: skip
        self.conf.write_text(_CLIENT.format(**words))
        (self.folder / "kdc.conf").write_text(_SERVER.format(**words))
        (self.folder / "acl").touch()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "secret")

    def is_ready(self) -> bool:
        """Returns whether the KDC accepts connections."""
        return self._place.accepts(self.port)

    def keytab(self, principal: str, name: str = "") -> Path:
        """Adds a principal if it is missing, gives it a new key, and returns a new keytab with the
        key. name: of the keytab's file."""
        path = self.folder / (name or f"{principal.partition('/')[0]}.keytab")
        path.unlink(missing_ok=True)
        self.admin(f"addprinc -randkey {principal}")
        self.admin(f"ktadd -k {path} {principal}")
        return path

    def service(self, name: str) -> Path:
        """Returns the keytab of a service on this host. All servers of the realm share its keys."""
        path = self.folder / f"{name}.keytab"
        return path if path.exists() else self.keytab(f"{name}/{self.host}")

    @contextlib.contextmanager
    def tickets(self, principal: str, keytab: str | Path) -> Iterator[str]:
        """Gets a ticket, as somebody who runs kinit does, and yields the name of its cache."""
        cache = f"FILE:{self.folder / 'ccache'}"
        self._run("kinit", "-c", cache, "-k", "-t", str(keytab), principal)
        yield cache
        self._run("kdestroy", "-c", cache)

    def admin(self, query: str) -> str:
        """Runs a query of kadmin, and returns what it prints."""
        return self._run("kadmin.local", "-q", query)

    def _run(self, command: str, *words: str) -> str:
        done = subprocess.run(
            self._place.command([command, *words]),
            env={**os.environ, **self.env, "PATH": PATH},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr
