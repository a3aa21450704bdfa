r"""How the formats of lines escape the characters of codes for terminals (see terminals).

Of each character or pair, as a regular expression: esc ESC, bel BEL, csi U+009B, osc the characters
that stand for ESC and a sign such as `]`, st U+009C, shift SO and SI, bracket `[` behind ESC, slash
the backslash behind ESC. found: what is in every text that has an escaped code, as bytes; empty if
the format has no escapes.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Escapes(NamedTuple):
    """The rules by which a format's texts may escape characters."""

    esc: str
    bel: str
    csi: str
    osc: str
    st: str
    shift: str
    bracket: str = r"\["
    slash: str = r"\\\\"
    found: bytes = b""


PLAIN: Final = Escapes(
    esc="\x1b",
    bel="\x07",
    csi="\x9b",
    osc="[\x90\x98\x9d-\x9f]",
    st="\x9c",
    shift="[\x0e\x0f]",
    slash=r"\\",
)
"""No character is escaped."""
