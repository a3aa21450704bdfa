"""Which NameNodes and which folder a URL names: of one NameNode (`hdfs://host:port/folder`), of a
name service (`hdfs://lake/folder`), of a mount table (`viewfs://cluster/folder`), or of the default
file system (`hdfs:///folder`). A name service and a mount table stand in Hadoop's configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from skidway.audit.output.hdfs.configuration import Configuration
from skidway.errors import ConfigurationRefused

_DEFAULT: Final = "fs.defaultFS"
_FORM: Final = "hdfs://host:port/folder, or hdfs://name-service/folder"


@dataclass(frozen=True, slots=True)
class NameNode:
    """place: host:port, as in the URL or in the configuration. service, name: its name service, and
    its name there; empty for a NameNode without a name service."""

    place: str
    service: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """server: the URL as given, without the folder. root: the folder, absolute."""

    server: str
    root: str
    name_nodes: tuple[NameNode, ...]


def address_of(url: str, configuration: Configuration) -> Address:
    """Returns the address that a URL names. Raises ConfigurationRefused if the URL is malformed, or
    names what the configuration does not have."""
    parts = _parts(url)
    folder = parts.path.strip("/")
    if not parts.scheme or not folder:
        raise ConfigurationRefused(f"output: {url} must name a NameNode and a folder, as {_FORM}")
    server = f"{parts.scheme}://{parts.netloc}"
    if not parts.netloc:
        default = configuration.properties.get(_DEFAULT, "")
        if _parts(default).scheme != parts.scheme or not _parts(default).netloc:
            raise ConfigurationRefused(
                f"output: {url} names no NameNode, and {configuration.place} which one is meant"
                f" ({_DEFAULT})"
            )
        parts = parts._replace(netloc=_parts(default).netloc)
    return Address(server, f"/{folder}", _name_nodes(url, parts, configuration))


def _name_nodes(url: str, parts: SplitResult, configuration: Configuration) -> tuple[NameNode, ...]:
    if parts.scheme == "viewfs":
        return _mounted(url, parts.netloc, configuration)
    if parts.port is not None:
        return (NameNode(parts.netloc),)
    properties, service = configuration.properties, parts.netloc
    names = [each.strip() for each in properties.get(f"dfs.ha.namenodes.{service}", "").split(",")]
    found = []
    for name in filter(None, names):
        key = f"dfs.namenode.rpc-address.{service}.{name}"
        place = properties.get(key, "")
        if place and _parts(f"hdfs://{place}").port is None:
            raise ConfigurationRefused(f"output: {url}: {key} is {place}, which is no host:port")
        found.append(NameNode(place, service, name))
    if not found or not all(each.place for each in found):
        raise ConfigurationRefused(
            f"output: {url}: {service} has no port, and {configuration.place} that it is a name"
            f" service (dfs.ha.namenodes.{service}, dfs.namenode.rpc-address.{service}.*)"
        )
    return tuple(found)


def _mounted(url: str, cluster: str, configuration: Configuration) -> tuple[NameNode, ...]:
    prefix = f"fs.viewfs.mounttable.{cluster}.link"
    found: dict[NameNode, None] = {}
    for key, value in configuration.properties.items():
        if key.startswith((f"{prefix}.", f"{prefix}Fallback")):
            mounted = _parts(value)
            if mounted.scheme != "hdfs" or not mounted.netloc:
                raise ConfigurationRefused(f"output: {url}: {key} is {value}, which is not on HDFS")
            found |= dict.fromkeys(_name_nodes(url, mounted, configuration))
    if f"{prefix}Fallback" not in configuration.properties:  # hdfs-native has no client without
        raise ConfigurationRefused(
            f"output: {url}: {configuration.place} where other folders are ({prefix}Fallback)"
        )
    return tuple(found)


def _parts(url: str) -> SplitResult:
    """Returns the parts of a URL; all of them are empty if it is malformed."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # a port that is no number up to 65535, or half an IPv6 address
        return urlsplit("")
    return parts
