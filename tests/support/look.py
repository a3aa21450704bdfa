"""Reads the health of programs on test hosts from their /health."""

from __future__ import annotations

import json

from support.hosts import Host
from support.processes import eventually

HEALTH_PORTS = {"zookeeper": 9106, "broker": 9102, "registry": 9103, "agent": 9101, "audit": 9104}
_ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1]).read().decode())
except urllib.error.HTTPError as answer:
    print(answer.read().decode())
"""


def health(host: Host, program: str) -> dict[str, object]:
    """Returns the JSON document of /health, whatever the answer's status is. Returns an empty
    document if there is no answer."""
    url = f"http://127.0.0.1:{HEALTH_PORTS[program]}/health"
    said = host.run(f"python3 - {url}", given=_ASK, check=False)
    found: dict[str, object] = json.loads(said.stdout) if said.returncode == 0 else {}
    return found


def await_health(host: Host, program: str) -> None:
    """Waits until the program's /health on the host says that the program is healthy."""
    eventually(
        lambda: health(host, program).get("ok"),
        within_s=90, every_s=0.5, what=f"{program} of {host.name} is healthy",
    )  # fmt: skip
