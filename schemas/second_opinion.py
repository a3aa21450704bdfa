"""Asks Apache Avro's Python library whether it accepts a schema.

Our own code and Apache's library have different uses:

- Our own parser and checker (`avro_schema`, `compatibility`) decide whether a schema is valid, and
  whether it is compatible. Tests check that our parser and our checker agree with Apache Avro's
  Java library. The Python library (avro 1.12) differs from the Java library. The Python library
  accepts invalid defaults and field names such as `a-b`, and compares aliases without their
  namespace. Its reports of incompatibilities have no fixed order, and do not say which part of the
  schema is incompatible.
- Some people read the data with the Python library. So `second_opinion` tells the author of a
  schema if the Python library refuses the schema.
- tests/unit/schemas compares our checker with the Python library's checker, except for schemas that
  the Python library judges wrongly.
"""

from __future__ import annotations

import warnings

_REFUSALS = (ValueError, TypeError, KeyError, AttributeError)
"""Python's built-in errors that the library raises for schemas that it refuses, in addition to its
own errors."""


def second_opinion(text: str) -> str | None:
    """Returns the reason why Apache's Python library refuses a schema, or None if that library
    accepts the schema or is not installed."""
    try:
        import avro.errors
        import avro.schema
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns about unknown logical types
        try:
            avro.schema.parse(text)
        except (avro.errors.AvroException, *_REFUSALS) as error:
            return str(error) or type(error).__name__
    return None
