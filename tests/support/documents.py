"""Reads Skidway's Markdown documents for tests."""

from __future__ import annotations

import re
from pathlib import Path


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub creates for the page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
