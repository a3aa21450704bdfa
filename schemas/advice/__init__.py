"""What to do about a schema that may not follow: where it fails, under which level it may, an edit.

- `draft`: a schema that is being edited, and names for the places in it
- `edits`: the edits that can mend each kind of incompatibility, the one that keeps most first;
  `edit` is one, `backward` and `forward` make those of either direction, of `pieces`
- `repair`: tries them until the checker takes the result
- `report`: `advise`, which puts it all together for people

Everything here is pure. A schema is suggested only once `compatibility.check` has taken it in place
of the author's own, from its text, under the same level and versions.
"""

from skidway.schemas.advice.repair import Suggestion
from skidway.schemas.advice.report import Advice, Fault, advise

__all__ = ["Advice", "Fault", "Suggestion", "advise"]
