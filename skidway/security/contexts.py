"""Makes the TLS contexts of servers and clients from PEM files, and makes them again when a file is
replaced: a new certificate, authority or revocation list needs no restart.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from skidway import log
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.security.tls_reasons import file_reason
from skidway.security.x509 import Malformed, ends_of_lists, first_end_s, read_certificate

ClientAuth = Literal["none", "requested", "required"]
"""Whether a server asks its clients for a certificate, in Kafka's words (`ssl.client.auth`)."""

_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:@SECLEVEL=2"
"""For TLS 1.2: with forward secrecy, without CBC. OpenSSL's level 2 refuses keys of less than 112
bits of security: RSA below 2048 bits, SHA-1."""
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The paths of PEM files. certificate: the own certificate, with those of the authorities
    between it and the root. key: its private key, not encrypted; if None, it is in the
    certificate's file. ca: the authorities to trust; None for those of the machine. crl: their
    revocation lists.
    """

    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    crl: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are given."""
        given = (self.certificate, self.key, self.ca, self.crl)
        return tuple(each for each in given if each is not None)


def server_context(files: TlsFiles, clients: ClientAuth = "none") -> ssl.SSLContext:
    """Returns the context of a server, for TLS 1.2 and newer. Raises ConfigurationRefused, also if
    its certificate or a revocation list has expired."""
    if files.certificate is None:
        raise ConfigurationRefused("ssl.certificate.location is missing.")
    if clients != "none" and files.ca is None:
        raise ConfigurationRefused(f"ssl.client.auth is {clients}: ssl.ca.location is missing.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0  # clients seldom resume, and a ticket costs a tenth of a handshake
    _load(context, files)
    context.verify_mode = _VERIFY[clients]
    _refuse_expired(f"ssl.certificate.location: {files.certificate}", end_of(files.certificate))
    _refuse_expired_lists(files.crl)
    return context


def client_context(files: TlsFiles, *, checks_name: bool = True) -> ssl.SSLContext:
    """Returns the context of a client, for TLS 1.2 and newer. checks_name: whether the server's
    certificate must be for the host to which the client connects. Raises ConfigurationRefused; not
    if something has expired, because a client may wait for new files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_name
    if files.ca is None:
        context.load_default_certs()
    _load(context, files)
    return context


def end_of(certificate: Path) -> float:
    """Returns when the first certificate of a PEM file expires, in seconds since 1970. Raises
    ConfigurationRefused."""
    try:
        return first_end_s(certificate.read_bytes())
    except (OSError, Malformed) as error:
        raise ConfigurationRefused(
            f"ssl.certificate.location: {certificate} cannot be read: {error}"
        ) from error


def end_of_lists(crl: Path) -> float:
    """Returns when the first authority has no revocation list any more, in seconds since 1970;
    infinity if the lists do not expire. Raises ConfigurationRefused."""
    return min(_ends_of_lists(crl).values())


class Contexts:
    """Owns the context of one listener or client, and makes it again when one of its files was
    replaced. It says in the log when that was done, and when the new files cannot be used, so that
    the last good ones stay in use.

    make: makes the context. files: those that it reads. problem: why the files cannot be used now.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], files: TlsFiles) -> None:
        """Raises ConfigurationRefused."""
        self._make, self._files = make, files
        self._stamp = _stamp(files.paths)
        self.current = self._made()
        """That of the last call of `get`."""
        self.problem = ""

    def get(self) -> ssl.SSLContext:
        """Returns the context for a new connection."""
        stamp = _stamp(self._files.paths)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                made = self._made()
                _refuse_expired_lists(self._files.crl)
            except ConfigurationRefused as error:
                self.problem = str(error)
                _log.error("certificates_refused", reason=self.problem)
            else:
                self.current, self.problem = made, ""
                _log.info("certificates_read", files=[str(each) for each in self._files.paths])
        return self.current

    def _made(self) -> ssl.SSLContext:
        context, certificate, crl = self._make(), self._files.certificate, self._files.crl
        if certificate is not None:
            from skidway.security.expiry import show_end

            show_end(certificate, end_of(certificate))
        if crl is not None:
            from skidway.security.expiry import show_end_of_lists

            show_end_of_lists(crl, end_of_lists(crl))
        return context


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    if files.ca is not None:
        with _naming("ssl.ca.location", files.ca):
            context.load_verify_locations(files.ca)
    if files.crl is not None:
        trusted = [] if files.ca is None else context.get_ca_certs(binary_form=True)
        with _naming("ssl.crl.location", files.crl):
            context.load_verify_locations(files.crl)
        _refuse_missing_lists(files.crl, trusted)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if files.certificate is not None:
        with _naming("ssl.certificate.location", files.certificate, files.key):
            context.load_cert_chain(files.certificate, files.key, password=_refuse_password)


def _refuse_missing_lists(crl: Path, trusted: Sequence[bytes]) -> None:
    """Raises ConfigurationRefused if OpenSSL would accept no certificate of one of the authorities
    because it finds no list of it. An authority that signs others of the file may do only that, and
    lists of other authorities do no harm: an authority comes after its list, and goes before it."""
    with_list = _ends_of_lists(crl)
    try:
        authorities = [read_certificate(each) for each in trusted]
    except Malformed as error:
        raise ConfigurationRefused(f"ssl.ca.location: an authority is {error}.") from error
    signers = {each.serial[0] for each in authorities if each.serial[0] != each.name}
    for each in authorities:
        if each.name not in with_list and each.name not in signers:
            raise ConfigurationRefused(
                f"ssl.crl.location: {crl} has no list of the authority {each.subject} of"
                " ssl.ca.location, so none of its certificates would be accepted."
            )


def _refuse_expired_lists(crl: Path | None) -> None:
    if crl is not None:
        _refuse_expired(f"ssl.crl.location: a list in {crl}", end_of_lists(crl))


def _refuse_expired(what: str, ends_s: float) -> None:
    if ends_s <= time.time():
        ended = time.strftime("%Y-%m-%d", time.gmtime(ends_s))
        raise ConfigurationRefused(f"{what} has expired on {ended}.")


def _ends_of_lists(crl: Path) -> dict[bytes, float]:
    try:
        found = ends_of_lists(crl.read_bytes())
    except (OSError, Malformed) as error:
        raise ConfigurationRefused(f"ssl.crl.location: {crl} cannot be read: {error}") from error
    if not found:
        raise ConfigurationRefused(f"ssl.crl.location: {crl} has no revocation list in PEM.")
    return found


@contextlib.contextmanager
def _naming(setting: str, *files: Path | None) -> Iterator[None]:
    """Turns the errors of OpenSSL about files into one that names the setting and the files."""
    try:
        yield
    except (OSError, ssl.SSLError) as error:
        names = " and ".join(str(each) for each in files if each is not None)
        why = file_reason(error, has_key=setting == "ssl.certificate.location")
        raise ConfigurationRefused(f"{setting}: {names} cannot be used: {why}.") from error


def _refuse_password() -> str:
    """Raises an error. OpenSSL calls this function if the key is encrypted; without this function,
    OpenSSL would ask for a password on the terminal."""
    raise ConfigurationRefused("ssl.key.location: the key is encrypted; give one that is not.")


def _stamp(files: Sequence[Path]) -> tuple[tuple[int, int, int] | None, ...]:
    """Returns a value that changes when a file, or who may read it, is changed."""
    found: list[tuple[int, int, int] | None] = []
    for each in files:
        try:
            stat = each.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_size, stat.st_ctime_ns))
    return tuple(found)
