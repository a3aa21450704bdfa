"""The keys with which the demo's programs sign their messages to the audit."""

from __future__ import annotations

from skidway.audit.signing.identity import Identity, Role
from skidway.audit.signing.keys import master_keys_in, new_master_key, text_of
from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.files import make_directory, write_atomically
from skidway.host_name import host_name


def make(site: Site) -> None:
    """Makes a master key if the site has none, and the file with the key of each program that sends
    messages."""
    make_directory(site.masters.parent)
    if not site.masters.exists():
        write_atomically(site.masters, text_of([new_master_key()]).encode(), mode=0o600)
    masters = master_keys_in(site.masters.read_text())
    for program, identity in _identities(site).items():
        text = text_of(each.sender_key(identity) for each in masters)
        write_atomically(site.key(program), text.encode(), mode=0o600)


def _identities(site: Site) -> dict[str, Identity]:
    return {
        "agent": Identity(Role.AGENT, (DATACENTER, host_name(None))),
        "count-dc1": Identity(Role.COUNTER, ("broker", DATACENTER)),
        "count-offline": Identity(Role.COUNTER, ("mirror", OFFLINE)),
        "loader": Identity(Role.LOADER, (OFFLINE, site.output.rstrip("/"))),
    }
