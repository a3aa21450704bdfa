"""The identity of a sender of audit messages: a text, for which its key is made.

agent/CLUSTER/HOST[/NAME]          an agent; NAME tells several agents of one host apart
counter/TIER/CLUSTER[/PRODUCER]    a counter; PRODUCER if its setting `producer` names it
loader/CLUSTER/OUTPUT              the loads into one output
recount/HOST                       recounts on one host
person/NAME                        the decisions of a person
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError

IDENTITY_BYTES_MAX: Final = 8_192


class Role(StrEnum):
    """What a sender does."""

    AGENT = "agent"
    COUNTER = "counter"
    LOADER = "loader"
    RECOUNT = "recount"
    PERSON = "person"


COUNTED_TIERS: Final = ("broker", "mirror")
"""What TIER of a counter may be."""

FORMS: Final = {
    Role.AGENT: "agent/CLUSTER/HOST or agent/CLUSTER/HOST/NAME",
    Role.COUNTER: "counter/TIER/CLUSTER or counter/TIER/CLUSTER/PRODUCER",
    Role.LOADER: "loader/CLUSTER/OUTPUT",
    Role.RECOUNT: "recount/HOST",
    Role.PERSON: "person/NAME",
}

_PARTS: Final = {
    Role.AGENT: (2, 3),
    Role.COUNTER: (2, 3),
    Role.LOADER: (2, 2),
    Role.RECOUNT: (1, 1),
    Role.PERSON: (1, 1),
}
"""For each role, the least and the greatest number of parts after the role. The last part may
contain slashes."""


class IdentityInvalid(SkidwayError):
    """Raised for a text that is no identity."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity. parts: the parts of its text after the role."""

    role: Role
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the identity in a text. Raises IdentityInvalid."""
        role, _, rest = text.partition("/")
        if role not in _ROLES:
            raise IdentityInvalid(
                f"{text!r} is no identity: it begins with none of {', '.join(_ROLES)}"
            )
        least, most = _PARTS[_ROLES[role]]
        parts = tuple(rest.split("/", most - 1))
        is_whole = least <= len(parts) and all(parts)
        is_whole &= role != Role.COUNTER or parts[0] in COUNTED_TIERS
        if not is_whole or not text.isprintable() or len(text.encode()) > IDENTITY_BYTES_MAX:
            raise IdentityInvalid(f"{text!r} is no identity: {FORMS[_ROLES[role]]}")
        return cls(_ROLES[role], parts)

    def __str__(self) -> str:
        return "/".join((self.role.value, *self.parts))


_ROLES: Final = {role.value: role for role in Role}
