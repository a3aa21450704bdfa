"""A real ZooKeeper with TLS and users lets in whom it should. Whoever is kept out learns why."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.security import OPEN_ACL_UNSAFE

from skidway.coordination import (
    OPEN,
    AccessRefused,
    Coordinator,
    SessionState,
    Versioned,
    ZooKeeperSecurity,
)
from skidway.coordination.acls import give
from skidway.coordination.security import acl_of
from skidway.errors import Unreachable
from support import telemetry
from support.certificates import Authority
from support.processes import eventually, run_skidway
from support.secured_zookeeper import SecuredZooKeeper, allowed, words

pytestmark = pytest.mark.java

NO_USERS = "-Dzookeeper.DigestAuthenticationProvider.enabled=false"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """A ZooKeeper that takes clients without a certificate or a user."""
    with SecuredZooKeeper(tmp_path_factory.mktemp("zookeeper")).running() as made:
        yield made


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """A ZooKeeper whose clients must show a certificate, and name a user."""
    made = SecuredZooKeeper(
        tmp_path_factory.mktemp("strict"), "ssl.client.auth=required", "enforce.auth.enabled=true"
    )
    with made.running():
        yield made


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("authority", "it is not signed by a trusted authority (zookeeper.ssl.ca.location"),
        ("name", "certificate of the other side is not accepted: IP address mismatch"),
        ("TLS there", "or speaks TLS on this port (zookeeper.ssl.client.enable)"),
        ("TLS here", "it may not speak TLS on this port (zookeeper.ssl.client.enable)"),
    ],
)
def test_a_connection_that_fails_says_why(
    server: SecuredZooKeeper, mistake: str, said: str
) -> None:
    """A client that does not trust ZooKeeper's certificate, or speaks TLS where ZooKeeper does not,
    or the reverse, gets one sentence that names the setting and the file."""
    connect, security = server.secured, server.security(None)
    if mistake == "authority":
        security = ZooKeeperSecurity(True, Authority(server.folder, "other").certificate)
    elif mistake == "name":
        connect = f"127.0.0.1:{server.secure_port}"
    elif mistake == "TLS there":
        security = OPEN
    else:
        connect = f"localhost:{server.port}"
    with pytest.raises(Unreachable) as refused:
        Coordinator(connect, security=security, connect_timeout_s=2)
    assert str(refused.value).startswith(f"ZooKeeper at {connect} (zookeeper.connect): ")
    assert said in str(refused.value)
    if mistake in ("authority", "name"):
        assert f"(zookeeper.ssl.ca.location: {security.ca})" in str(refused.value)


def test_a_required_certificate_and_user_are_required(strict: SecuredZooKeeper) -> None:
    """A client without a certificate, or without a user, is told what it lacks. With both it gets
    in, and its nodes belong to its user alone, not to the name in its certificate."""
    own, users = strict.authority.sign("client"), strict.users("me")
    with pytest.raises(Unreachable) as refused:
        Coordinator(strict.secured, security=strict.security(users), connect_timeout_s=2)
    assert str(refused.value).endswith(
        "does not accept this side's certificate (zookeeper.ssl.certificate.location: not set)"
    )
    with (
        Coordinator(strict.secured, security=strict.security(None, own)) as nobody,
        pytest.raises(AccessRefused, match=r"\(enforce.auth\), and zookeeper.auth.location is not"),
    ):
        nobody.create_if_absent("/x")
    with Coordinator(strict.secured, security=strict.security(users, own)) as session:
        session.create_if_absent("/x/y")
        for path in ("/x", "/x/y"):
            assert session.client.get_acls(path)[0] == acl_of((("me", "me-secret"),))


@pytest.mark.parametrize("is_strict", [False, True])
def test_nobody_adds_quotas(
    server: SecuredZooKeeper, strict: SecuredZooKeeper, is_strict: bool
) -> None:
    """A local user, who needs no certificate at the port without TLS and may invent a user, can
    add no quota, by which he could end the server for good."""
    found = strict if is_strict else server
    with Coordinator(found.address, security=ZooKeeperSecurity(auth=found.users("any"))) as thief:
        for path in ("/zookeeper/quota", "/zookeeper"):
            for attempt in (
                lambda at=path: thief.client.create(f"{at}/dc1"),
                lambda at=path: thief.client.set(at, b"stolen"),
                lambda at=path: thief.client.set_acls(at, list(thief.acl)),
            ):
                with pytest.raises(AccessRefused):
                    attempt()


def test_quotas_that_are_there_are_removed(tmp_path: Path) -> None:
    """Quotas that were added while the nodes were open are removed at the next start, and the log
    names them; the servers whose nodes stay open say so."""
    made = SecuredZooKeeper(tmp_path)
    open_one = made.program
    open_one._env = {"JAVA_TOOL_OPTIONS": NO_USERS}
    open_one.start().wait_until(made.ready)
    eventually(lambda: "system_nodes_open" in open_one.output(), what="the log")
    with Coordinator(made.address) as session:
        session.create_if_absent("/zookeeper/quota/dc1/zookeeper_stats", b"no numbers")
    open_one.stop()
    open_one._env = None
    with made.running():
        with Coordinator(made.address) as session:
            assert session.children("/zookeeper/quota") == []
        assert '"quota_removed", "path": "/dc1"' in made.program.output()


def test_every_node_belongs_to_its_users(server: SecuredZooKeeper) -> None:
    """Each way to create a node gives it to the client's users: the chroot, a parent, an ephemeral
    node, and a node of a transaction. A client with another user, or with none, can do nothing with
    them, and the error names node and file."""
    with server.session(server.users("owner"), "/own/tree") as session:
        session.create_if_absent("/a/b", b"1")
        session.create_if_absent("/e", ephemeral=True)
        session.client.ensure_path("/c/d")
        session.transact("/t", lambda do: do.create("/t", b""))
        for users in (None, server.users("stranger")):
            with server.session(users) as stranger:
                for path in ("", "/a", "/a/b", "/e", "/c", "/c/d", "/t"):
                    assert allowed(stranger, f"/own/tree{path}") == []
                assert allowed(stranger, "/own") == []
                with pytest.raises(AccessRefused) as refused:
                    stranger.get("/own/tree/a")
                assert f"zookeeper.auth.location: {users or 'not set'}" in str(refused.value)
                assert str(refused.value).endswith("(/own/tree/a)")
                assert stranger.problem
                assert stranger.get("/zookeeper") is not None
                assert not stranger.problem
        assert session.get("/a/b") == Versioned(b"1", 0)


def test_a_password_is_changed_with_two_lines(server: SecuredZooKeeper) -> None:
    """With two users in its file a client has the nodes of both. Once the nodes are given to both,
    a client with either has them; once they are given to the new one, the old one has lost them."""
    old, new = "me:old", "me:new"
    files = {
        "old": server.users("old", old),
        "both": server.users("both", new, old),
        "new": server.users("new", new),
    }
    with server.session(files["old"], "/rotated") as session:
        session.create_if_absent("/a/b")
    with server.session(files["both"], "/rotated") as session:
        assert give(session, ["/"]).changed == 3
        assert give(session, ["/"]).unchanged == 3
    for name in ("old", "new"):
        with server.session(files[name], "/rotated") as session:
            assert session.get("/a/b") is not None
    with server.session(files["new"], "/rotated") as session:
        assert give(session, ["/"]).changed == 3
    with (
        server.session(files["old"]) as session,
        pytest.raises(AccessRefused, match="belongs to other users"),
    ):
        session.get("/rotated/a/b")


def test_nodes_of_others_are_left_and_named(server: SecuredZooKeeper) -> None:
    """`secure` gives the nodes of a program to its users, and leaves those of others, which it
    names with status 1. `--open` gives them back to everybody. Both can be repeated."""
    mine, other = server.users("registry"), server.users("other")
    with Coordinator(server.address) as everybody:
        everybody.create_if_absent("/skidway/schemas/log/0000000001")
        everybody.create_if_absent("/elsewhere")
    with server.session(other) as session:
        session.create_if_absent("/skidway/foreign/a")
    sets = words({"zookeeper.connect": server.secured, **server.settings(mine)})
    options = [word for each in sets for word in ("--set", each)]

    def secured(*more: str) -> tuple[int, str, str]:
        done = run_skidway("zookeeper", "secure", "registry", *options, *more)
        return done.returncode, done.stdout, done.stderr

    status, said, error = secured()
    assert (status, said[:15]) == (1, "changed 4 nodes")
    assert "belong to others, and were left as they are: /skidway/foreign;" in error
    assert (error.count("\n"), f"zookeeper.auth.location: {mine}" in error) == (1, True)
    with server.session(other) as session:
        give(session, ["/skidway/foreign"], to_everybody=True)
        assert allowed(session, "/skidway/schemas") == []
        assert session.client.get_acls("/elsewhere")[0] == OPEN_ACL_UNSAFE
    assert secured()[:2] == (
        0, "changed 2 nodes; 4 were the users of zookeeper.auth.location's already\n"
    )  # fmt: skip
    assert secured("--open")[0] == 0
    with Coordinator(server.address) as everybody:
        assert everybody.client.get_acls("/skidway/schemas/log")[0] == OPEN_ACL_UNSAFE


def certificate_of(server: SecuredZooKeeper) -> bytes | None:
    context = ssl.create_default_context(cafile=server.authority.certificate)
    with (
        socket.create_connection(("127.0.0.1", server.secure_port)) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        return tls.getpeercert(binary_form=True)


@pytest.mark.slow
def test_a_new_certificate_needs_no_restart(tmp_path: Path) -> None:
    """ZooKeeper shows a replaced certificate to new clients. One that cannot be used is not passed
    on, and /health says why. What ZooKeeper reads is a file that only its user can read."""
    with SecuredZooKeeper(tmp_path).running() as server:
        before = certificate_of(server)
        new = server.authority.sign("new", "localhost")
        shutil.copy(new.key, server.pair.key)
        eventually(lambda: "cannot be used" in health(server).get("certificates", ""))
        assert certificate_of(server) == before
        shutil.copy(new.certificate, server.pair.certificate)
        eventually(lambda: certificate_of(server) != before)
        assert "certificates" not in health(server)
        assert (tmp_path / "data" / "tls.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_client_whose_user_is_refused_tries_again(tmp_path: Path) -> None:
    """If ZooKeeper takes no users after a restart, a session that is open says so, and begins again
    when ZooKeeper takes them."""
    server = SecuredZooKeeper(tmp_path)
    normal = server.program
    with server.running(), server.session(server.users("me")) as session:
        session.create_if_absent("/x")
        normal.stop()
        eventually(lambda: session.state is SessionState.SUSPENDED)
        assert not session.problem
        normal._env = {"JAVA_TOOL_OPTIONS": NO_USERS}
        normal.start().wait_until(server.ready)
        eventually(lambda: "it takes no users with passwords" in session.problem)
        normal.stop()
        normal._env = None
        normal.start().wait_until(server.ready)
        eventually(lambda: session.state is SessionState.CONNECTED)
        assert session.get("/x") is not None
        assert not session.problem


def health(server: SecuredZooKeeper) -> dict[str, str]:
    return telemetry.health(server.metrics_port)[1]
