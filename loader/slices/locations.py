"""Finds host and path of records, by (agent, file). If consecutive records belong to one file,
looks up the file only once."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.counts.marks import FileKey
from skidway.kafka.columns import Origins
from skidway.loader.state.tables import Location

Bools = npt.NDArray[np.bool_]

NO_LOCATION: Final = -1
"""The code in `Located.codes` of a record without origin, or of a record whose file is not
announced.
"""


@dataclass(frozen=True, slots=True)
class Located:
    """Host and path of the log files of some records. codes: for each record, the index of its
    file's host in `hosts` and of its file's path in `paths`.

    missing: for each record, true if the record's file is not announced yet and the loader still
    waits for the announcement. given_up: for each record, true if the record's file is not
    announced and the loader no longer waits for the announcement.
    """

    codes: npt.NDArray[np.int32]
    hosts: pa.StringArray
    paths: pa.StringArray
    missing: Bools
    given_up: Bools

    def slice(self, end: int) -> Located:
        """Returns the hosts and paths of the first `end` records."""
        return Located(
            self.codes[:end], self.hosts, self.paths, self.missing[:end], self.given_up[:end]
        )

    def columns(self, rows: npt.NDArray[np.intp]) -> tuple[pa.Array, pa.Array]:
        """Returns the columns `_host` and `_file` of the records with these indices."""
        codes = self.codes[rows]
        indices = pa.array(codes, mask=codes == NO_LOCATION)
        return (
            pa.DictionaryArray.from_arrays(indices, self.hosts),
            pa.DictionaryArray.from_arrays(indices, self.paths),
        )


def locate(
    origins: Origins,
    announced: Mapping[FileKey, Location],
    given_up: AbstractSet[FileKey],
    *,
    patient: bool = True,
) -> Located:
    """Finds host and path of every record. given_up: files that were not announced in time, so that
    the loader no longer waits. If such a file is announced after all, its records get host and
    path. patient: if false, the loader waits for no announcement."""
    agent, file = origins.agent, origins.file
    count = len(agent)
    changed = np.flatnonzero((agent[1:] != agent[:-1]) | (file[1:] != file[:-1])) + 1
    begins = np.concatenate(([0], changed)) if count else np.zeros(0, np.intp)
    known: dict[FileKey, int] = {}
    locations: list[Location] = []
    codes, missing, without = [], [], []
    for key in zip(agent[begins].tolist(), file[begins].tolist(), strict=True):
        if key not in known:
            known[key] = NO_LOCATION
            if key[0] != NO_AGENT and key in announced:
                known[key] = len(locations)
                locations.append(announced[key])
        lost = known[key] == NO_LOCATION and key[0] != NO_AGENT
        codes.append(known[key])
        awaited = patient and key not in given_up
        missing.append(lost and awaited)
        without.append(lost and not awaited)
    runs = np.diff(begins, append=count)
    return Located(
        np.repeat(np.array(codes, np.int32), runs),
        pa.array([host for host, _ in locations], pa.string()),
        pa.array([path for _, path in locations], pa.string()),
        np.repeat(np.array(missing, np.bool_), runs),
        np.repeat(np.array(without, np.bool_), runs),
    )
