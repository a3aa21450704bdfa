"""Publishes the messages that commands send to the collector, on the audit topic of a cluster."""

from __future__ import annotations

import argparse
import os
import pwd
import time
from collections.abc import Sequence
from pathlib import Path

from skidway.audit.commands import options
from skidway.audit.evidence.admission import Mode
from skidway.audit.settings import AuditSettings
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.signing.key_file import KeyFile
from skidway.audit.signing.keys import KeyRefused, master_keys_in
from skidway.audit.signing.setting import signer_of
from skidway.audit.signing.signer import Signer
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic import topic
from skidway.audit.topic.messages import TOPIC
from skidway.audit.topic.publisher import MemoryOutbox, Publisher
from skidway.clock import Clock
from skidway.errors import Unreachable, UsageError
from skidway.kafka.client import Client, Producer
from skidway.kafka.types import TopicPartition

PUBLISHED_WITHIN_S = 30.0
PERSON_KEY = Path(".config/skidway/audit.key")
"""Where the key of a person is, in the person's home."""


def say(
    args: argparse.Namespace,
    settings: AuditSettings | None,
    values: Sequence[bytes],
    clock: Clock,
    what: str,
    signer: Signer | None = None,
) -> None:
    """Publishes messages to one partition of the audit topic, on the cluster whose audit topics the
    commands read. Raises Unreachable if the brokers do not acknowledge the messages in time, and
    PublishRefused if they refuse a message.

    what: what the messages contain, in words for the error message. signer: signs them; None if
    nobody does.
    """
    with options.client_of(args, settings) as client:
        _publish(client, values, clock, what, signer)


def recount_signer(settings: AuditSettings | None, host: str, clock: Clock) -> Signer | None:
    """Returns the signer of the recounts on this host; None if the settings name no key. Raises
    UsageError if it has no usable key, or needs one."""
    path = None if settings is None else settings.audit_key_location
    own = Identity(Role.RECOUNT, (host,))
    return _usable(
        signer_of(path, lambda x: None if x == own else f"a message of {own}", clock),
        settings,
        f"audit.key.location names no key. `skidway audit keys derive {own}`, where the master keys"
        " are, prints it.",
    )


def person_signer(
    settings: AuditSettings | None, path: Path | None, clock: Clock
) -> tuple[Signer | None, str | None]:
    """Returns the signer of a person's decisions, and the name of the person in its key. Both are
    None if there is no key. path: the file with the key; None for the usual one. Raises UsageError
    if the key cannot be used, or if the settings require one."""
    usual = _home() / PERSON_KEY
    found = path if path is not None else usual if os.path.lexists(usual) else None
    names: list[str] = []

    def doubt(identity: Identity) -> str | None:
        names.append(identity.parts[0])
        return None if identity.role is Role.PERSON else "a decision"

    if found is not None and _others_may_read(found):
        raise UsageError(f"{found} has your key, and others may read it: chmod 600 {found}")
    signer = _usable(
        signer_of(found, doubt, clock),
        settings,
        f"{usual} has no key of yours. `skidway audit keys person NAME`, where the master keys are,"
        " prints it.",
    )
    return signer, names[-1] if names else None


def _usable(signer: Signer | None, settings: AuditSettings | None, missing: str) -> Signer | None:
    if signer is None and settings is not None and settings.mode is Mode.REQUIRE:
        raise UsageError(f"The audit takes signed messages only, but {missing}")
    if signer is not None and signer.refusal is not None:
        raise UsageError(signer.refusal)
    if signer is not None and (flaw := _flaw(signer, settings)):
        raise UsageError(f"The audit would refuse what {signer.identity} signs: {flaw}.")
    return signer


def _flaw(signer: Signer, settings: AuditSettings | None) -> str | None:
    """What is wrong with the signatures of a signer, if the master keys are here to tell."""
    if settings is None or settings.master_keys_location is None:
        return None
    try:
        masters = KeyFile(settings.master_keys_location, master_keys_in).changed()
    except KeyRefused:
        return None
    return Verifier(masters or ()).verify(b"", signer.sign([b""])[0]).flaw


def _home() -> Path:
    name = os.environ.get("SUDO_USER")
    try:
        return Path(pwd.getpwnam(name).pw_dir if name else pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/")


def _others_may_read(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False  # whoever reads it says what is wrong


def _publish(
    client: Client, values: Sequence[bytes], clock: Clock, what: str, signer: Signer | None
) -> None:
    count = topic.ensure(client, time.sleep)
    partition = TopicPartition(TOPIC, topic.partition_of("", count))
    outbox = MemoryOutbox(values)
    publisher = Publisher(Producer(client), outbox, partition, clock, signer)
    if not publisher.flush(PUBLISHED_WITHIN_S):
        raise Unreachable(
            f"The cluster has not acknowledged {what} within {PUBLISHED_WITHIN_S:.0f} s: check"
            " in the report whether it is known before you repeat it."
        )
