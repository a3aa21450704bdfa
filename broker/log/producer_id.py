"""Producer ids: which there are, and to whom they belong.

A producer id is a number that is given once in a cluster, and a tag::

    0 | 0 | number, 36 bits | tag, 26 bits

The tag is made from the number, the principal who gets the id, and a key that only the cluster's
brokers know (BLAKE2b with a key, RFC 7693). So each broker can tell, without any state, whether an
id was given to a principal. Otherwise everybody who may write to a topic could send batches under
the ids that others use there, and so end their epochs or take their sequences. To hit the id of
another producer, a principal would need one whose tag is the same by chance (one in 67 million).

Ids outside of this form come only from clients that are not asked whether an id is theirs.
"""

from __future__ import annotations

import hashlib
from typing import Final

NUMBERS: Final = 1 << 36
"""So many ids can be given."""
_TAG_BITS: Final = 26
ID_END: Final = NUMBERS << _TAG_BITS
"""All ids that are given are below this limit."""


class NotThisProducersId(Exception):
    """Raised if a producer sends a batch with an id that was not given to its principal."""


def make(key: bytes, number: int, principal: str) -> int:
    """Returns the id with this number for a principal."""
    text = b"%d %s" % (number, principal.encode())
    tag = int.from_bytes(hashlib.blake2b(text, digest_size=8, key=key).digest())
    return number << _TAG_BITS | tag >> (64 - _TAG_BITS)


def number_of(producer_id: int) -> int:
    """Returns the number in an id below ID_END; -1 for NO_PRODUCER_ID."""
    return producer_id >> _TAG_BITS


def belongs_to(key: bytes, producer_id: int, principal: str) -> bool:
    """Returns whether this id was given to this principal, or may be later."""
    is_formed = 0 <= producer_id < ID_END
    return is_formed and make(key, number_of(producer_id), principal) == producer_id
