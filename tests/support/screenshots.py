"""Implements `make screenshots`, which takes the pictures for README.md and docs/audit.md.

The pictures show the prepared site of support.dashboard_site, whose clock never moves, and not a
running demo. So the same code and the same Chromium give the same pictures.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

from PIL import Image

from skidway.errors import SkidwayError
from support.browser import Browser, browser
from support.dashboard_site import MINUTE, NOW, STATES
from support.peers import ROOT
from support.served import served

FOLDER = ROOT / "docs" / "pictures"
BYTES_MAX = 150_000
COLOURS = 128
ORDERS_LATE = NOW // MINUTE * MINUTE - 6 * MINUTE


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture to take: the page, the state of the site, and the size and the colour scheme of the
    window. `height` is the window's height, or 0 to show the whole page."""

    name: str
    state: str
    path: str = "/"
    width: int = 1_400
    height: int = 0
    scheme: str = "light"


PICTURES = (
    Picture("audit-overview", "incidents"),
    Picture("audit-complete", "complete", height=640),
    Picture("audit-bucket", "incidents", f"/buckets?topic=dc1.orders&bucket={ORDERS_LATE}", 1_200),
    Picture("audit-narrow-dark", "incidents", width=400, height=900, scheme="dark"),
)


def main() -> int:
    """Takes all pictures."""
    FOLDER.mkdir(exist_ok=True)
    try:
        with browser() as window:
            for picture in PICTURES:
                (FOLDER / f"{picture.name}.png").write_bytes(take(window, picture))
    except SkidwayError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def take(window: Browser, picture: Picture) -> bytes:
    """Opens the page and returns its picture as PNG. Raises SkidwayError if the PNG has too many
    bytes."""
    with served(STATES[picture.state]()) as address:
        window.prefer(picture.scheme)
        window.resize(picture.width, picture.height or 900)
        window.open(address + picture.path)
        if not picture.height:
            whole = int(window.run("return document.documentElement.scrollHeight"))
            window.resize(picture.width, whole)
        taken = _smaller(window.picture())
    if len(taken) > BYTES_MAX:
        raise SkidwayError(f"{picture.name}.png has {len(taken):,} bytes, more than {BYTES_MAX:,}")
    return taken


def _smaller(png: bytes) -> bytes:
    """Reduces the picture to at most COLOURS colours, which are enough for text and plain areas."""
    with Image.open(io.BytesIO(png)) as image:
        plain = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = io.BytesIO()
    plain.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
