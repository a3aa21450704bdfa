"""Gives advice on an incompatible schema: where the schema is incompatible, which levels of
compatibility would allow the schema, and which edits make it compatible.

- `draft`: a schema that is being edited, and readable names for the paths of its types and fields
- `edits`: which edits can mend each kind of incompatibility; the edit that keeps most of the schema
  comes first. `edit`: one edit; `backward`, `forward`: the edits for each direction of
  compatibility; `pieces`: types and defaults from which edits are built
- `repair`: tries edits until the checker accepts the result
- `report`: `advise`, which puts the advice together for people

This package does no I/O. Before the package suggests a schema, it parses the schema's text and
checks the schema with `compatibility.check`. This check uses the same earlier versions and the same
level as the check of the author's schema.
"""

from skidway.schemas.advice.repair import Suggestion
from skidway.schemas.advice.report import Advice, Fault, advise

__all__ = ["Advice", "Fault", "Suggestion", "advise"]
