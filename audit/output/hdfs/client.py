"""Makes the client of hdfs-native for an output: who the program is, and how long it waits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hdfs_native import Client

from skidway.audit.output import OutputConnection, StoreFailed
from skidway.audit.output.hadoop_client import PRINCIPAL, HadoopClient
from skidway.audit.output.hdfs import configuration, keytab
from skidway.audit.output.hdfs.address import Address, NameNode, address_of
from skidway.audit.output.hdfs.answer import Answers
from skidway.audit.output.hdfs.configuration import Configuration
from skidway.audit.output.hdfs.failures import failures
from skidway.audit.output.hdfs.handshake import Answer, ask
from skidway.errors import ConfigurationRefused
from skidway.machine import kerberos

ATTEMPTS: Final = 8
"""How often the client asks each NameNode, with pauses of up to 3 s. With these settings, an
operation fails if no NameNode has answered for about 20 s; with the client's defaults, only after 3
minutes. A client of two NameNodes pauses only after each second attempt."""

_TOKENS: Final = "HADOOP_TOKEN_FILE_LOCATION"
"""The variable with the file of delegation tokens, which Hadoop gives to the tasks of a job."""


def connect(
    connection: OutputConnection, answers: Answers, environ: Mapping[str, str] = os.environ
) -> tuple[Address, Client]:
    """Returns the address of an output, and a client for it. Raises ConfigurationRefused, and
    StoreFailed if the NameNode does not authenticate as expected, or a file cannot be read."""
    hadoop = connection.hadoop
    hadoop.check()
    known = configuration.read(hadoop.conf_dir, environ=environ)
    address = address_of(connection.url, known)
    is_kerberos = known.is_kerberos or hadoop.principal is not None
    said = {each: ask(each.place) for each in address.name_nodes}
    _check_answers(address, said, is_kerberos=is_kerberos)
    settings = _without_silent(said) | {
        "dfs.client.failover.max.attempts": str(ATTEMPTS * len(address.name_nodes)),
        "dfs.client.failover.sleep.max.millis": "3000",
    }
    identity = {}
    if is_kerberos:
        _check_library()
        settings |= _secured(known)
        if _TOKENS not in environ:  # the client would not use the tokens
            identity = _identity(hadoop)
    directory = None if known.directory is None else str(known.directory)
    with failures("connect to", address.server):
        return address, answers.get(
            lambda: Client(f"{address.server}/", settings, directory, **identity)
        )


def silent(connection: OutputConnection) -> str:
    """Returns a sentence if none of the output's NameNodes answers at the moment; otherwise an
    empty text. Raises ConfigurationRefused and StoreFailed."""
    address = address_of(connection.url, configuration.read(connection.hadoop.conf_dir))
    places = [each.place for each in address.name_nodes]
    if any(ask(each) not in (Answer.SILENT, Answer.NO_CONNECTION) for each in places):
        return ""
    return f"no NameNode answers ({', '.join(places)})"


def _secured(known: Configuration) -> dict[str, str]:
    """Returns the settings without which the client speaks neither with a NameNode nor a DataNode
    of a cluster with Kerberos. How DataNodes protect data, they say themselves."""
    found = {"hadoop.security.authentication": "kerberos"}
    if "dfs.data.transfer.protection" not in known.properties:
        found["dfs.data.transfer.protection"] = "authentication"
    return found


def _identity(hadoop: HadoopClient) -> dict[str, str]:
    """Returns the arguments with which the client gets its tickets from a keytab, and renews them.
    All clients of this process share the tickets, so that those that are made while the KDC is away
    have one. Raises ConfigurationRefused."""
    name = hadoop.name
    if name is None or hadoop.keytab is None:
        return {}
    keytab.check(Path(hadoop.keytab), name)
    return {
        "kerberos_principal": name,
        "kerberos_keytab": hadoop.keytab,
        "kerberos_cache": f"MEMORY:{name} {hadoop.keytab}",
    }


def _check_answers(
    address: Address, answers: Mapping[NameNode, Answer], *, is_kerberos: bool
) -> None:
    """Raises ConfigurationRefused if a NameNode requires Kerberos and nothing here says so, and
    StoreFailed if it is the other way round. A NameNode that does not answer may be away."""
    for each, answer in answers.items():
        if answer is Answer.REQUIRES_KERBEROS and not is_kerberos:
            raise ConfigurationRefused(
                f"{address.server}: {each.place} requires Kerberos: set {PRINCIPAL} and its keytab,"
                " or hadoop.security.authentication in Hadoop's core-site.xml"
            )
        if answer is Answer.TAKES_ANYBODY and is_kerberos:
            raise StoreFailed(
                f"{address.server}: {each.place} does not authenticate by Kerberos, so nobody can"
                " say who answers there"
            )


def _without_silent(answers: Mapping[NameNode, Answer]) -> dict[str, str]:
    """Returns settings that leave the silent NameNodes out of their name services. The client would
    wait for their answers, and not ask the next one."""
    found = {}
    for service in {each.service for each in answers if each.service}:
        those = [each for each in answers if each.service == service]
        kept = [each.name for each in those if answers[each] is not Answer.SILENT]
        if 0 < len(kept) < len(those):
            found[f"dfs.ha.namenodes.{service}"] = ",".join(kept)
    return found


def _check_library() -> None:
    """Raises ConfigurationRefused if the library is missing. The client would try again and again
    to load it."""
    found = kerberos()
    if found.verdict != "good":
        raise ConfigurationRefused(f"{found.says}: {found.advice}")
