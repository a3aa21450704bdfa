"""Text files that people write: schemas, configurations, lists of users.

Such a file is UTF-8. Some editors put a byte order mark before the text, which is no part of it,
or save UTF-16 or UTF-32. A person sees none of this in an editor, so the error says it.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

from skidway.errors import SkidwayError
from skidway.regular_file import read_regular

MARK: Final = "\ufeff"
"""The byte order mark, as a character."""
_FOREIGN: Final = {
    codecs.BOM_UTF32_LE: "UTF-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class NotUtf8(SkidwayError):
    """Raised if bytes are not UTF-8. The message does not name the file."""


def read_text(path: Path) -> str:
    """Returns the text of a file. Raises OSError and `NotUtf8`."""
    return decoded(read_regular(path))


def decoded(data: bytes) -> str:
    """Returns the text of a file with these bytes. Raises `NotUtf8`."""
    encoding = foreign_encoding(data)
    if encoding is not None:
        raise NotUtf8(f"it is {encoding}; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotUtf8(f"byte {error.start} is not UTF-8") from None


def foreign_encoding(data: bytes) -> str | None:
    """Returns UTF-16 or UTF-32 if the bytes begin with the byte order mark of this encoding,
    otherwise None."""
    return next((name for mark, name in _FOREIGN.items() if data.startswith(mark)), None)
