"""Proposes a schema for a log that has none: JSON lines, CSV or logfmt.

- `lines`: lines of a file, however long they are
- `formats`: a line to its values (`Format`, and which format a sample has)
- `shapes`: what was seen at one place, merged over all lines
- `naming`: names that Avro takes
- `proposal`: a shape to an Avro schema
- `inference`: `infer`, which puts it together and counts

One pass, in memory that the constants of these modules bound, whatever the file holds: no values
are kept, only which types they have and how often. Whatever exceeds a bound is counted and
reported, never silently taken for absent. A proposal is a draft for a person to read. It claims
nothing that it cannot know (that a field may be missing tomorrow).
"""

from skidway.schemas.inference.formats import Format, FormatUnknown
from skidway.schemas.inference.inference import FieldFound, Inference, infer
from skidway.schemas.inference.lines import read_lines

__all__ = ["FieldFound", "Format", "FormatUnknown", "Inference", "infer", "read_lines"]
