"""An authorizer for tests of handlers that are not about rights: everybody may do everything."""

from __future__ import annotations

from skidway.broker.access.authorizer import Authorizer
from skidway.broker.access.security_log import SecurityLog

AUTHORIZER = Authorizer("off", (), False, SecurityLog(lambda: 0.0))
