"""The verbs (subcommands) of `skidway schemas`, with one module for each kind of work.

Reading order:

- `connection`: the options and settings that all verbs except infer have
- `arguments`: the arguments that several verbs share
- `browse`: the verbs list, versions and get
- `evolve`: the verbs register and check
- `verdict`: the registry's verdict on a schema, and Skidway's advice
- `configuration`: the verbs level and mode
- `compare`: the verbs diff and infer
- `who_uses`: the verb who-uses
- `retire`: the verbs delete and undelete
- `backup`: the verbs dump and restore

The exit status is 0 on success, 1 if the schema is incompatible or the registry refuses the
request, 2 for wrong usage, 3 if the registry is unreachable, and 78 if the configuration cannot be
used. A verb deletes only with `--yes`, or after a person has answered y.
"""

from __future__ import annotations

from typing import Any

from skidway.schemas.commands import (
    backup,
    browse,
    compare,
    configuration,
    evolve,
    retire,
    who_uses,
)

VERBS = (browse, evolve, configuration, compare, who_uses, retire, backup)


def register(verbs: Any) -> None:
    """Adds all verbs to `skidway schemas`."""
    for module in VERBS:
        module.register(verbs)
