"""Imports the programs of Skidway, for the fork server (`support.fork_server`)."""

import gc
import importlib

from skidway import lean_arrow

PROGRAMS = (
    "skidway.agent.program",
    "skidway.agent.validation.checks",
    "skidway.audit.cli",
    "skidway.audit.collector.collector",
    "skidway.audit.counter.program",
    "skidway.broker.program",
    "skidway.loader.runs.run",
    "skidway.schemas.commands",
    "skidway.schemas.registry.program",
)

lean_arrow.leave_out()
for each in PROGRAMS:
    importlib.import_module(each)
gc.freeze()
