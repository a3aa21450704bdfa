"""Formats the proposal of `skidway agent guess` as text that the command prints."""

from __future__ import annotations

from skidway.agent.commands.proposals import Guess
from skidway.agent.files.host import shown
from skidway.agent.validation.excerpts import excerpt
from skidway.agent.validation.preview import SHOWN_CHARACTERS_MAX


def render(found: Guess, rows_max: int = 10) -> str:
    """Returns the proposal as text to print, with at most `rows_max` of the rows that it makes of
    the file."""
    made = found.preview
    count = len(made.rows) + len(made.rejects)
    lines = [
        f"{shown(str(found.path))}: {found.what};",
        f"{len(made.rows):,} of {count:,} records fit ({made.share:.1%} of the bytes).",
        *found.notes,
        "",
        found.yaml.rstrip(),
        "",
        f"The first {min(rows_max, len(made.rows))} rows:",
    ]
    for each in made.rows[:rows_max]:
        lines.append(f"  {each.time.isoformat() if each.time else 'time of reading'}")
        for name, value in each.row.items():
            if value not in (None, "", []):
                lines.append(f"    {name}: {excerpt(value, SHOWN_CHARACTERS_MAX)}")
    lines += made.notes
    if made.rejects:
        lines += ["", "Records that do not fit:"]
        for reject in made.rejects[:3]:
            text = reject.line.decode(found.source.encoding, "replace")
            lines.append(
                f"  byte {reject.first}: {reject.reason}: {excerpt(text, SHOWN_CHARACTERS_MAX)}"
            )
    return "\n".join(lines) + "\n"
