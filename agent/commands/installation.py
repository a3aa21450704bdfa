"""`skidway agent install-snippet`: commands that install the agent on a host with neither Ansible
nor dpkg.
"""

from __future__ import annotations

import json
import platform
import shlex
from importlib.metadata import version
from pathlib import Path

from skidway import units
from skidway.errors import UsageError

MANIFEST = "wheels.json"
UNIT = "skidway-agent.service"

SNIPPET = """\
# The Skidway agent {version} by hand: three commands, as root, on a host with systemd and
# Python {python}, and with a copy of the directory that `make wheels` made: {wheels}

# 1. The program, in an environment of its own.
python3 -m venv --without-pip {home} &&
{home}/bin/python "$(echo {wheels}/pip-*.whl)/pip" install --no-index --find-links {wheels} \\
    --require-hashes -r {wheels}/agent.txt &&
mkdir -p /opt/skidway/current && ln -sfn ../{version} /opt/skidway/current/agent

# 2. Its user, its unit (below), and a configuration to be edited.
{{ getent passwd skidway-agent >/dev/null || useradd --system --user-group --no-create-home \\
    --home-dir /var/lib/skidway/agent --shell /usr/sbin/nologin skidway-agent; }} &&
{skidway} unit show agent >/etc/systemd/system/{unit} &&
mkdir -p /etc/skidway && {{ test -e /etc/skidway/agent.yml || {{
    {skidway} agent run --example >/etc/skidway/agent.yml &&
    chgrp skidway-agent /etc/skidway/agent.yml && chmod 0640 /etc/skidway/agent.yml; }}; }}

# 3. Once /etc/skidway/agent.yml is edited (state.dir: /var/lib/skidway/agent):
{skidway} agent validate && systemctl daemon-reload && systemctl enable --now {unit}

# To upgrade: command 1 with the wheels of the next version, command 2, then
# systemctl daemon-reload && systemctl restart {unit}
# The unit:
{text}"""


def snippet(wheels: Path) -> str:
    """Returns the commands that install from a directory of wheels. The directory must exist on the
    host on which the commands will run, but need not exist on this machine.

    Raises UsageError if the directory exists on this machine but has no manifest of `make wheels`.
    """
    manifest = _manifest(wheels)
    release = str(manifest.get("version") or version("skidway"))
    python = str(manifest.get("python") or ".".join(platform.python_version_tuple()[:2]))
    return SNIPPET.format(
        version=release,
        python=python,
        wheels=shlex.quote(str(wheels)),
        home=f"/opt/skidway/{release}",
        skidway="/opt/skidway/current/agent/bin/skidway",
        unit=UNIT,
        text="".join(f"#     {line}".rstrip() + "\n" for line in units.text(UNIT).splitlines()),
    )


def _manifest(wheels: Path) -> dict[str, str]:
    if not wheels.exists():
        return {}
    try:
        return dict(json.loads((wheels / MANIFEST).read_text()))
    except (OSError, ValueError) as error:
        raise UsageError(f"{wheels} is no directory of `make wheels`: {error}") from error
