"""Who a client is."""

from __future__ import annotations

from typing import Final

from skidway.dataclass import dataclass
from skidway.security.principals import ANONYMOUS
from skidway.security.x509 import SerialOf


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a client is. serial: of its certificate; None if it has shown none. user: the name with
    which it has logged in; None without a login."""

    principal: str
    serial: SerialOf | None = None
    user: str | None = None


NOBODY: Final = Identity(ANONYMOUS)
