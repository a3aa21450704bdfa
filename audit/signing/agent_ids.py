"""The ids of agents, which say whose they are.

    id = random number (31 bits)  the first 4 bytes of SHA-256 over the identity

So nobody else can claim the id of an agent, not even before anybody has heard of it.
"""

from __future__ import annotations

import hashlib
import secrets
from functools import lru_cache
from typing import Final

from skidway.audit.signing.identity import Identity

_CONTEXT: Final = b"skidway agent id 1\0"
_TAG_BITS: Final = 32
_RANDOM_END: Final = (1 << 31) - 1


def new_agent_id(identity: Identity) -> int:
    """Returns a random id for an agent with this identity, above 0 and below 2^63."""
    return agent_id(identity, 1 + secrets.randbelow(_RANDOM_END))


def agent_id(identity: Identity, number: int) -> int:
    """Returns the id of an agent with this identity. number: its random number, from 1 to
    2^31-1."""
    return number << _TAG_BITS | _tag(identity)


def is_id_of(agent: int, identity: Identity) -> bool:
    """Whether an id was made for an agent with this identity."""
    return agent & ((1 << _TAG_BITS) - 1) == _tag(identity)


@lru_cache(1 << 16)
def _tag(identity: Identity) -> int:
    digest = hashlib.sha256(_CONTEXT + str(identity).encode()).digest()
    return int.from_bytes(digest[: _TAG_BITS // 8], "big")
