"""Which hosts and ports a broker may have. A host name from a setting or from another program is
checked before it goes to the resolver, because Python's resolver raises errors of its own kind for
some names, and because people read host names on terminals.
"""

from __future__ import annotations

import re

HOST_NAME_MAX = 255
PORT_MAX = 65535

# a label of a name, or a part of an IPv6 address: "fe80::1%eth0.100" has two
_LABEL = "[a-zA-Z0-9_:%-]{1,63}"
_LEGAL = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")


def is_address(host: str, port: int) -> bool:
    """Returns whether a client can try to connect to an address. The host may be a name in ASCII,
    or a numeric address; whether it exists is for the resolver to say."""
    return (
        len(host) <= HOST_NAME_MAX and _LEGAL.fullmatch(host) is not None and 0 < port <= PORT_MAX
    )
