"""Says in words why a TLS connection failed. OpenSSL's texts name functions and source files."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

_ALERTS: Final = {
    "UNKNOWN_CA": "does not know the authority of this side's certificate",
    "CERTIFICATE_REQUIRED": "requires a certificate",
    "CERTIFICATE_EXPIRED": "says that this side's certificate has expired",
    "CERTIFICATE_REVOKED": "says that this side's certificate is revoked",
    "CERTIFICATE_UNKNOWN": "does not accept this side's certificate",
    "UNSUPPORTED_CERTIFICATE": "does not accept the usage of this side's certificate",
    "BAD_CERTIFICATE": "does not accept this side's certificate",
    "HANDSHAKE_FAILURE": "has no version, cipher or certificate in common with this side",
    "PROTOCOL_VERSION": "has no version of TLS in common with this side",
}
"""Maps the alerts of the other side (RFC 8446, 6.2), as OpenSSL names them, to what they mean."""


def tls_reason(error: OSError) -> str:
    """Returns why a connection failed, in one sentence without an end; of an error that is not of
    TLS, its text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate of the other side is not accepted: {error.verify_message}"
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


def setting_of_client(error: OSError, ca: Path | None, certificate: Path | None) -> str:
    """Returns the client's setting that may be wrong, with its file; empty if none may be."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"ssl.ca.location: {ca or 'those of the machine'}"
    told = getattr(error, "reason", None) or ""
    if "ALERT" in told and ("CERT" in told or "CA" in told):
        return f"ssl.certificate.location: {certificate or 'not set'}"
    return ""
