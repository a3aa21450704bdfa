"""Tests that files with Hadoop's configuration that cannot be read are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.audit.output import OutputConnection, StoreFailed
from skidway.audit.output.hdfs.configuration import SPARK_FILES, read

GOOD = b"<configuration><property><name>a</name><value>b</value></property></configuration>"


@pytest.mark.parametrize("name", ["core-site.xml", "hdfs-site.xml"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<configuration><prop", "unclosed token: line 1, column 15"),
        (b"nonsense", "syntax error: line 1, column 0"),
        (b"", "no element found: line 1, column 0"),
        (b"<configuration></wrong>", "mismatched tag: line 1, column 17"),
        (b"<configuration>\xe4</configuration>", "it is not UTF-8"),
        (None, "Is a directory"),
    ],
)
def test_a_file_that_the_client_cannot_read_is_named(
    name: str, content: bytes | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the HDFS client cannot read a file of its configuration, the error names the file, the
    variable by which it was found, and what is wrong with it."""
    (tmp_path / "core-site.xml").write_bytes(GOOD)
    if content is None:
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(StoreFailed) as caught:
        OutputConnection("hdfs://127.0.0.1:1/logs").output()
    assert (
        str(caught.value) == f"cannot read {tmp_path}/{name} (found by HADOOP_CONF_DIR): {reason}"
    )


def test_only_files_that_somebody_reads_are_checked(tmp_path: Path) -> None:
    """The HDFS client uses one directory, and two of its files. A missing file or directory is no
    error."""
    (tmp_path / "etc/hadoop").mkdir(parents=True)
    (tmp_path / "etc/hadoop/core-site.xml").write_bytes(b"<c")
    (tmp_path / "core-site.xml").write_bytes(b"\xef\xbb\xbf" + GOOD)
    (tmp_path / "yarn-site.xml").write_bytes(b"<c")
    here, missing = str(tmp_path), str(tmp_path / "missing")
    read(environ={})
    read(environ={"HADOOP_CONF_DIR": here, "HADOOP_HOME": here})
    read(environ={"HADOOP_CONF_DIR": missing, "HADOOP_HOME": here})
    read(environ={"HADOOP_CONF_DIR": f"{here}/core-site.xml"})
    with pytest.raises(StoreFailed, match=r"etc/hadoop/core-site.xml \(found by HADOOP_HOME\)"):
        read(environ={"HADOOP_HOME": here})
    with pytest.raises(StoreFailed, match=r"yarn-site.xml \(found by HADOOP_CONF_DIR\)"):
        read(None, SPARK_FILES, {"HADOOP_CONF_DIR": here})
