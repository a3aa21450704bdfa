"""What Apache Avro's own Python library says of a schema.

Which is used for what:

- Our own parser and checker (`avro_schema`, `compatibility`) decide whether a schema is kept, and
  whether it is compatible. They are held equal to Apache Avro's Java library. The Python library
  (avro 1.12) differs from that: it takes invalid defaults and names of fields such as `a-b`,
  compares aliases without their namespace, and says neither where nor in which order things do not
  fit.
- But people read the data with the Python library, so the author of a schema wants to know when it
  refuses the schema: `second_opinion` says so.
- Where its checker is right, tests/unit/schemas compares ours with it.
"""

from __future__ import annotations

import warnings

_REFUSALS = (ValueError, TypeError, KeyError, AttributeError)
"""What it raises beside its own errors: it lets some of Python's through."""


def second_opinion(text: str) -> str | None:
    """Why that library does not read a schema; None where it does, or is not installed."""
    try:
        import avro.errors
        import avro.schema
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of logical types that it does not know
        try:
            avro.schema.parse(text)
        except (avro.errors.AvroException, *_REFUSALS) as error:
            return str(error) or type(error).__name__
    return None
