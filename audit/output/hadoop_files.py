"""Checks the files with which administrators configure Hadoop's clients. The HDFS client and
Spark's Java process read these files. If the HDFS client cannot read one, it does not say which.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.parsers import expat

from skidway.audit.output import StoreFailed

HDFS_FILES: Final = ("core-site.xml", "hdfs-site.xml")
SPARK_FILES: Final = (*HDFS_FILES, "mapred-site.xml", "yarn-site.xml")

_DIRECTORIES: Final = (("HADOOP_CONF_DIR", ""), ("HADOOP_HOME", "etc/hadoop"))
"""Variables, and the directory with the files below the variable's value. The HDFS client uses the
first variable that is set."""


def check(names: Sequence[str] = HDFS_FILES, environ: Mapping[str, str] = os.environ) -> None:
    """Raises StoreFailed if one of these files cannot be read or is no XML. A missing file is no
    error. Does not check the meaning of a file."""
    for variable, below in _DIRECTORIES:
        if variable in environ:
            for name in names:
                reason = _trouble(path := Path(environ[variable], below, name))
                if reason:
                    raise StoreFailed(f"cannot read {path} (found by {variable}): {reason}")
            return


def _trouble(path: Path) -> str:
    try:
        expat.ParserCreate().Parse(path.read_text("utf-8"), True)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except expat.ExpatError as error:
        return str(error)
    return ""
