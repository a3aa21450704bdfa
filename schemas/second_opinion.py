"""What Apache Avro's own Python library says of a schema.

Our parser decides what is kept, since it is stricter and says where; but people read the data with
Apache's libraries, and who writes a schema wants to know when one of them does not take it.
"""

from __future__ import annotations

import warnings

_REFUSALS = (ValueError, TypeError, KeyError, AttributeError)
"""Beside its own errors; it lets some of Python's through."""


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
