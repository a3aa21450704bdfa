"""The code and the documents do not use private words, which only their author understands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

PRIVATE = {
    "basket": "what is gathered for one request",
    "books": "accounts, or counts",
    "desk": "queue",
    "errand": "job",
    "kin": "group, or the files of one log",
}
"""For each private word (as a regular expression), the common word to use instead."""

HERE = "tests/unit/test_words.py"


def test_private_words_are_not_used() -> None:
    """None of the words in PRIVATE occurs in the code or the documents, because readers do not
    understand these words and cannot search for them."""
    word = re.compile(rf"(?<![a-z])({'|'.join(PRIVATE)})s?(?![a-z])", re.IGNORECASE)
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.splitlines() if name != HERE]
    assert len(files) > 1000
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for file in files
        if file.is_file() and not file.is_symlink()
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if word.search(line)
    ]
    assert not found
