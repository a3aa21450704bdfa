"""Tests what is read of certificates and revocation lists, beside the package `cryptography`."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509 as oracle
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from skidway.security import x509
from skidway.security.x509 import Malformed
from support.certificates import Authority

KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
A = oracle.NameAttribute


def certificate(
    name: oracle.Name, serial: int = 1, ends: datetime.datetime = NOW
) -> oracle.Certificate:
    made = oracle.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(KEY.public_key()).serial_number(serial)
    made = made.not_valid_before(NOW - datetime.timedelta(1)).not_valid_after(ends)
    return made.sign(KEY, hashes.SHA256())


@pytest.mark.parametrize(
    ("parts", "subject"),
    [
        ([A(NameOID.COUNTRY_NAME, "DE"), A(NameOID.COMMON_NAME, "web1")], "CN=web1,C=DE"),
        ([A(NameOID.COMMON_NAME, 'a=b, c+d "x" <y> #z;\\')],
         r"CN=a\=b\, c\+d \"x\" \<y\> \#z\;\\"),
        ([A(NameOID.COMMON_NAME, "  lead and trail  ")], r"CN=\ \ lead and trail\ \ "),
        ([A(NameOID.COMMON_NAME, "#lead"), A(NameOID.EMAIL_ADDRESS, "a@b.c"),
          A(NameOID.DOMAIN_COMPONENT, "com"), A(NameOID.USER_ID, "u"),
          A(NameOID.SERIAL_NUMBER, "7")],
         r"2.5.4.5=#130137,UID=u,DC=com,1.2.840.113549.1.9.1=#16056140622e63,CN=\#lead"),
        ([A(NameOID.COMMON_NAME, "größe€"), A(NameOID.ORGANIZATION_NAME, "x/y")],
         "O=x/y,CN=größe€"),
        ([], ""),
    ],
)  # fmt: skip
def test_names_are_written_as_java_writes_them(
    parts: list[oracle.NameAttribute[str]], subject: str
) -> None:
    """A name in a certificate is written as Java's X500Principal.getName does it (the expected
    texts are Java's), because Kafka's rules work on that text."""
    der = certificate(oracle.Name(parts)).public_bytes(Encoding.DER)
    assert x509.read_certificate(der).subject == subject


def test_a_part_of_several_attributes() -> None:
    """The attributes of one part of a name are joined by a plus."""
    several = oracle.RelativeDistinguishedName(
        [A(NameOID.COMMON_NAME, "b"), A(NameOID.ORGANIZATIONAL_UNIT_NAME, "a")]
    )
    name = oracle.Name([several, oracle.RelativeDistinguishedName([A(NameOID.COMMON_NAME, "x")])])
    assert x509.read_certificate(certificate(name).public_bytes(Encoding.DER)).subject in (
        "CN=x,CN=b+OU=a", "CN=x,OU=a+CN=b",
    )  # fmt: skip


@given(
    serial=st.integers(1, (1 << 159) - 1),
    ends=st.timedeltas(datetime.timedelta(0), datetime.timedelta(days=40_000)).map(NOW.__add__),
    revoked=st.sets(st.integers(1, (1 << 159) - 1), max_size=4),
)
def test_numbers_are_those_of_another_reader(
    serial: int, ends: datetime.datetime, revoked: set[int]
) -> None:
    """Serial number, end, and the numbers in a list are read as `cryptography` has written them."""
    ends = ends.replace(microsecond=0)
    name = oracle.Name([A(NameOID.COMMON_NAME, "a")])
    written = certificate(name, serial, ends)
    found = x509.read_certificate(written.public_bytes(Encoding.DER))
    assert found.serial == (name.public_bytes(), serial)
    assert x509.first_end_s(written.public_bytes(Encoding.PEM)) == ends.timestamp()
    made = oracle.CertificateRevocationListBuilder().issuer_name(name)
    made = made.last_update(NOW).next_update(NOW + datetime.timedelta(1))
    for each in revoked:
        entry = oracle.RevokedCertificateBuilder().serial_number(each).revocation_date(NOW)
        made = made.add_revoked_certificate(entry.build())
    pem = made.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)
    assert x509.revoked(pem) == {(name.public_bytes(), each) for each in revoked}


def test_the_lists_of_several_authorities(tmp_path: Path) -> None:
    """A file may have the lists of several authorities. A number is revoked for its authority
    only."""
    one, other = (Authority(tmp_path, name) for name in ("one", "other"))
    pair = one.sign("pair")
    der = ssl.PEM_cert_to_DER_cert(pair.certificate.read_text())
    serial = x509.read_certificate(der).serial
    both = other.revoke().read_bytes() + b"words between\n" + one.revoke(pair).read_bytes()
    assert x509.revoked(both) == {serial}
    assert x509.revoked(other.revoke(pair).read_bytes()) != {serial}
    assert x509.revoked(b"") == frozenset()


def test_the_ends_of_lists(tmp_path: Path) -> None:
    """Of several lists of an authority, the one that lasts longest says until when it has one."""
    one, other = (Authority(tmp_path, name) for name in ("one", "other"))
    texts = [
        authority.revoke(ends=datetime.timedelta(days=days)).read_bytes()
        for authority, days in ((one, 1), (one, 3), (one, 2), (other, 5))
    ]
    names = [
        x509.read_certificate(ssl.PEM_cert_to_DER_cert(each.certificate.read_text())).name
        for each in (one, other)
    ]
    lists = [oracle.load_pem_x509_crl(each) for each in texts]
    ends = [each.next_update_utc for each in lists]
    expected = [each.timestamp() for each in (ends[1], ends[3]) if each is not None]
    assert x509.ends_of_lists(b"".join(texts)) == dict(zip(names, expected, strict=True))
    assert x509.ends_of_lists(one.certificate.read_bytes()) == {}
    with pytest.raises(Malformed):
        x509.ends_of_lists(b"-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----")


WHOLE = certificate(oracle.Name([A(NameOID.COMMON_NAME, "a")])).public_bytes(Encoding.DER)


@given(st.data())
def test_damaged_bytes_are_refused(data: st.DataObject) -> None:
    """Bytes that are cut or changed are refused, or read as something else; they never do harm."""
    cut = bytearray(WHOLE[: data.draw(st.integers(0, len(WHOLE)))])
    if cut and data.draw(st.booleans()):
        cut[data.draw(st.integers(0, len(cut) - 1))] = data.draw(st.integers(0, 255))
    try:
        x509.read_certificate(bytes(cut))
    except Malformed:
        pass
    with pytest.raises(Malformed):
        x509.first_end_s(b"no certificate")
