"""The checks of `skidway doctor` on the files for TLS that the configurations of this host name:
can they be used, do other sides accept them, how long, and who can read the key."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.insecure_listeners import is_loopback
from skidway.kafka.types import PLAINTEXT
from skidway.machine import Finding
from skidway.security.contexts import (
    TlsFiles,
    client_context,
    end_of,
    end_of_lists,
    server_context,
)
from skidway.security.tls_reasons import verify_reason
from skidway.settings.source import Items, Node, Scalar, Section, read_file, text_of

DAYS_ADVISED: Final = 30
DAYS_ADVISED_OF_LISTS: Final = 2
DAY_S: Final = 86_400
_PREFIXES: Final = {"": "", "schema.registry.": ": registry", "zookeeper.": ": ZooKeeper"}
_LISTENER: Final = re.compile(r"([\w.-]+)://\[?([^/]*?)\]?:\d+")
_PLAIN: Final = (PLAINTEXT, "HTTP")
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - only compared
_REPLACE: Final = "replace the file; no restart is needed"


@dataclass(frozen=True, slots=True)
class Part:
    """The files that one part of a configuration names. hosts: of a server, the names by which its
    clients on other hosts reach it; None for a client. prefix: before the names of the settings."""

    name: str
    files: TlsFiles
    hosts: tuple[str, ...] | None
    prefix: str = ""


def examine(directory: Path) -> Iterator[Finding]:
    """Checks the files of all configurations in a directory, as far as this user may read them."""
    for path in sorted(directory.glob("*.yml")):
        with contextlib.suppress(ConfigurationRefused):
            for part in _parts(path.stem, read_file(path)):
                yield from check(part)


def check(part: Part) -> Iterator[Finding]:
    """Checks the files of one part."""
    name, own = f"certificate, {part.name}", part.files.certificate
    crl = part.files.crl
    try:
        if part.hosts is None:
            client_context(part.files)
        else:
            server_context(part.files)
        left = None if own is None else int((end_of(own) - time.time()) // DAY_S)
        lists_left = None if crl is None else (end_of_lists(crl) - time.time()) // DAY_S
    except ConfigurationRefused as error:
        is_given = own is not None or part.hosts is None
        is_there = is_given and all(map(os.path.exists, part.files.paths))
        advice = _REPLACE if is_there else "make the file, or correct the setting and start anew"
        yield Finding(name, "missing", f"{part.prefix}{error}", advice)
        return
    if lists_left is not None:
        found = _lists_end(part.name, str(crl), lists_left)
        yield found
        if found.verdict == "missing":
            return
    key = part.files.key or own
    if key is not None and stat.S_IMODE(key.stat().st_mode) & 0o007:
        yield Finding(name, "advice", f"every user can read the key in {key}", f"chmod 0640 {key}")
    if left is None or own is None:
        yield Finding(name, "good", f"{part.files.ca} can be read; no certificate of its own")
        return
    if left < 0:
        yield Finding(name, "missing", f"{own} has expired", _REPLACE)
        return
    yield from _acceptance(name, part, own)
    if left < DAYS_ADVISED:
        yield Finding(name, "advice", f"{own} expires in {left} days", "replace it before")
    else:
        yield Finding(name, "good", f"{own} is valid for {left} days")


def refusal(files: TlsFiles, host: str | None) -> str:
    """Returns why an other side that trusts `ssl.ca.location` does not accept a certificate, of a
    server with this name or, if host is None, of a client; empty if it does. Raises
    ConfigurationRefused."""
    if host is None:
        server, client = server_context(files, "required"), client_context(files, checks_name=False)
        client.verify_mode = ssl.CERT_NONE
    else:
        server, client = server_context(files), client_context(TlsFiles(ca=files.ca))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(3):  # TLS 1.3 needs two rounds
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return verify_reason(error)
            except ssl.SSLError as error:
                return error.reason or str(error)
    return ""


def _lists_end(name: str, crl: str, left: float) -> Finding:
    name = f"revocation list, {name}"
    if left < 0:
        return Finding(name, "missing", f"{crl} has expired", _REPLACE)
    if left < DAYS_ADVISED_OF_LISTS:
        return Finding(name, "advice", f"{crl} expires in {left:.0f} days", "replace it before")
    return Finding(name, "good", f"{crl} is valid for {left:.0f} days")


def _acceptance(name: str, part: Part, own: Path) -> Iterator[Finding]:
    trusting = part.files.ca or "the authorities of this machine"
    if part.hosts is None:
        if part.files.ca is not None and (why := refusal(part.files, None)):
            says = f"{own} is not accepted by who trusts {trusting}: {why}"
            yield Finding(name, "advice", says, "good if the servers trust another authority")
        return
    for host in part.hosts:
        if why := refusal(part.files, host):
            says = f"clients that trust {trusting} do not accept {own} for {host}: {why}"
            yield Finding(name, "advice", says, "clients need its authority, and it this name")


def _parts(program: str, section: Section) -> Iterator[Part]:
    for prefix, name in _PREFIXES.items():
        if (files := _files(section, f"{prefix}ssl.")) is not None:
            hosts = _hosts(section) if not prefix else None
            yield Part(f"{program}{name}", files, hosts, prefix)
    for each in _lists(section):  # the sources of a mirror
        if (files := _files(each, "ssl.")) is not None:
            source = text_of(each, "cluster") or text_of(each, "bootstrap.servers")
            yield Part(f"{program}: {source}", files, None)


def _files(section: Section, prefix: str) -> TlsFiles | None:
    texts = (text_of(section, f"{prefix}{each}.location") for each in (
        "certificate", "key", "ca", "crl",
    ))  # fmt: skip
    found = TlsFiles(*(Path(text) if text else None for text in texts))
    return found if found.paths else None


def _hosts(section: Section) -> tuple[str, ...] | None:
    """Returns the names of a server by which its clients with TLS on other hosts reach it: of each
    listener the advertised one, or its own. None for a client."""
    if (address := _zookeepers(section)) is not None:
        return () if address in _EVERYWHERE else (address,)
    bound = _addresses(section, "listeners")
    if not bound:
        return None
    advertised = dict(_addresses(section, "advertised.listeners"))
    protocols = dict(
        each.upper().split(":", 1)
        for each in _texts(section, "listener.security.protocol.map")
        if ":" in each
    )
    hosts = []
    for name, own in bound:
        host = advertised.get(name, "" if is_loopback(own) else own)
        if host not in _EVERYWHERE and protocols.get(name, name) not in _PLAIN:
            hosts.append(host)
    return tuple(dict.fromkeys(hosts))


def _addresses(section: Section, key: str) -> list[tuple[str, str]]:
    """Returns name and host of each listener that a setting has."""
    found = map(_LISTENER.fullmatch, _texts(section, key))
    return [(each[1].upper(), each[2]) for each in found if each is not None]


def _zookeepers(section: Section) -> str | None:
    """Returns the address of a ZooKeeper server's port with TLS; "" if it speaks TLS with other
    servers only, and None if this is no such server."""
    if text_of(section, "secureClientPort") is not None:
        return text_of(section, "secureClientPortAddress") or "127.0.0.1"
    return "" if (text_of(section, "sslQuorum") or "").lower() == "true" else None


def _texts(section: Section, key: str) -> list[str]:
    for name, node in section.entries:
        if name.text == key:
            nodes: tuple[Node, ...] = node.nodes if isinstance(node, Items) else (node,)
            texts = [each.text for each in nodes if isinstance(each, Scalar)]
            return [part.strip() for text in texts for part in text.split(",")]
    return []


def _lists(section: Section) -> Iterator[Section]:
    for _, node in section.entries:
        if isinstance(node, Items):
            yield from (each for each in node.nodes if isinstance(each, Section))
