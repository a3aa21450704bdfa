"""The setting of every program that sends audit messages: the file with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skidway.audit.signing.signer import Doubt, Signer
from skidway.clock import Clock
from skidway.settings import setting


def audit_key_setting(program: str) -> Any:
    """Declares the field `audit_key_location: Path | None` of a program's settings class."""
    return setting(
        "audit.key.location",
        None,
        help="File with the key that signs this program's messages to the audit, as `skidway audit"
        " keys derive` prints it; read again when it changes.",
        example=f"/etc/skidway/{program}.key",
    )


def signer_of(location: Path | None, doubt: Doubt, clock: Clock) -> Signer | None:
    """Returns the signer of a program; None if its settings name no key. doubt: see Signer."""
    return None if location is None else Signer(location, doubt, clock)
