"""A real ZooKeeper with TLS, and users for its clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.exceptions import NoAuthError, NotEmptyError
from kazoo.security import make_digest_acl

from skidway.coordination import OPEN, AccessRefused, Coordinator, ZooKeeperSecurity
from support.certificates import Authority, Pair
from support.processes import free_port, running
from support.zookeeper import ZooKeeper

ZOOKEEPERS_OWN = "/zookeeper"


class SecuredZooKeeper(ZooKeeper):
    """address: that of the port without TLS. secured: that of the port with TLS, whose certificate
    is for localhost."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.pair = self.authority.sign("zookeeper", "localhost", is_local=False)
        self.secure_port = free_port()
        self.secured = f"localhost:{self.secure_port}"
        super().__init__(
            folder,
            f"secureClientPort={self.secure_port}",
            f"ssl.certificate.location={self.pair.certificate}",
            f"ssl.key.location={self.pair.key}",
            f"ssl.ca.location={self.authority.certificate}",
            *settings,
        )

    @contextmanager
    def running(self) -> Iterator[SecuredZooKeeper]:
        with running(self.program, self.ready):
            yield self

    def users(self, name: str, *users: str) -> Path:
        """Writes the file with a client's users, each user:password, and returns it."""
        path = self.folder / f"{name}.users"
        path.write_text("".join(f"{each}\n" for each in users or (f"{name}:{name}-secret",)))
        path.chmod(0o600)
        return path

    def security(self, users: Path | None, own: Pair | None = None) -> ZooKeeperSecurity:
        """Returns the security of a client with these users, and perhaps a certificate."""
        pair = (None, None) if own is None else (own.certificate, own.key)
        return ZooKeeperSecurity(True, self.authority.certificate, *pair, users)

    def settings(self, users: Path) -> dict[str, str]:
        """Returns the settings of a program with these users."""
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.ca.location": str(self.authority.certificate),
            "zookeeper.auth.location": str(users),
        }

    def session(self, users: Path | None, chroot: str = "") -> Coordinator:
        """Returns a session of a client with these users."""
        return Coordinator(f"{self.secured}{chroot}", security=self.security(users))


def words(settings: dict[str, str]) -> list[str]:
    """Returns settings as KEY=VALUE."""
    return [f"{key}={value}" for key, value in settings.items()]


def tree(session: Coordinator, path: str = "/") -> list[str]:
    """Returns the paths of a node and of all below it, but for ZooKeeper's own."""
    if path == ZOOKEEPERS_OWN:
        return []
    below = (f"{path.rstrip('/')}/{name}" for name in session.children(path))
    return [path, *(each for child in below for each in tree(session, child))]


def allowed(session: Coordinator, path: str) -> list[str]:
    """Returns what a client may do with a node: nothing, if it belongs to others. Changes nothing
    that belongs to others, if ZooKeeper does what it must."""
    client = session.client

    def is_refused_in_a_transaction() -> bool:
        transaction = client.transaction()
        transaction.set_data(path, b"stolen")
        return any(isinstance(each, NoAuthError) for each in transaction.commit())

    attempts = {
        "get": lambda: client.get(path),
        "list": lambda: client.get_children(path),
        "read its ACL": lambda: client.get_acls(path),
        "set": lambda: client.set(path, b"stolen"),
        "set in a transaction": is_refused_in_a_transaction,
        "take": lambda: client.set_acls(path, [make_digest_acl("thief", "thief", all=True)]),
        "add": lambda: client.create(f"{path}/added"),
        "delete": lambda: client.delete(path),
    }
    done = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (AccessRefused, NotEmptyError):  # below the root, only what is empty can be deleted
            continue
        done.append(name)
    return done


__all__ = ["OPEN", "SecuredZooKeeper", "allowed", "tree", "words"]
