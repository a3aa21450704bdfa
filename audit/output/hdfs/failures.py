"""Turns an error of the HDFS client into `StoreFailed` or `StoreUnreachable`, with one sentence.

The client raises OSError if a connection fails, a file is missing, or a permission is lacking. For
most other errors it raises RuntimeError with the text of a Rust value. This text describes either a
refusal of the NameNode (a Java exception with its stack trace), or a failure between the client and
the DataNodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from skidway.audit.output import StoreFailed, StoreUnreachable
from skidway.errors import SkidwayError


class _Reason(NamedTuple):
    """Why an operation failed. away: whether the same operation may succeed later, because a
    server did not answer or refused it temporarily."""

    sentence: str
    away: bool


_REFUSAL: Final = re.compile(r'RPCError\("[\w.$]*?(\w+)", "((?:\\.|[^"\\])*)"\)')
"""Matches a refusal of the NameNode in the text of the client's error. Group 1 is the class of the
Java exception, group 2 is its message with the stack trace."""

_GSSAPI: Final = re.compile(r'GSSAPIError\(.*?}, (\d+), "((?:\\.|[^"\\])*)"\)')
"""Matches an error of the Kerberos library. Group 1 is MIT's error code, an unsigned number; group
2 is the code's text, which several causes share."""

_ENDED: Final = -1765328352
"""Also an error without MIT's code means this: GSSAPI itself has found, in the second in which a
ticket ends, that it is of no use."""

_TICKETS: Final = {
    -1765328228: ("no KDC of the realm answers", True),
    _ENDED: ("its ticket has ended, and no KDC has given a new one", True),
    -1765328230: ("krb5.conf names no KDC of the principal's realm", False),
    -1765328243: ("there is no ticket: set kerberos.principal and its keytab, or run kinit", False),
    -1765328189: ("there is no ticket: set kerberos.principal and its keytab, or run kinit", False),
    -1765328353: ("the principal's key in the keytab is not that of the KDC", False),
    -1765328378: ("the KDC does not know the principal", False),
    -1765328383: ("the KDC says that the principal has expired", False),
    -1765328377: ("the KDC does not know the NameNode's principal", False),
    -1765328236: ("the clock of this host differs too much from that of the KDC", False),
    -1765328347: ("the clock of this host differs too much from that of the NameNode", False),
}
"""Maps MIT's error codes (krb5.h) to what is wrong, and whether it may pass."""

_NOT_NOW: Final = ("SafeModeException", "StandbyException", "RetriableException")
"""Java's exception classes for temporary refusals."""

_NO_TICKET_NOW: Final = "GSS initiate failed"
"""The NameNode's message if it refuses a ticket, for example one that has just ended."""

_NO_DATA_NODE: Final = "could only be written to"
"""Part of the NameNode's message if it finds no DataNode for a new block."""

_SAID: Final = {
    "All DataNodes failed": _Reason("no DataNode that has it answers", True),
    "BlocksNotFound": _Reason("no DataNode that has it answers", True),
    "All nodes failed for write": _Reason("no DataNode is left that could write it", True),
    "Failed to complete file in time": _Reason("no DataNode confirmed its bytes in time", True),
    "DataTransferError": _Reason("a DataNode did not do its part", True),
    "ChecksumError": _Reason("the bytes that the DataNodes have are damaged", False),
}
"""Maps a phrase in the text of the client's error to the reason why the operation failed. If the
text contains several of these phrases, the first in this list is used."""

_NETWORK: Final = ("connect", "timed out", "no active", "unreachable", "dns", "lookup address")
"""If an error's text contains no phrase of `_SAID`, but contains one of these words, the error
means that a server did not answer."""


@contextmanager
def failures(verb: str, path: str, unclear: type[SkidwayError] | None = None) -> Iterator[None]:
    """Turns an OSError, RuntimeError or ValueError of the client into an error with a message of
    one sentence: StoreUnreachable if the same operation may succeed later, otherwise StoreFailed.

    unclear: the class of the error to raise instead of these two, for an operation that the server
    may have done in spite of the client's error. Refused permission still raises StoreFailed.
    """
    try:
        yield
    except (StoreFailed, StoreUnreachable):
        raise
    except PermissionError as error:
        raise StoreFailed(f"cannot {verb} {path}: {_reason(error).sentence}") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = _reason(error)
        sentence = f"cannot {verb} {path}: {reason.sentence}"
        if unclear is not None:
            raise unclear(sentence) from error
        raise (StoreUnreachable if reason.away else StoreFailed)(sentence) from error


def _reason(error: Exception) -> _Reason:
    text = str(error)
    refusal = _REFUSAL.search(text)
    if refusal is not None:
        message = refusal[2].partition(r"\n")[0]
        if refusal[1] == "StandbyException":
            message = f"no NameNode is active ({message})"
        away = refusal[1] in _NOT_NOW or _NO_DATA_NODE in message or message == _NO_TICKET_NOW
        return _Reason(f"the NameNode refuses it: {message}", away)
    if ticket := _GSSAPI.search(text):
        code = int(ticket[1]) - 2**32 if int(ticket[1]) else _ENDED
        sentence, away = _TICKETS.get(code, (ticket[2].rpartition(": ")[2], False))
        return _Reason(f"Kerberos: {sentence}", away)
    for said, reason in _SAID.items():
        if said in text:
            return reason
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    if type(error) is OSError or isinstance(error, (ConnectionError, TimeoutError)):
        # These classes mean a failed connection. For a missing file or permission, the client
        # raises FileNotFoundError or PermissionError.
        return _Reason(f"no connection to the NameNode or a DataNode: {first}", True)
    return _Reason(first, any(word in text.lower() for word in _NETWORK))
