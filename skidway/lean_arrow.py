"""Prevents Arrow from importing pandas. Where pandas is installed (Spark needs it), Arrow imports
it with its first array. This takes half a CPU second and 40 MB, and no program of Skidway uses it.
"""

from __future__ import annotations

import sys
from typing import Final


def leave_out() -> None:
    """Prevents the import of pandas. Call this function before Arrow is imported."""
    if _PANDAS not in sys.meta_path:
        sys.meta_path.insert(0, _PANDAS)


def allow_pandas() -> None:
    """Lets this process import pandas again, after `leave_out`. Spark's Python needs pandas from
    the first query on."""
    if _PANDAS in sys.meta_path:
        sys.meta_path.remove(_PANDAS)


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
