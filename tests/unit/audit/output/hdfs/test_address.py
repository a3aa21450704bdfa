"""Tests which NameNodes and which folder a URL names."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.audit.output.hdfs.address import Address, NameNode, address_of
from skidway.audit.output.hdfs.configuration import Configuration
from skidway.errors import ConfigurationRefused

ADDRESS = "dfs.namenode.rpc-address.lake.nn1"
LAKE = {
    "fs.defaultFS": "hdfs://lake",
    "dfs.ha.namenodes.lake": "nn1, nn2",
    ADDRESS: "h1:8020",
    "dfs.namenode.rpc-address.lake.nn2": "h2:8020",
    "fs.viewfs.mounttable.site.link./logs": "hdfs://lake/kept",
    "fs.viewfs.mounttable.site.linkFallback": "hdfs://h3:8020/",
}
CONF = Configuration(Path("/etc/hadoop"), "hadoop.conf.dir", LAKE)
TWO = (NameNode("h1:8020", "lake", "nn1"), NameNode("h2:8020", "lake", "nn2"))
THIRD = NameNode("h3:8020")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("hdfs://h3:8020/logs/", Address("hdfs://h3:8020", "/logs", (THIRD,))),
        (
            "hdfs://[::1]:8020/logs",
            Address("hdfs://[::1]:8020", "/logs", (NameNode("[::1]:8020"),)),
        ),
        ("hdfs://lake/logs/a", Address("hdfs://lake", "/logs/a", TWO)),
        ("hdfs:///logs", Address("hdfs://", "/logs", TWO)),
        ("viewfs://site/logs", Address("viewfs://site", "/logs", (*TWO, THIRD))),
    ],
)
def test_an_url_names_a_folder_and_its_name_nodes(url: str, address: Address) -> None:
    """A name service, the default file system and a mount table have the NameNodes that Hadoop's
    configuration has for them."""
    assert address_of(url, CONF) == address


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("hdfs://h:8020", LAKE, "hdfs://h:8020 must name a NameNode and a folder, as hdfs://host"),
        ("hdfs://h:port/logs", LAKE, "must name a NameNode and a folder"),
        ("hdfs://h:99999/logs", LAKE, "must name a NameNode and a folder"),
        ("hdfs://pond/logs", LAKE, "pond has no port, and no file of /etc/hadoop"),
        ("hdfs://pond/logs", None, "pond has no port, and no file of Hadoop's"),
        ("hdfs:///logs", {}, "names no NameNode, and no file of /etc/hadoop"),
        ("hdfs:///logs", {"fs.defaultFS": "s3a://b"}, "says which one is meant"),
        ("viewfs://pond/logs", LAKE, "says where other folders are"),
        ("hdfs://lake/x", {"dfs.ha.namenodes.lake": "nn1"}, "dfs.namenode.rpc-address.lake.*"),
        ("hdfs://lake/x", LAKE | {ADDRESS: "h1"}, f"{ADDRESS} is h1, which is no host:port"),
        ("hdfs://lake/x", LAKE | {ADDRESS: "h1:port"}, "is h1:port, which is no host:port"),
    ],
)
def test_what_is_not_known_is_one_sentence(
    url: str, given: dict[str, str] | None, words: str
) -> None:
    """If a URL is malformed, or names what Hadoop's configuration does not have, the error says
    what is missing, and which files were read."""
    conf = Configuration() if given is None else Configuration(CONF.directory, "x", given)
    with pytest.raises(ConfigurationRefused) as caught:
        address_of(url, conf)
    assert str(caught.value).startswith(f"output: {url}")
    assert words in str(caught.value)


def test_a_mount_elsewhere_is_refused() -> None:
    """A mount table that leads to another store than HDFS is refused, because loads are committed
    by renames."""
    mounted = LAKE | {"fs.viewfs.mounttable.site.link./s3": "s3a://bucket/x"}
    with pytest.raises(ConfigurationRefused, match="s3a://bucket/x, which is not on HDFS"):
        address_of("viewfs://site/logs", Configuration(None, "", mounted))
