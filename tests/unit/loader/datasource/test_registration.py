"""`skidway.register` chooses the Python interpreter that runs the data source."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import skidway
from skidway.loader.datasource import registration
from skidway.loader.datasource.source import SkidwaySource


class Session:
    """A fake Spark session, which records each registered data source and the Python interpreter
    that was set during the registration."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(pythonExec="python3")
        self.dataSource = SimpleNamespace(register=self._register)
        self.registered: list[tuple[type, str]] = []

    def _register(self, source: type) -> None:
        self.registered.append((source, self.sparkContext.pythonExec))


def test_the_source_runs_in_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data source is registered with the Python interpreter of this process. The Spark
    session's own interpreter stays the same."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    session = Session()
    assert skidway.register is registration.register
    skidway.register(session)
    assert session.registered == [(SkidwaySource, sys.executable)]
    assert session.sparkContext.pythonExec == "python3"


def test_a_python_that_somebody_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the environment variable PYSPARK_PYTHON names a Python interpreter, this interpreter runs
    the data source, as it runs all other Python code of Spark."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    session = Session()
    session.sparkContext.pythonExec = "/opt/python"
    skidway.register(session)
    assert session.registered == [(SkidwaySource, "/opt/python")]
