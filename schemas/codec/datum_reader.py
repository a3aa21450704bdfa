"""Decodes datums of a writer's schema into columns of a reader's schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skidway.schemas.avro_schema import Record, parse, without_circles
from skidway.schemas.canonical import canonical
from skidway.schemas.codec import metrics
from skidway.schemas.codec.arrow import arrow_schema
from skidway.schemas.codec.codec import Codec, Decoded
from skidway.schemas.codec.matching import Unresolvable
from skidway.schemas.codec.promotion import ROUNDED
from skidway.schemas.codec.resolution import resolution
from skidway.schemas.codec.spreading import batch_of

Schema = str | dict[str, Any] | list[Any]


class DatumReader:
    """Decodes datums of one writer's schema into columns of one reader's schema. Keeps no state
    between calls. Several threads may use one `DatumReader`.

    Raises `SchemaInvalid` for an invalid schema, `SchemaUnsupported` for a schema that cannot
    become columns, `Unresolvable` if the reader's schema cannot read the writer's, and
    `TooManyTypes`.
    """

    def __init__(self, writer: Schema, reader: Schema) -> None:
        self._codec = Codec(writer)
        written, read = (parse(each, check_defaults=False) for each in (writer, reader))
        self.arrow_schema: pa.Schema = arrow_schema(read)
        self._step = resolution(without_circles(written), without_circles(read))
        self._is_same = canonical(written) == canonical(read)
        self._from_record, self._to_record = isinstance(written, Record), isinstance(read, Record)

    def decode(self, datums: pa.BinaryArray) -> Decoded:
        """Returns the rows of all good datums, with the columns of the reader's schema, and the
        index and reason of each bad datum.

        A datum is also bad if its value does not fit the reader's schema.
        """
        decoded = self._codec.decode(datums)
        if self._is_same:
            return decoded
        given = decoded.batch.to_struct_array() if self._from_record else decoded.batch.column(0)
        made, found = self._step(given)
        unfit: dict[int, str] = {}
        for mask, reason in found:
            if reason.endswith(ROUNDED):
                continue  # Avro lets a reader round, for example from long to double
            for index in np.flatnonzero(mask).tolist():
                unfit.setdefault(index, f"field {reason}" if self._from_record else reason)
        every = range(len(self.arrow_schema))
        resolved = [made.field(at) for at in every] if self._to_record else [made]
        return self._assembled(decoded, resolved, unfit)

    def _assembled(
        self, decoded: Decoded, columns: list[pa.Array], unfit: dict[int, str]
    ) -> Decoded:
        good, refused = decoded.good, decoded.refused
        if unfit:
            places = np.flatnonzero(good)
            good = good.copy()
            good[places[list(unfit)]] = False
            refused = sorted([*refused, *((int(places[at]), why) for at, why in unfit.items())])
            fits = np.ones(decoded.batch.num_rows, bool)
            fits[list(unfit)] = False
            columns = [column.filter(pa.array(fits)) for column in columns]
            metrics.refused("resolve", len(unfit))
        batch = batch_of(columns, self.arrow_schema, int(good.sum()))
        return Decoded(batch, good, refused)


__all__ = ["DatumReader", "Unresolvable"]
