"""Reads what Python's ssl does not tell about certificates and revocation lists: serial numbers,
ends, and names in the order of RFC 2253.

It checks no signature: OpenSSL has done so for a peer's certificate, and does so for lists.

    certificate   RFC 5280, 4.1: the first elements of TBSCertificate
    list          RFC 5280, 5.1: issuer, nextUpdate and revokedCertificates of TBSCertList
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from skidway.dataclass import dataclass

SerialOf = tuple[bytes, int]
"""The issuer's name in DER, and the serial number that it has given: of one certificate only."""

_SEQUENCE, _INTEGER, _UTC_TIME, _TIME, _VERSION = 0x30, 0x02, 0x17, 0x18, 0xA0
_ENCODINGS: Final = {
    0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}  # fmt: skip
_KEYWORDS: Final = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET",
    "2.5.4.10": "O", "2.5.4.11": "OU", "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}  # fmt: skip
"""The types that Java names in `X500Principal.getName`; the others it gives by number."""
_SPECIAL: Final = re.compile(r'[,=+<>#;"\\]|^ +| +$')


class Malformed(ValueError):
    """The bytes are no certificate, or no list."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says of its owner. subject: the name as Java gives it, such as
    `CN=a,OU=b`. name: the same in DER."""

    serial: SerialOf
    subject: str
    name: bytes


def read_certificate(der: bytes) -> Certificate:
    """Reads a certificate in DER. Raises Malformed."""
    try:
        serial, _, issuer, _, subject = _fields(der)
        number = int.from_bytes(serial.content)
        return Certificate((issuer.whole, number), _name(subject.content), subject.whole)
    except (IndexError, ValueError) as error:
        raise Malformed("no certificate of X.509") from error


def first_end_s(pem: bytes) -> float:
    """Returns when the first certificate of a PEM file expires, in seconds since 1970. Raises
    Malformed."""
    try:
        for der in _blocks(pem, b"CERTIFICATE"):
            return _seconds(list(_inside(_fields(der)[3].content))[1])
    except (IndexError, ValueError) as error:
        raise Malformed("no certificate of X.509") from error
    raise Malformed("no certificate in PEM")


def ends_of_lists(pem: bytes) -> dict[bytes, float]:
    """Returns the authorities (names in DER) that have a revocation list in a PEM file, and when
    the one of their lists that lasts longest expires, in seconds since 1970 (infinity: it does
    not). Raises Malformed."""
    ends: dict[bytes, float] = {}
    try:
        for der in _blocks(pem, b"X509 CRL"):
            _, issuer, _, *rest = _fields_of_list(_inside_first(der))
            has_end = rest and rest[0].tag in (_UTC_TIME, _TIME)
            end_s = _seconds(rest[0]) if has_end else math.inf
            ends[issuer.whole] = max(end_s, ends.get(issuer.whole, end_s))
    except (IndexError, ValueError) as error:
        raise Malformed("no revocation list of X.509") from error
    return ends


def revoked(pem: bytes) -> frozenset[SerialOf]:
    """Reads all revocation lists of a PEM file. Raises Malformed."""
    try:
        return frozenset(
            each for der in _blocks(pem, b"X509 CRL") for each in _serials(_inside_first(der))
        )
    except (IndexError, ValueError) as error:
        raise Malformed("no revocation list of X.509") from error


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def _inside(data: bytes) -> Iterator[_Element]:
    """Yields the elements of which an element in DER consists. Raises IndexError, ValueError."""
    at = 0
    while at < len(data):
        tag, length, start = data[at], data[at + 1], at + 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[at + 2 : start])
        end = start + length
        if end > len(data):
            raise ValueError("an element runs past the end")
        yield _Element(tag, data[start:end], data[at:end])
        at = end


def _inside_first(data: bytes) -> bytes:
    """Returns the content of the first element of the first element: what is signed."""
    return _first(_first(data))


def _first(data: bytes) -> bytes:
    for each in _inside(data):
        return each.content
    raise ValueError("an element is empty")


def _fields(der: bytes) -> list[_Element]:
    """Returns serial number, algorithm, issuer, validity and subject of a certificate."""
    fields = list(_inside(_inside_first(der)))
    if fields[0].tag == _VERSION:
        del fields[0]
    return fields[:5]


def _fields_of_list(signed: bytes) -> list[_Element]:
    """Returns algorithm, issuer, time, and as far as they are there: the next time, a sequence if
    anything is revoked, extensions."""
    fields = list(_inside(signed))
    if fields[0].tag == _INTEGER:
        del fields[0]
    return fields


def _serials(signed: bytes) -> Iterator[SerialOf]:
    fields = _fields_of_list(signed)
    issuer = fields[1].whole
    for each in fields[2:5]:
        if each.tag == _SEQUENCE:
            for entry in _inside(each.content):
                yield issuer, int.from_bytes(_first(entry.content))


def _name(content: bytes) -> str:
    """Returns a name as RFC 2253 writes it: the last part first."""
    parts = [
        "+".join(_attribute(each.content) for each in _inside(part.content))
        for part in _inside(content)
    ]
    return ",".join(reversed(parts))


def _attribute(content: bytes) -> str:
    kind, value = _inside(content)
    number = _object_identifier(kind.content)
    keyword, encoding = _KEYWORDS.get(number), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.whole.hex()}"
    text = value.content.decode(encoding)
    return f"{keyword}=" + _SPECIAL.sub(lambda x: "".join("\\" + each for each in x[0]), text)


def _object_identifier(content: bytes) -> str:
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _seconds(time: _Element) -> float:
    text = time.content.decode("ascii")
    if time.tag == _UTC_TIME:
        text = ("19" if text >= "5" else "20") + text
    elif time.tag != _TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _blocks(pem: bytes, label: bytes) -> Iterator[bytes]:
    pattern = rb"-----BEGIN %b-----(.*?)-----END %b-----" % (label, label)
    for found in re.finditer(pattern, pem, re.DOTALL):
        yield base64.b64decode(found[1])
