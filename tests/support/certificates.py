"""A certificate authority for tests. It writes the certificates and keys as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PEM = serialization.Encoding.PEM
_SIGNS = x509.KeyUsage(
    False, False, False, False, False, key_cert_sign=True, crl_sign=True, encipher_only=False,
    decipher_only=False,
)  # fmt: skip
DAY, HOUR = datetime.timedelta(days=1), datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """The paths of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority. The certificates that it signs are valid for one day, for 127.0.0.1,
    localhost and the hosts given to `sign`."""

    def __init__(
        self, folder: Path, name: str = "authority", *, above: Authority | None = None
    ) -> None:
        """above: the authority that signs this one's certificate, if it is not a root."""
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        signer = above or self
        made = _builder(self._name, signer._name, self._key)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(_SIGNS, critical=True)
        made = made.add_extension(_identifier(self._key), critical=False)
        self.certificate = folder / f"{name}.pem"
        _write(self.certificate, made.sign(signer._key, hashes.SHA256()))

    def sign(
        self,
        name: str,
        *hosts: str,
        unit: str = "",
        ends: datetime.timedelta = DAY,
        usage: x509.ObjectIdentifier | None = None,
        key: Key | None = None,
        is_local: bool = True,
    ) -> Pair:
        """Returns a new certificate with the given name (CN), which is also valid for the given
        hosts.

        unit: the name's organizational unit (OU). ends: from now, negative for a certificate that
        has expired. usage: for what alone it may be used. key: its key, if not one of ECDSA.
        is_local: whether it is valid for 127.0.0.1 and localhost.
        """
        key = key or ec.generate_private_key(ec.SECP256R1())
        units = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
        subject = x509.Name([*units, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        known: list[x509.GeneralName] = [x509.DNSName(each) for each in hosts]
        if is_local:
            known += [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        made = _builder(subject, self._name, key, ends)
        made = made.add_extension(x509.SubjectAlternativeName(known), critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(signer, critical=False)
        if usage is not None:
            made = made.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        _write(pair.certificate, made.sign(self._key, hashes.SHA256()))
        pair.key.write_bytes(
            key.private_bytes(
                PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def client(self, address: str, pair: Pair) -> dict[str, str]:
        """Returns the settings of a client of ours that shows this certificate."""
        return {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.certificate),
            "ssl.certificate.location": str(pair.certificate),
            "ssl.key.location": str(pair.key),
        }

    def revoke(self, *pairs: Pair, ends: datetime.timedelta = DAY) -> Path:
        """Returns a new list of revoked certificates, in place of the one before. ends: from now,
        negative for a list that has expired."""
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        made = made.last_update(now + min(ends, 0 * HOUR) - HOUR).next_update(now + ends)
        for each in pairs:
            serial = x509.load_pem_x509_certificate(each.certificate.read_bytes()).serial_number
            revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
            made = made.add_revoked_certificate(revoked.build())
        path = self.certificate.with_suffix(".crl")
        path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(PEM))
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, ends: datetime.timedelta = DAY
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + min(ends, datetime.timedelta(0)) - HOUR)
        .not_valid_after(now + ends)
    )


def _identifier(key: Key) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(PEM))
