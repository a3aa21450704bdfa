"""A certificate authority of its own for a folder, and the certificates that it signs. The command
`openssl` makes them, as in docs/security.md.

    authority.pem, authority.key    the authority
    NAME.pem, NAME.key              the certificate of a program, for this machine's loopback

Each is made once: a second run in the folder uses what is there.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from skidway.errors import SkidwayError
from skidway.files import make_directory, write_atomically

AUTHORITY = "authority"
_OPENSSL = "openssl"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_VALID = ("-days", "3650")
_HOSTS = b"subjectAltName=IP:127.0.0.1,DNS:localhost\n"


def check() -> None:
    """Raises SkidwayError if this machine lacks what makes certificates."""
    if shutil.which(_OPENSSL) is None:
        raise SkidwayError(
            f"the command {_OPENSSL}, which makes certificates, is missing; install it (Debian,"
            f" Ubuntu: apt-get install {_OPENSSL})"
        )


def make(folder: Path, names: Iterable[str]) -> None:
    """Makes the authority and the certificates with these names, as far as the folder lacks them.
    Raises SkidwayError if openssl fails."""
    make_directory(folder)
    hosts, authority = folder / "hosts.ext", folder / f"{AUTHORITY}.pem"
    if not authority.exists():
        write_atomically(authority, _new(folder, AUTHORITY, "-x509", *_VALID))
    write_atomically(hosts, _HOSTS)
    signs = ("-CA", authority, "-CAkey", authority.with_suffix(".key"), "-CAcreateserial")
    for name in names:
        certificate = folder / f"{name}.pem"
        if not certificate.exists():  # it is written last, so its key is whole
            asked = _new(folder, name)
            signed = _openssl("x509", "-req", *signs, *_VALID, "-extfile", hosts, given=asked)
            write_atomically(certificate, signed)


def _new(folder: Path, name: str, *options: str) -> bytes:
    """Makes a key, which openssl lets only its owner read. Returns a request to sign its
    certificate, or with -x509 the certificate."""
    key = folder / f"{name}.key"
    subject = ("-subj", f"/O=skidway demo/CN={name}")
    return _openssl("req", *options, *_NEW_KEY, *subject, "-keyout", key)


def _openssl(*words: str | Path, given: bytes = b"") -> bytes:
    done = subprocess.run([_OPENSSL, *words], input=given, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise SkidwayError(f"{_OPENSSL} {words[0]} failed: {said}")
    return done.stdout
