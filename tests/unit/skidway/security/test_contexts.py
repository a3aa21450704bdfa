"""Tests which certificates a server and a client accept, and when their files are read again."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from skidway.errors import ConfigurationRefused
from skidway.security.contexts import Contexts, TlsFiles, client_context, server_context
from skidway.security.tls_socket import TlsSocket
from support.certificates import Authority, Pair


def shake(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "127.0.0.1") -> str:
    """Makes a handshake. Returns what one of the sides says against it; empty if both agree."""
    ends = socket.socketpair()
    for each in ends:
        each.setblocking(False)
    sides = [
        TlsSocket(ends[0], server, server_side=True),
        TlsSocket(ends[1], client, server_hostname=name),
    ]
    try:
        for _ in range(4):
            for side in reversed(sides):
                try:
                    side.advance()
                finally:
                    side.flush()
                try:
                    sides[1 - sides.index(side)].receive_sealed()
                except BlockingIOError:
                    continue
    except ssl.SSLError as error:
        return str(error)
    finally:
        for each in ends:
            each.close()
    return ""


def files(pair: Pair, ca: Authority, crl: Path | None = None) -> TlsFiles:
    return TlsFiles(pair.certificate, pair.key, ca.certificate, crl)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_both_sides_know_each_other(authority: Authority) -> None:
    """A server and a client whose certificates the same authority has signed agree, also by the
    server's name."""
    server = server_context(files(authority.sign("server", "b1.example"), authority), "required")
    client = client_context(files(authority.sign("client"), authority))
    for name in ("127.0.0.1", "localhost", "b1.example"):
        assert shake(server, client, name) == ""
    assert "not valid for 'b2.example'" in shake(server, client, "b2.example")
    unchecked = client_context(files(authority.sign("client"), authority), checks_name=False)
    assert shake(server, unchecked, "b2.example") == ""


def test_a_client_is_refused(authority: Authority, tmp_path: Path) -> None:
    """A server that requires a certificate refuses a client without one, with one of another
    authority, with one that has expired or is revoked, and with one that is a server's alone."""
    revoked = authority.sign("revoked")
    crl = authority.revoke(revoked)
    server = server_context(files(authority.sign("server"), authority, crl), "required")
    ca = authority.certificate
    other = Authority(tmp_path, "other").sign("stranger")
    past = authority.sign("past", ends=-datetime.timedelta(hours=1))
    usage = authority.sign("usage", usage=ExtendedKeyUsageOID.SERVER_AUTH)
    for pair, words in (
        (None, "did not return a certificate"),
        (other, "unable to get local issuer certificate"),
        (past, "certificate has expired"),
        (revoked, "certificate revoked"),
        (usage, "unsuitable certificate purpose"),
    ):
        own = TlsFiles(ca=ca) if pair is None else TlsFiles(pair.certificate, pair.key, ca)
        assert words in shake(server, client_context(own)), words
    assert shake(server, client_context(files(authority.sign("client"), authority))) == ""


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("missing", "ssl.certificate.location: {} and {} cannot be used: No such file"),
        ("text", "ssl.certificate.location: {} and {} cannot be used: the certificate or its key"),
        (
            "no key",
            "ssl.certificate.location: {} and {} cannot be used: the certificate or its key",
        ),
        ("other key", "ssl.certificate.location: {} and {} cannot be used: the key is not that of"),
        ("weak", "ssl.certificate.location: {} and {} cannot be used: EE_KEY_TOO_SMALL"),
    ],
)
def test_files_that_cannot_be_used_are_named(authority: Authority, broken: str, words: str) -> None:
    """If a certificate and its key cannot be used, the error names the setting and the files."""
    pair, other = authority.sign("server"), authority.sign("other")
    if broken == "missing":
        pair.key.unlink()
    elif broken == "text":
        pair.certificate.write_text("certificate")
    elif broken == "no key":
        pair.key.write_bytes(pair.certificate.read_bytes())
    elif broken == "other key":
        os.replace(other.key, pair.key)
    else:
        pair = authority.sign("server", key=rsa.generate_private_key(65537, 1024))
    with pytest.raises(ConfigurationRefused) as caught:
        server_context(files(pair, authority))
    assert str(caught.value).startswith(words.format(pair.certificate, pair.key))


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("no list", "{} has no revocation list in PEM."),
        ("text", "{} cannot be used: "),
        ("other", "{} has no list of the authority CN=authority of ssl.ca.location"),
        ("two authorities", "{} has no list of the authority CN=other of ssl.ca.location"),
        ("expired", "a list in {} has expired on "),
    ],
)
def test_revocation_lists_that_cannot_be_used_are_named(
    authority: Authority, tmp_path: Path, broken: str, words: str
) -> None:
    """A server refuses to start with revocation lists with which it would accept nobody: no list,
    none of one of its authorities, one that has expired. If a file is replaced by such a one, a
    server or a client goes on with the last good files, and tells the problem."""
    other, pair = Authority(tmp_path, "other"), authority.sign("server")
    given = files(pair, authority, authority.revoke())
    ca, crl = authority.certificate, authority.revoke()
    both = (
        Contexts(lambda: server_context(given, "required"), given),
        Contexts(lambda: client_context(given), given),
    )
    kept = [each.get() for each in both]
    if broken == "no list":
        crl.write_bytes(ca.read_bytes())
    elif broken == "text":
        crl.write_text("list")
    elif broken == "other":
        crl.write_bytes(other.revoke().read_bytes())
    elif broken == "two authorities":
        ca.write_bytes(ca.read_bytes() + other.certificate.read_bytes())
    else:
        authority.revoke(ends=-datetime.timedelta(hours=1))
    with pytest.raises(ConfigurationRefused) as caught:
        server_context(given, "required")
    said = "ssl.crl.location: " + words.format(crl)
    assert str(caught.value).startswith(said)
    assert [each.get() for each in both] == kept
    assert all(each.problem.startswith(said) for each in both)


