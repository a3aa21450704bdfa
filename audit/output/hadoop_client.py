"""How a program is known to Hadoop: its configuration, and who it is for Kerberos."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Final

from skidway.errors import ConfigurationRefused
from skidway.settings import setting

CONF_DIR, PRINCIPAL, KEYTAB = "hadoop.conf.dir", "kerberos.principal", "kerberos.keytab"
_HOST = "/_HOST"


@dataclass(frozen=True, slots=True)
class HadoopClient:
    """conf_dir: the directory with core-site.xml and hdfs-site.xml; None for that of the
    environment. principal, keytab: who the program is, and the file with this principal's keys;
    None for the tickets that the environment has, if any."""

    conf_dir: str | None = None
    principal: str | None = None
    keytab: str | None = None

    def check(self) -> None:
        """Raises ConfigurationRefused if only one of the two settings for Kerberos is given, or if
        the directory does not exist."""
        if (self.principal is None) != (self.keytab is None):
            missing = PRINCIPAL if self.principal is None else KEYTAB
            raise ConfigurationRefused(
                f"{missing} is missing: {PRINCIPAL} and {KEYTAB} are given together"
            )
        if self.conf_dir is not None and not os.path.isdir(self.conf_dir):
            raise ConfigurationRefused(f"{CONF_DIR}: {self.conf_dir} is no directory")

    @property
    def name(self) -> str | None:
        """The principal, in which the name of this host stands for `_HOST`, as in Hadoop."""
        if self.principal is None or _HOST not in self.principal:
            return self.principal
        return self.principal.replace(_HOST, f"/{socket.getfqdn().lower()}")


NO_SETTINGS: Final = HadoopClient()
"""The environment alone says how the program is known to Hadoop."""


@dataclass(frozen=True, kw_only=True)
class HadoopSettings:
    """The settings of a program whose output may be on HDFS."""

    hadoop_conf_dir: str | None = setting(
        CONF_DIR,
        None,
        help="Directory with Hadoop's core-site.xml and hdfs-site.xml; if not set, that of the"
        " variable HADOOP_CONF_DIR, or else etc/hadoop below HADOOP_HOME.",
        example="/etc/hadoop/conf",
    )
    kerberos_principal: str | None = setting(
        PRINCIPAL,
        None,
        help="Who this program is on an HDFS with Kerberos; _HOST stands for the host's name. If"
        " not set, the program uses the tickets of its environment, as Hadoop's commands do.",
        example="skidway/_HOST@EXAMPLE.COM",
    )
    kerberos_keytab: str | None = setting(
        KEYTAB,
        None,
        help="File with the principal's keys, from which the program gets its tickets.",
        example="/etc/skidway/loader.keytab",
    )

    @property
    def hadoop(self) -> HadoopClient:
        """How this program is known to Hadoop."""
        return HadoopClient(self.hadoop_conf_dir, self.kerberos_principal, self.kerberos_keytab)
