"""Tests the sentences about connections with TLS that failed."""

from __future__ import annotations

import contextlib
import datetime
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.security.contexts import TlsFiles, client_context, server_context
from skidway.security.tls_reasons import setting_of_client, tls_reason
from support.certificates import Authority

NOT_ACCEPTED = "TLS: the certificate of the other side is not accepted: "


def failure(server: ssl.SSLContext, client: ssl.SSLContext) -> OSError:
    """Makes a handshake in memory. Returns what the client says against it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        try:
            ours.do_handshake()
            ours.read()  # TLS 1.3 tells the alert after the client's handshake
        except ssl.SSLWantReadError:
            with contextlib.suppress(ssl.SSLError):
                theirs.do_handshake()
        except ssl.SSLError as error:
            return error
    raise AssertionError("both sides agree")


@pytest.mark.parametrize(
    ("case", "reason", "setting"),
    [
        ("stranger", NOT_ACCEPTED + "it is not signed by a trusted authority", "ca"),
        ("self-signed", NOT_ACCEPTED + "it is not signed by a trusted authority", "ca"),
        ("name", NOT_ACCEPTED + "Hostname mismatch", "ca"),
        ("own list", NOT_ACCEPTED + "the list of revoked certificates of its authority has", "crl"),
        ("their list", "TLS: the other side says that this side's certificate, or its own list of"
         " revoked certificates, has expired", "certificate"),
        ("revoked", "TLS: the other side says that this side's certificate is revoked",
         "certificate"),
    ],
)  # fmt: skip
def test_a_client_says_what_is_wrong(tmp_path: Path, case: str, reason: str, setting: str) -> None:
    """A client whose handshake fails says why in one sentence, and names its setting and file that
    may be wrong: the authorities, its own certificate, or its own revocation lists."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    pair = authority.sign("server", "b1.example", is_local=case != "name")
    if case == "self-signed":
        ca = authority.certificate
        pair.certificate.write_bytes(pair.certificate.read_bytes() + ca.read_bytes())
    client = authority.sign("client")
    crl = authority.revoke(*([client] if case == "revoked" else []))
    trusted = other if case in ("stranger", "self-signed") else authority
    own = TlsFiles(
        client.certificate, client.key, trusted.certificate, crl if case == "own list" else None
    )
    theirs = TlsFiles(pair.certificate, pair.key, authority.certificate, crl)
    server = server_context(theirs, "required")
    if case in ("own list", "their list"):
        authority.revoke(ends=-datetime.timedelta(hours=1))
    if case == "their list":  # it has expired while it was in use
        server = server_context(replace(theirs, crl=None), "required")
        server.load_verify_locations(crl)
        server.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    error = failure(server, client_context(own))
    assert tls_reason(error).startswith(reason)
    file = {"ca": own.ca, "crl": own.crl, "certificate": own.certificate}[setting]
    assert setting_of_client(error, own.ca, own.certificate, own.crl) == (
        f"ssl.{setting}.location: {file}"
    )
