"""Says what there is to know of a schema that is to follow earlier versions: what changed, why it
is not compatible, which schema would be, and what readers make of it. `advise` is the entry; the
commands `skidway schemas check`, `register` and `diff` print what it returns.

- `advice`: `advise`, its result, and the sentences; asks Apache's Python library, too
- `differences`: what changed between two schemas
- `repair`: edits an incompatible schema until it is compatible; `draft`: a schema that is edited

This package does no I/O. Whether a schema is compatible, only `compatibility.check` says: of the
author's schema, and of each schema that this package suggests.
"""

from skidway.schemas.advice.advice import Advice, Fault, advise
from skidway.schemas.advice.differences import Difference
from skidway.schemas.advice.repair import Suggestion

__all__ = ["Advice", "Difference", "Fault", "Suggestion", "advise"]
