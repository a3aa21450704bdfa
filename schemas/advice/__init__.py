"""Advice on an incompatible schema: where it is incompatible, which levels of compatibility would
allow it, and which edits make it compatible.

- `draft`: a schema that is being edited, and readable names for the places in this schema
- `edits`: which edits can mend each kind of incompatibility; the edit that keeps most of the schema
  comes first. `edit`: one edit; `backward`, `forward`: the edits for each direction of
  compatibility; `pieces`: types and defaults from which edits are built
- `repair`: tries edits until the checker accepts the result
- `report`: `advise`, which puts the advice together for people

Everything here is pure. Before a schema is suggested, it is parsed from its text, and
`compatibility.check` must accept it, with the same earlier versions and the same level as the
author's own schema.
"""

from skidway.schemas.advice.repair import Suggestion
from skidway.schemas.advice.report import Advice, Fault, advise

__all__ = ["Advice", "Fault", "Suggestion", "advise"]
