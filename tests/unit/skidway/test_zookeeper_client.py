"""Who a client of ZooKeeper is, and what kazoo lacks."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

import pytest
from kazoo.exceptions import AuthFailedError, NoAuthError, SessionClosedRequireSaslError

from skidway.coordination import ZooKeeperSecurity
from skidway.coordination.client import Access, make
from skidway.coordination.security import acl_of
from skidway.errors import ConfigurationRefused
from skidway.security.contexts import TlsFiles, client_context, server_context
from support.certificates import Authority


def users(folder: Path, text: str, mode: int = 0o640) -> ZooKeeperSecurity:
    path = folder / "users"
    path.write_text(text)
    path.chmod(mode)
    return ZooKeeperSecurity(auth=path)


def test_each_line_is_a_user(tmp_path: Path) -> None:
    """Each line of zookeeper.auth.location is a user with a password, which may have colons. A
    client has all of them, and gives its nodes to all of them."""
    security = users(tmp_path, "brokers:new:1\n\n brokers:old \r\n")
    assert security.users() == (("brokers", "new:1"), ("brokers", "old"))
    client = make("127.0.0.1:1", 1.0, Access("127.0.0.1:1", security))
    assert client.auth_data == {("digest", "brokers:new:1"), ("digest", "brokers:old")}
    assert client.default_acl == acl_of(security.users())
    assert make("127.0.0.1:1", 1.0, Access("", ZooKeeperSecurity())).default_acl is None


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o600, "is empty"),
        ("brokers:x", 0o644, "is open to every user of this host; chmod 0640"),
        ("brokers", 0o600, "is not user:password"),
        (":x", 0o600, "is not user:password"),
        ("brokers:", 0o600, "is not user:password"),
        ("brokers:gehéim", 0o600, "is not user:password"),
        ("a:b\na b:c", 0o600, "is not user:password"),
    ],
)
def test_a_bad_file_of_users_is_refused(tmp_path: Path, text: str, mode: int, said: str) -> None:
    """A file of users that cannot be used, or that everybody can read, is refused with one sentence
    that names setting and file, and never the password."""
    with pytest.raises(ConfigurationRefused) as refused:
        users(tmp_path, text, mode).check()
    pattern = rf"zookeeper\.auth\.location: .*{re.escape(str(tmp_path))}/users .*{re.escape(said)}"
    assert re.match(pattern, str(refused.value)), refused.value
    assert "gehéim" not in str(refused.value)


def test_files_of_tls_are_checked_at_the_start(tmp_path: Path) -> None:
    """A missing authority or key is named before a connection is tried."""
    with pytest.raises(ConfigurationRefused, match=r"ssl\.ca\.location: .*/gone"):
        ZooKeeperSecurity(True, tmp_path / "gone").check()
    ZooKeeperSecurity(False, tmp_path / "gone").check()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NoAuthError(), "the node belongs to other users than those of zookeeper.auth.location: "),
        (AuthFailedError(), "it takes no users with passwords (zookeeper.auth.location: "),
        (SessionClosedRequireSaslError(), "it lets in only clients with a user (enforce.auth)"),
    ],
)
def test_a_refused_request_names_setting_and_file(
    tmp_path: Path, error: Exception, said: str
) -> None:
    """Whatever ZooKeeper refuses, kazoo's call raises one sentence with address and setting."""
    access = Access("zk1:2281", users(tmp_path, "a:b"))
    client = make("zk1:2281", 1.0, access)
    result = client.handler.async_result()
    result.set_exception(error)
    with pytest.raises(Exception, match=re.escape(said)) as refused:
        result.get()
    assert str(refused.value).startswith("ZooKeeper at zk1:2281 (zookeeper.connect): ")
    assert access.problem or access.refusal
    good = client.handler.async_result()
    good.set(b"")
    good.get()
    assert not access.problem
    assert not access.refusal


def test_a_refusal_in_a_transaction_is_an_error() -> None:
    """A transaction that ZooKeeper refuses because of a node's ACL is no conflict that one tries
    again."""
    client = make("zk1:2281", 1.0, Access("zk1:2281", ZooKeeperSecurity()))
    result = client.handler.async_result()
    result.set([KeyError(), NoAuthError()])
    with pytest.raises(Exception, match="belongs to other users"):
        result.get()


def test_an_answer_that_is_decrypted_already_is_not_waited_for(tmp_path: Path) -> None:
    """If two answers come in one record of TLS, kazoo gets the second without waiting for a
    third."""
    authority = Authority(tmp_path)
    pair = authority.sign("zookeeper")
    server = server_context(TlsFiles(pair.certificate, pair.key))
    ends = socket.socketpair()
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(coming, going, server_side=True)
    ours = client_context(TlsFiles(ca=authority.certificate)).wrap_socket(
        ends[0], server_hostname="localhost", do_handshake_on_connect=False
    )
    ours.setblocking(False)
    for step in (ours, theirs) * 3:
        try:
            step.do_handshake()
        except ssl.SSLWantReadError:
            pass
        if step is ours:
            ends[1].setblocking(False)
            try:
                coming.write(ends[1].recv(65536))
            except BlockingIOError:
                pass
        ends[1].sendall(going.read())
    handler = make("zk1:2281", 1.0, Access("zk1:2281", ZooKeeperSecurity())).handler
    theirs.write(b"onetwo")
    ends[1].sendall(going.read())
    assert handler.select([ours], [], [], 60)[0] == [ours]
    assert ours.recv(3) == b"one"
    assert handler.select([ours, ends[1]], [], [], 60)[0] == [ours]
    assert ours.recv(3) == b"two"
    assert handler.select([ours], [], [], 0)[0] == []
    ours.close()
    ends[1].close()
