"""Reads the files with which administrators configure Hadoop's clients. The HDFS client and Spark's
Java process read these files, too. If the HDFS client cannot read one, it does not say which.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from skidway.audit.output import StoreFailed
from skidway.audit.output.hadoop_client import CONF_DIR
from skidway.regular_file import read_regular

HDFS_FILES: Final = ("core-site.xml", "hdfs-site.xml")
SPARK_FILES: Final = (*HDFS_FILES, "mapred-site.xml", "yarn-site.xml")

VARIABLES: Final = (("HADOOP_CONF_DIR", ""), ("HADOOP_HOME", "etc/hadoop"))
"""Variables, and the directory with the files below the variable's value. The HDFS client uses the
first variable that is set."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The properties of the files in a directory. directory: None if nothing names a directory.
    found_by: the setting or variable that names it."""

    directory: Path | None = None
    found_by: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The directory, for messages."""
        if self.directory is None:
            return f"no file of Hadoop's ({CONF_DIR}, HADOOP_CONF_DIR) says"
        return f"no file of {self.directory} ({self.found_by}) says"

    @property
    def is_kerberos(self) -> bool:
        """Whether the cluster requires Kerberos."""
        return self.properties.get("hadoop.security.authentication", "").lower() == "kerberos"


def read(
    conf_dir: str | None = None,
    names: Sequence[str] = HDFS_FILES,
    environ: Mapping[str, str] = os.environ,
) -> Configuration:
    """Reads these files of the directory `conf_dir`, or of the environment's directory. Raises
    StoreFailed if a file cannot be read or is no XML. A missing file is no error."""
    for found_by, below, value in (
        (CONF_DIR, "", conf_dir),
        *((variable, below, environ.get(variable)) for variable, below in VARIABLES),
    ):
        if value is not None:
            directory = Path(value, below)
            properties: dict[str, str] = {}
            for name in names:
                try:
                    properties |= _properties(directory / name)
                except (OSError, UnicodeDecodeError, ElementTree.ParseError) as error:
                    raise StoreFailed(
                        f"cannot read {directory / name} (found by {found_by}): {_reason(error)}"
                    ) from error
            return Configuration(directory, found_by, properties)
    return Configuration()


def _properties(path: Path) -> dict[str, str]:
    try:
        text = read_regular(path).decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {
        (each.findtext("name") or "").strip(): (each.findtext("value") or "").strip()
        for each in ElementTree.fromstring(text).iter("property")  # noqa: S314 - an administrator's
    }


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
