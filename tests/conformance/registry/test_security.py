"""Stock clients and our client work with a registry that uses TLS and passwords."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from skidway.schemas.client import (
    RegistryClient,
    RegistryRefused,
    RegistryUnreachable,
    Security,
    no_pause,
)
from skidway.security.contexts import TlsFiles, client_context
from support import telemetry
from support.certificates import Authority
from support.processes import eventually, free_port, run_skidway, running
from support.registry import Registry
from support.tls_records import Flood

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SCHEMA = json.dumps(
    {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
)
VALUE = SerializationContext("users", MessageField.VALUE)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def secured(zookeeper: str, tmp_path: Path, authority: Authority) -> Iterator[Registry]:
    """A registry that uses https, accepts client certificates but does not require them, and has a
    user `ada`."""
    pair = authority.sign("registry")
    users = tmp_path / "users"
    done = run_skidway("registry", "hash-password", "ada", input_text="ge:heim\n")
    assert done.returncode == 0, done.stderr
    users.write_text(done.stdout)
    made = Registry(
        zookeeper,
        tmp_path,
        f"ssl.certificate.location={pair.certificate}",
        f"ssl.key.location={pair.key}",
        "authentication.method=BASIC",
        f"authentication.users.file={users}",
        scheme="https",
    )
    with running(made.program, made.ready):
        yield made


def confluent(registry: Registry, authority: Authority, user: str) -> SchemaRegistryClient:
    return SchemaRegistryClient(
        {
            "url": registry.url,
            "ssl.ca.location": str(authority.certificate),
            "basic.auth.user.info": user,
        }
    )


def test_confluents_client_with_tls_and_a_password(secured: Registry, authority: Authority) -> None:
    """Confluent's serializer and deserializer work with TLS and a password. If the password is
    wrong, the registry answers 401."""
    with confluent(secured, authority, "ada:ge:heim") as client:
        data = AvroSerializer(client, SCHEMA)({"name": "Ada"}, VALUE)
        assert AvroDeserializer(client)(data, VALUE) == {"name": "Ada"}
        assert client.get_subjects() == ["users-value"]
    with confluent(secured, authority, "ada:wrong") as client:
        with pytest.raises(SchemaRegistryError) as caught:
            client.register_schema("s", Schema(SCHEMA, "AVRO"))
        assert (caught.value.http_status_code, caught.value.error_code) == (401, 401)


def test_our_client_with_tls_and_a_password(
    secured: Registry, authority: Authority, tmp_path: Path
) -> None:
    """Our client works with TLS and a password, also if the password's file was replaced, and the
    registry logs no password."""
    user_info = tmp_path / "user.info"
    user_info.write_text("ada:wrong\n")
    ours = RegistryClient(
        secured.url, security=Security(user_info, authority.certificate), pause=no_pause
    )
    with pytest.raises(RegistryRefused):
        ours.register("s", SCHEMA)
    user_info.unlink()
    with pytest.raises(RegistryUnreachable, match=r"info.location: .*user.info cannot be read"):
        ours.register("s", SCHEMA)
    user_info.write_text("ada:ge:heim\n")
    assert ours.register("s", SCHEMA) == 1
    nobody = RegistryClient(secured.url, security=Security(ca=authority.certificate))
    with pytest.raises(RegistryRefused) as caught:
        nobody.subjects()
    assert caught.value.status == 401
    assert "heim" not in secured.program.output()


def test_who_trusts_another_authority_does_not_connect(secured: Registry, tmp_path: Path) -> None:
    """A client that trusts a different certificate authority refuses the registry's certificate. An
    http request to the https port fails."""
    other = Authority(tmp_path, "other")
    context = ssl.create_default_context(cafile=str(other.certificate))
    connection = http.client.HTTPSConnection("127.0.0.1", secured.port, timeout=60, context=context)
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.request("GET", "/subjects")
    plain = http.client.HTTPConnection("127.0.0.1", secured.port, timeout=60)
    plain.request("GET", "/subjects")
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.getresponse()
    plain.close()
    security = Security(ca=other.certificate)
    ours = RegistryClient(secured.url, security=security, pause=no_pause)
    words = "it is not signed by a trusted authority (schema.registry.ssl.ca.location: "
    with pytest.raises(RegistryUnreachable, match=re.escape(f"{words}{other.certificate}")):
        ours.subjects()


def test_health_asks_for_no_password(secured: Registry) -> None:
    """/health needs no password, because it is served on a separate port for the machine's
    administrators."""
    assert telemetry.is_healthy(secured.metrics_port)


def test_a_renewed_certificate_is_shown_without_a_restart(
    secured: Registry, tmp_path: Path
) -> None:
    """If the certificate file is renewed, the registry uses the new certificate for new connections
    without a restart. If the new certificate does not match the private key, the registry continues
    to use the old certificate."""
    shown = _certificate(secured)
    good = (tmp_path / "registry.pem").read_bytes()
    _replace(tmp_path / "registry.pem", Authority(tmp_path, "third").certificate.read_bytes())
    eventually(
        lambda: "certificates_refused" in secured.program.output(),
        what="a certificate without its key is refused",
    )
    assert _certificate(secured) == shown
    _replace(tmp_path / "registry.pem", good)
    renewed = Authority(tmp_path, "renewed").sign("next")
    _replace(tmp_path / "registry.key", renewed.key.read_bytes())
    _replace(tmp_path / "registry.pem", renewed.certificate.read_bytes())
    eventually(lambda: _certificate(secured) != shown, what="the new certificate is shown")
    assert _certificate(secured) == renewed.certificate.read_text()


def mutual(
    zookeeper: str, folder: Path, port: int, authority: Authority, trusted: Path
) -> Registry:
    """A registry that asks for certificates, and has a list of the revoked ones."""
    pair = authority.sign("registry")
    return Registry(
        zookeeper, folder, f"listeners=https://127.0.0.1:{port}",
        f"ssl.certificate.location={pair.certificate}", f"ssl.key.location={pair.key}",
        f"ssl.ca.location={trusted}", f"ssl.crl.location={authority.revoke()}",
        "ssl.client.authentication=REQUIRED", scheme="https",
    )  # fmt: skip


def test_a_revoked_certificate_is_refused_without_a_restart(
    zookeeper: str, tmp_path: Path, authority: Authority
) -> None:
    """If a client's certificate is revoked, or its authority is taken back, the registry refuses
    the client's next connection, without a restart. The client may also be given new files while it
    runs."""
    known = authority.sign("client")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority.certificate.read_bytes())
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    made = mutual(zookeeper, tmp_path, port, authority, trusted)
    security = Security(None, authority.certificate, known.certificate, known.key)

    def is_let_in() -> bool:
        try:
            RegistryClient(url, security=security, pause=no_pause).subjects()
        except RegistryUnreachable:
            return False
        return True

    with running(made.program, made.ready):
        assert is_let_in()
        authority.revoke(known)
        assert not is_let_in()
        crl = authority.revoke()
        assert is_let_in()
        fourth = Authority(tmp_path, "fourth")
        crl.write_bytes(crl.read_bytes() + fourth.revoke().read_bytes())
        trusted.write_bytes(fourth.certificate.read_bytes())
        resident = RegistryClient(url, security=security, pause=no_pause)
        with pytest.raises(RegistryUnreachable):
            resident.subjects()
        renewed = fourth.sign("renewed")
        _replace(known.key, renewed.key.read_bytes())
        _replace(known.certificate, renewed.certificate.read_bytes())
        assert resident.subjects() == []


def test_a_session_ends_with_the_files_of_its_beginning(
    zookeeper: str, tmp_path: Path, authority: Authority
) -> None:
    """A client whose certificate was revoked cannot resume a session that it began before."""
    known = authority.sign("client")
    port = free_port()
    made = mutual(zookeeper, tmp_path, port, authority, authority.certificate)
    context = client_context(TlsFiles(known.certificate, known.key, authority.certificate))
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def session(before: ssl.SSLSession | None = None) -> tuple[ssl.SSLSession | None, bool]:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as sock,
            context.wrap_socket(sock, server_hostname="localhost", session=before) as tls,
        ):
            return tls.session, bool(tls.session_reused)

    with running(made.program, made.ready):
        first, _ = session()
        assert session(first)[1]
        authority.revoke(known)
        with pytest.raises(ssl.SSLError):
            session(first)


def test_records_without_data_keep_nobody_out(
    secured: Registry, authority: Authority, tmp_path: Path
) -> None:
    """Clients that send nothing but updates of their keys are closed again and again; meanwhile
    others are answered."""
    trusting = client_context(TlsFiles(ca=authority.certificate))
    with (
        Flood(secured.port, trusting, tmp_path / "keys") as flood,
        confluent(secured, authority, "ada:ge:heim") as client,
    ):
        for _ in range(20):
            assert client.get_subjects() == []
        assert flood.is_closed.wait(60)


def test_certificates_of_clients_and_a_listener_without_tls(
    zookeeper: str, tmp_path: Path, authority: Authority
) -> None:
    """One registry can serve http on its own machine and https with client certificates for other
    machines. A client without a certificate is refused: it names its setting, and the registry's
    log says why, once, and counts each."""
    pair, known = authority.sign("registry"), authority.sign("client")
    tls, plain = f"https://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
    made = Registry(
        zookeeper,
        tmp_path,
        f"listeners={tls},{plain}",
        f"ssl.certificate.location={pair.certificate}",
        f"ssl.key.location={pair.key}",
        f"ssl.ca.location={authority.certificate}",
        "ssl.client.authentication=REQUIRED",
    )
    with running(made.program, made.ready):
        shows = {"certificate": known.certificate, "key": known.key}
        ours = RegistryClient(tls, security=Security(ca=authority.certificate, **shows))
        assert ours.register("s", SCHEMA) == 1
        assert RegistryClient(plain).subjects() == ["s"]
        hasty = RegistryClient(
            tls, security=Security(ca=authority.certificate), pause=lambda _seconds: None
        )
        setting = r"requires a certificate \(schema.registry.ssl.certificate.location: not set\)"
        with pytest.raises(RegistryUnreachable, match=setting):
            hasty.subjects()
        counted = 'skidway_http_connections_closed_total{reason="handshake"}'
        assert telemetry.metrics(made.metrics_port)[counted] == 4
        assert made.program.output().count("TLS: the client has shown no certificate") == 1
        assert made.program.stop() == 0


def _certificate(registry: Registry) -> str:
    return ssl.get_server_certificate(("127.0.0.1", registry.port))


def _replace(path: Path, content: bytes) -> None:
    made = path.with_suffix(".new")
    made.write_bytes(content)
    os.replace(made, path)
