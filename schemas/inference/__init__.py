"""Proposes a schema for a log that has none: JSON lines, CSV or logfmt.

- `lines`: reads the lines of a file, even if a line is very long
- `formats`: splits a line into its values, and detects the `Format` of a sample
- `shapes`: the types of values at one place of a line, merged over all lines
- `naming`: valid Avro names
- `proposal`: turns a shape into an Avro schema
- `inference`: `infer`, which combines these modules and counts lines

Inference reads the file in one pass. It does not store values; it stores only their types and how
often each type occurs. Constants of these modules limit the memory that inference needs for a file
of any size. If values exceed one of these limits, inference counts and reports the values, and does
not silently treat them as missing. A proposal is a draft, which a person must check. For example,
the file cannot show that a field will be missing tomorrow.
"""

from skidway.schemas.inference.formats import Format, FormatUnknown
from skidway.schemas.inference.inference import FieldFound, Inference, infer
from skidway.schemas.inference.lines import read_lines

__all__ = ["FieldFound", "Format", "FormatUnknown", "Inference", "infer", "read_lines"]
