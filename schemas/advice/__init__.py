"""Advice on an incompatible schema: where it fails, which levels allow it, which edits mend it.

- `draft`: a schema that is being edited, and names for the places in it
- `edits`: which edits can mend each kind of incompatibility; the edit that keeps most of the schema
  comes first. `edit`: one edit; `backward`, `forward`: the edits of each direction; `pieces`: types
  and defaults for them
- `repair`: tries them until the checker takes the result
- `report`: `advise`, which puts it all together for people

Everything here is pure. A schema is suggested only after `compatibility.check` has accepted it in
place of the author's own: parsed from its text, against the same versions, at the same level.
"""

from skidway.schemas.advice.repair import Suggestion
from skidway.schemas.advice.report import Advice, Fault, advise

__all__ = ["Advice", "Fault", "Suggestion", "advise"]