def test_lists_of_more_authorities_are_good(authority: Authority, tmp_path: Path) -> None:
    """The list of an authority may come before the authority, and go after it. An expired list does
    not keep a client from starting, because a new one may come."""
    other, pair = Authority(tmp_path, "other"), authority.sign("server")
    crl = authority.revoke()
    crl.write_bytes(other.revoke().read_bytes() + crl.read_bytes())
    given = files(pair, authority, crl)
    assert shake(server_context(given, "required"), client_context(given)) == ""
    authority.revoke(ends=-datetime.timedelta(hours=1))
    assert "CRL has expired" in shake(server_context(files(pair, authority)), client_context(given))


def test_an_authority_that_signs_authorities_needs_no_list(
    authority: Authority, tmp_path: Path
) -> None:
    """A root whose intermediate authority is in the file, too, needs no revocation list: OpenSSL
    asks only for the list of who has signed the other side's certificate."""
    between = Authority(tmp_path, "between", above=authority)
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(authority.certificate.read_bytes() + between.certificate.read_bytes())
    pair = between.sign("server")
    given = TlsFiles(pair.certificate, pair.key, bundle, between.revoke())
    assert shake(server_context(given, "required"), client_context(given)) == ""


def test_a_replaced_file_is_read_again(authority: Authority) -> None:
    """A new certificate or revocation list counts for the next connection. While a file cannot be
    used, the last good ones stay, and the problem is told."""
    pair, client = authority.sign("server"), authority.sign("client")
    given = files(pair, authority, authority.revoke())
    contexts = Contexts(lambda: server_context(given, "required"), given)
    first = contexts.get()
    assert contexts.get() is first
    own = client_context(files(client, authority))
    assert shake(contexts.get(), own) == ""
    authority.revoke(client)
    assert "certificate revoked" in shake(contexts.get(), own)
    authority.revoke()
    pair.certificate.write_text("half a certifi")
    kept = contexts.get()
    assert "ssl.certificate.location" in contexts.problem
    assert "certificate revoked" in shake(kept, own)
    authority.sign("server")
    assert shake(contexts.get(), own) == ""
    assert contexts.problem == ""
