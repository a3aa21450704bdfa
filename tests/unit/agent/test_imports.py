"""Tests which modules a starting agent imports, because each import makes the start longer and the
memory larger."""

from __future__ import annotations

import subprocess
import sys


def imported(code: str) -> set[str]:
    """Runs the code in a new process, and returns the modules that the process has imported."""
    code = f"import sys; {code}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_the_settings_need_no_arrow() -> None:
    """The command `skidway` imports the modules of the settings before it knows its subcommand. So
    these modules import neither Arrow, which takes long to load, nor pandas, which Arrow
    imports."""
    modules = imported("import skidway.agent.cli, skidway.agent.settings")
    assert "skidway.agent.settings" in modules
    assert modules.isdisjoint({"pyarrow", "pandas"})


PACKAGES = {
    "backports", "cramjam", "dateutil", "fastavro", "google_crc32c", "lz4", "numpy",
    "prometheus_client", "pyarrow", "skidway", "snappy", "urllib3", "watchdog", "yaml",
}  # fmt: skip
"""All packages, apart from the standard library, that an agent may import if all its sources have
the raw parser. Each further package makes the agent start later and need more memory.
"""

OWN = {
    "skidway.agent.commands", "skidway.agent.parsing.csv_lines", "skidway.agent.parsing.logfmt",
    "skidway.agent.parsing.key_values", "skidway.agent.parsing.multiline",
    "skidway.agent.validation.trial", "skidway.audit.collector", "skidway.broker",
    "skidway.consumer", "skidway.coordination", "skidway.kafka.client.alterations",
    "skidway.loader", "skidway.schemas.inference", "skidway.schemas.registry",
}  # fmt: skip
"""Modules of Skidway that an agent never uses if all its sources have the raw parser."""

STANDARD = {"asyncio", "concurrent.futures", "multiprocessing", "unittest", "xml"}
"""Modules of the standard library that an agent never uses if all its sources have the raw parser.
Other packages could import these modules."""


def test_an_agent_with_raw_text_imports_what_it_uses() -> None:
    """At its start, an agent imports Arrow without pandas, even if pandas is installed. It imports
    no package outside `PACKAGES`, no parser that its sources do not need, and no code for requests
    that alter a cluster."""
    arguments = ["agent", "run", "--set", "no.such.setting=1"]  # refused after the imports
    modules = imported(f"from skidway.cli import main; main({arguments})")
    assert {"pyarrow", "skidway.agent.program"} <= modules
    assert modules & (OWN | STANDARD | {"pandas"}) == set()
    begun = imported("pass")
    tops = {name.partition(".")[0] for name in modules - begun}
    own_names = {name for name in tops if not name.startswith(("_", "cython_runtime"))}
    assert own_names - sys.stdlib_module_names <= PACKAGES
