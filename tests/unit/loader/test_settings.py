"""Tests the loader's configuration: a small file that the loader accepts, and values that are
refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skidway.errors import ConfigurationRefused
from skidway.loader.planning import topics
from skidway.loader.settings import LoaderSettings
from skidway.settings import example, load

SMALLEST = """
bootstrap.servers: 127.0.0.1:9092
schema.registry.url: http://127.0.0.1:8081
topics: [hdfs-logs, dc1.*]      # names or patterns
output: hdfs://namenode:8020/logs
cluster.name: offline
"""


def settings(tmp_path: Path, text: str = SMALLEST, *overrides: str) -> LoaderSettings:
    file = tmp_path / "loader.yml"
    file.write_text(text)
    return load(LoaderSettings, file, overrides)


def test_the_smallest_file_is_enough(tmp_path: Path) -> None:
    """The loader accepts a configuration file with only five keys. All other keys have defaults."""
    loaded = settings(tmp_path)
    assert loaded.topics == ["hdfs-logs", "dc1.*"]
    assert (loaded.spark_master, loaded.compression) == ("local[*]", "zstd")
    assert loaded.bucket_ms == 60_000


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("topics=", "topics needs a value"),
        ("topics=[]", "topics: at least one"),
        ("topics=_skidway_audit", "_skidway_audit is no data topic"),
        ("topics=dc1._skidway_audit", "is no data topic"),
        ("topics=a[", "neither a topic's name nor a regular expression"),
        ("cluster.name=a.b", "without a dot"),
        ("gaps.accepted=logs/0", "gaps.accepted: logs/0 is not"),
        ("compression.type=brotli", "compression.type"),
        ("slice.records=0", "slice.records"),
        ("spark.mastr=local", "spark.master"),
        ("bootstrap.servers=one:x", "'one:x' in bootstrap.servers is not host:port"),
        ("schema.registry.url=one:8081", "schema.registry.url: 'one:8081' is no URL"),
        ("schema.registry.url=http://a:b@c:8081", "basic.auth.user.info"),
        ("metrics.listener=localhost", "metrics.listener: 'localhost' is not host:port"),
        ("collector.url=audit:8088", "collector.url: 'audit:8088' is no URL of a collector"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, override: str, sentence: str) -> None:
    """A setting with an invalid value is refused with one sentence that contains the setting's key.
    For an unknown key, the sentence contains the key that was probably meant."""
    with pytest.raises(ConfigurationRefused, match=re.escape(sentence)):
        settings(tmp_path, SMALLEST, override)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("output.file.mode", "rw-r-----"),
        ("output.file.mode", "0440"),
        ("output.file.mode", "416"),  # what YAML makes of 0640 without quotes
        ("output.file.mode", "1640"),
        ("output.directory.mode", "0650"),
        ("output.directory.mode", "488"),  # of 0750
    ],
)
def test_modes_that_cannot_work_are_refused(tmp_path: Path, key: str, value: str) -> None:
    """A mode is an octal number that leaves the loader its own rights; anything else is refused
    with one sentence, so that no number is taken for another one."""
    with pytest.raises(ConfigurationRefused, match=rf"{re.escape(key)}: '.*' is not an octal mode"):
        settings(tmp_path, SMALLEST, f"{key}={value}")


@pytest.mark.parametrize("text", ["0600", "640", "0660"])
def test_a_mode_is_octal(tmp_path: Path, text: str) -> None:
    """A mode may be written with or without the leading zero."""
    made = settings(tmp_path, SMALLEST, f"output.file.mode={text}")
    assert made.output.modes.file == int(text, 8)


@pytest.mark.parametrize("master", ["spark://h:7077", "yarn", "k8s://https://h:443"])
@pytest.mark.parametrize("key", ["spark.master", "spark.conf.spark.master"])
@pytest.mark.parametrize("output", ["/data", "file:///data", "data"])
def test_an_output_that_a_cluster_cannot_reach_is_refused(
    tmp_path: Path, master: str, key: str, output: str
) -> None:
    """If Spark runs the tasks on a cluster, the output must be on HDFS. On the loader's own host,
    it may also be a directory."""
    with pytest.raises(ConfigurationRefused, match=r"^.*output: .* choose hdfs://host:port/folder"):
        settings(tmp_path, SMALLEST, f"{key}={master}", f"output={output}")
    settings(tmp_path, SMALLEST, f"{key}={master}")
    for here in ("local", "local[2]", "local[*, 3]", "local-cluster[2, 1, 1024]"):
        settings(tmp_path, SMALLEST, f"{key}={here}", f"output={output}")


def test_the_example_file_is_good(tmp_path: Path) -> None:
    """The example file that `--example` prints, with every key, can be loaded."""
    settings(tmp_path, example(LoaderSettings, title="x"))


def test_topics_are_chosen() -> None:
    """Topics are chosen by name or by a pattern that matches the whole name. Skidway's own topics
    are never chosen. A name that no topic has is reported."""
    existing = ["dc1.logs", "dc1._skidway_audit", "_skidway_audit", "dc10", "hdfs-logs", "other"]
    chosen, missing = topics.choose(["hdfs-logs", r"dc1\..*", "gone"], existing)
    assert chosen == ["dc1.logs", "hdfs-logs"]
    assert missing == ["gone"]
    assert topics.choose([".*"], existing)[0] == ["dc1.logs", "dc10", "hdfs-logs", "other"]
