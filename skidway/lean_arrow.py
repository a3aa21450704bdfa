"""Prevents Arrow from importing modules that Skidway's programs never use, so that the programs
start sooner and need less memory.

pandas: if pandas is installed (pyspark needs it), Arrow imports pandas when Arrow makes its first
array. This takes half a CPU second and 40 MB.

pyarrow.vendored.docscrape: Arrow uses this module to parse the docstrings of its functions and to
make new docstrings from them. This takes about 15 ms and 1 MB. `leave_out` also works with a
version of Arrow that does not have this module.
"""

from __future__ import annotations

import sys
import types
from typing import Final

DOCSCRAPE: Final = "pyarrow.vendored.docscrape"


def leave_out() -> None:
    """Prevents Arrow from importing pandas and docscrape. Call this function before Arrow is
    imported."""
    if _PANDAS not in sys.meta_path:
        sys.meta_path.insert(0, _PANDAS)
    if "pyarrow.compute" not in sys.modules:
        module = types.ModuleType(DOCSCRAPE)
        module.NumpyDocString = _NoDocumentation  # type: ignore[attr-defined]
        sys.modules[DOCSCRAPE] = module


def allow_pandas() -> None:
    """Lets this process import pandas again, after `leave_out`. Spark's Python needs pandas from
    the first query on."""
    if _PANDAS in sys.meta_path:
        sys.meta_path.remove(_PANDAS)


class _NoDocumentation(dict[str, list[object]]):
    """Stands for a docstring as docscrape would parse it, but without any parameters."""

    def __init__(self, _text: str) -> None:
        super().__init__(Parameters=[])


class _WithoutPandas:
    """Makes each import of pandas fail as if pandas were not installed. An entry None in
    sys.modules would also make these imports fail, but Cython mishandles such an entry.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raises ModuleNotFoundError for pandas. Returns None for all other modules, so that Python
        asks the next finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is for Spark only", name=fullname)


_PANDAS: Final = _WithoutPandas()
