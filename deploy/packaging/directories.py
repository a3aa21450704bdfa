"""Fills a directory that is complete whenever it exists."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacement(folder: Path) -> Iterator[Path]:
    """Yields an empty directory beside `folder`, to be filled in the `with` block. At the block's
    end the directory replaces `folder`. If the block fails, the directory is removed, and `folder`
    stays as it was."""
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        yield fresh
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
