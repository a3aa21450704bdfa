"""A schema whose id a registry has given to the agent."""

from __future__ import annotations

from typing import NamedTuple


class KnownSchema(NamedTuple):
    """registry: the addresses of the registry, as the setting has them. version: above 0 if the
    agent asked for the latest version of the subject; 0 if it registered the text itself."""

    registry: str
    subject: str
    id: int
    text: str
    version: int
