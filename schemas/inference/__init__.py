"""Proposes a schema for a log that has no schema. The log may consist of JSON lines, CSV or logfmt.

- `lines`: reads the lines of a file, even if a line is very long
- `formats`: splits a line into its values, and detects the `LineFormat` of a sample
- `shapes`: the types of the values that one field of the lines has, merged over all lines
- `naming`: makes valid Avro names from the names in a log
- `proposal`: turns shapes into an Avro schema
- `inference`: the function `infer`, which uses these modules and counts lines

Inference reads the file in one pass. It does not store values; it stores only their types and how
often each type occurs. The memory that inference needs is limited, however large the file is. If
values exceed a limit, inference does not silently treat them as missing: it counts and reports
them. A proposal is a draft, which a person must check. For example, the file cannot show that a
field will be missing tomorrow.
"""

from skidway.schemas.inference.formats import FormatUnknown, LineFormat
from skidway.schemas.inference.inference import FieldFound, Inference, infer
from skidway.schemas.inference.lines import read_lines

__all__ = ["FieldFound", "FormatUnknown", "Inference", "LineFormat", "infer", "read_lines"]
