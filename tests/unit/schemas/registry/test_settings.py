"""If a setting is invalid, the registry refuses to start, with an error that names the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skidway.errors import ConfigurationRefused
from skidway.http.listeners import Listener
from skidway.schemas.registry.passwords import Hash
from skidway.schemas.registry.settings import RegistrySettings
from support.certificates import Authority


def test_listeners_are_addresses_with_and_without_tls() -> None:
    """The setting `listeners` may have http and https addresses at the same time."""
    settings = RegistrySettings(listeners=["http://127.0.0.1:1", "https://[::1]:2/"])
    assert settings.addresses == [Listener("127.0.0.1", 1, False), Listener("::1", 2, True)]


@pytest.mark.parametrize(
    "listener",
    ["", "127.0.0.1:1", "ftp://h:1", "http://h", "http://h:x", "http://h:1/p", "http://h:1?q"],
)
def test_what_is_no_listener(listener: str) -> None:
    """If an address in the setting `listeners` is invalid, the registry does not start, and the
    error names the setting."""
    with pytest.raises(ConfigurationRefused, match="listeners"):
        RegistrySettings(listeners=[listener]).check()


def test_good_files_are_taken(tmp_path: Path) -> None:
    """Valid files for the certificate, its key, the certificate authorities and the users are
    accepted."""
    authority = Authority(tmp_path)
    pair = authority.sign("registry")
    users = tmp_path / "users"
    users.write_text(f"ada:{Hash.of('x')}\n")
    RegistrySettings(
        listeners=["https://127.0.0.1:1"],
        certificate=pair.certificate,
        key=pair.key,
        ca=authority.certificate,
        client_certificates="REQUIRED",
        authentication="BASIC",
        users_file=users,
    ).check()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "ssl.certificate.location is missing"),
        ({"certificate": "missing"}, "ssl.certificate.location: .*missing"),
        ({"certificate": "other"}, "other.pem and .* cannot be used"),
        ({"certificate": "registry", "client_certificates": "REQUIRED"}, "ssl.ca.location is miss"),
        ({"certificate": "registry", "ca": "missing"}, "ssl.ca.location: .*missing"),
        ({"certificate": "registry", "authentication": "BASIC"}, "users.file is missing"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    """The registry refuses to start if the file of a certificate or of users is missing, or if the
    certificate does not belong to the key. The error names the setting's key."""
    authority = Authority(tmp_path)
    key = authority.sign("registry").key
    authority.sign("other")
    for name in ("certificate", "ca"):
        if name in given:
            given = {**given, name: tmp_path / f"{given[name]}.pem"}
    settings = RegistrySettings(listeners=["https://127.0.0.1:1"], key=key, **given)
    with pytest.raises(ConfigurationRefused, match=words):
        settings.check()


def test_an_encrypted_key_is_refused_and_not_asked_for(tmp_path: Path) -> None:
    """If the file with the certificate's key is encrypted, the registry refuses it. The registry
    does not ask for the passphrase, because a service has no terminal."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    pair = Authority(tmp_path).sign("registry")
    pair.key.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
    )
    settings = RegistrySettings(
        listeners=["https://127.0.0.1:1"], certificate=pair.certificate, key=pair.key
    )
    with pytest.raises(ConfigurationRefused, match="the key is encrypted"):
        settings.check()


@pytest.mark.parametrize("listener", ["http://0.0.0.0:1", "http://[::]:1", "http://registry:1"])
def test_passwords_go_over_no_network_unencrypted(tmp_path: Path, listener: str) -> None:
    """With passwords, the registry refuses an http listener that other hosts may reach, also beside
    an https listener, in one sentence that says what to do. http on loopback is accepted."""
    users, pair = tmp_path / "users", Authority(tmp_path).sign("registry")
    users.write_text(f"ada:{Hash.of('x')}\n")

    def settings(plain: str) -> RegistrySettings:
        return RegistrySettings(
            listeners=["https://0.0.0.0:2", plain], authentication="BASIC", users_file=users,
            certificate=pair.certificate, key=pair.key,
        )  # fmt: skip

    with pytest.raises(ConfigurationRefused, match="unencrypted; use https"):
        settings(listener).check()
    for local in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"):
        settings(local).check()
