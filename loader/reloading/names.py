"""Finds host and path of the log files that were announced after a given load, even if the files
have been closed since then.

Host and path of a log file are called its name here. The newest table `names` no longer has the
names of all these log files, because loads drop the names of closed log files after some time
(state/closures.py). But each name is in a Parquet file that some load added to the table. This
Parquet file is kept as long as some manifest still lists it (state/folding.py).

Names that the table had dropped before the given load are left out. After such a name was dropped,
newly loaded records of its log file became rejects, and a reload keeps these records as rejects.
"""

from __future__ import annotations

from skidway.audit.counts.marks import FileKey
from skidway.loader.state import layout
from skidway.loader.state.manifest import NAMES
from skidway.loader.state.table_file import read_rows
from skidway.loader.state.tables import SCHEMAS, Location
from skidway.loader.store import Store


def names_since(store: Store, topic: str, load: int) -> dict[FileKey, Location]:
    """Returns host and path of every log file that was added to the table `names` after the load
    `load`, even if the file was dropped from the table again. Raises StateRefused if a file of the
    table is gone or damaged.
    """
    folder = layout.tables(topic, NAMES)
    paths = [
        f"{folder}/{name}"
        for name in sorted(store.names(folder))
        if (layout.table_number(name) or 0) > load
    ]
    rows = read_rows(store, paths, SCHEMAS[NAMES])
    return {(agent, file): (host, path) for agent, file, host, path in rows if host is not None}
