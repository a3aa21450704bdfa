"""Says in words why a TLS connection failed. OpenSSL's texts name functions and source files."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

_ALERTS: Final = {
    "UNKNOWN_CA": "does not know the authority of this side's certificate",
    "CERTIFICATE_REQUIRED": "requires a certificate",
    "CERTIFICATE_EXPIRED": "says that this side's certificate, or its own list of revoked"
    " certificates, has expired",
    "CERTIFICATE_REVOKED": "says that this side's certificate is revoked",
    "CERTIFICATE_UNKNOWN": "does not accept this side's certificate",
    "UNSUPPORTED_CERTIFICATE": "does not accept the usage of this side's certificate",
    "BAD_CERTIFICATE": "does not accept this side's certificate",
    "HANDSHAKE_FAILURE": "has no version, cipher or certificate in common with this side",
    "PROTOCOL_VERSION": "has no version of TLS in common with this side",
}
"""Maps the alerts of the other side (RFC 8446, 6.2), as OpenSSL names them, to what they mean. It
gives the same alert for an expired certificate and for an expired list."""
_UNSIGNED: Final = (2, 18, 19, 20, 21)
"""OpenSSL's X509_V_ERR_... of a certificate, or one of its authorities, that nobody has signed whom
this side trusts: UNABLE_TO_GET_ISSUER_CERT and so on, and those that are signed by themselves."""
_OF_LISTS: Final = {
    3: "there is no list of revoked certificates of its authority",
    8: "the list of revoked certificates of its authority has another signature",
    11: "the list of revoked certificates of its authority is not yet valid",
    12: "the list of revoked certificates of its authority has expired",
}
_DAMAGED: Final = "it is damaged"
_DAMAGED_WITH_KEY: Final = (
    "the certificate or its key is not there in PEM (ssl.key.location: the key's file)"
)
_OF_FILES: Final = {
    "KEY_VALUES_MISMATCH": "the key is not that of the first certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is nothing of this kind in PEM",
}


def tls_reason(error: OSError) -> str:
    """Returns why a connection failed, in one sentence without an end; of an error that is not of
    TLS, its text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate of the other side is not accepted: {verify_reason(error)}"
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    reason = error.reason or ""
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason or "RECORD_LAYER" in reason:
        return "TLS: the other side does not speak TLS on this port"
    if "PEER_DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return "TLS: the client has shown no certificate"
    for alert, sentence in _ALERTS.items():
        if reason.endswith(f"ALERT_{alert}"):
            return f"TLS: the other side {sentence}"
    return f"TLS: {reason.lower().replace('_', ' ') or error}"


def verify_reason(error: ssl.SSLCertVerificationError) -> str:
    """Returns what is wrong with a certificate of the other side."""
    if error.verify_code in _UNSIGNED:
        return "it is not signed by a trusted authority"
    return _OF_LISTS.get(error.verify_code, error.verify_message)


def verify_setting(error: ssl.SSLCertVerificationError) -> str:
    """Returns the setting of this side that decides about such a certificate."""
    return "ssl.crl.location" if error.verify_code in _OF_LISTS else "ssl.ca.location"


def file_reason(error: OSError, *, has_key: bool) -> str:
    """Returns why OpenSSL cannot use a file. has_key: whether it has, or comes with, a key."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    if not error.reason:
        return _DAMAGED_WITH_KEY if has_key else _DAMAGED
    return _OF_FILES.get(error.reason, error.reason)


def setting_of_client(
    error: OSError, ca: Path | None, certificate: Path | None, crl: Path | None = None
) -> str:
    """Returns the client's setting that may be wrong, with its file; empty if none may be."""
    if isinstance(error, ssl.SSLCertVerificationError):
        setting = verify_setting(error)
        return f"{setting}: {(crl if 'crl' in setting else ca) or 'those of the machine'}"
    told = getattr(error, "reason", None) or ""
    if "ALERT" in told and ("CERT" in told or "CA" in told):
        return f"ssl.certificate.location: {certificate or 'not set'}"
    return ""
