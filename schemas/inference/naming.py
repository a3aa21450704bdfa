"""Makes valid Avro names from any names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def avro_name(text: str) -> str:
    """Returns a valid name that is similar to `text`. Replaces each character that a name must not
    have by `_`, and puts `_` before a leading digit."""
    made = _NO_NAME.sub("_", text)
    return made if made and not made[0].isdigit() else f"_{made}"


def avro_names(texts: Iterable[str]) -> dict[str, str]:
    """Returns, for each text, a valid name that no other text gets. A text that is a valid name
    stays unchanged."""
    texts = [*texts]
    taken = {text for text in texts if avro_name(text) == text}
    names = {}
    for text in texts:
        name = made = avro_name(text)
        number = 2
        while name != text and name in taken:
            name, number = f"{made}_{number}", number + 1
        taken.add(name)
        names[text] = name
    return names
