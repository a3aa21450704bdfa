"""Tests how errors of the HDFS client are reported: as one sentence and an exit status. The texts
of the errors are those of hdfs-native 0.14 and Hadoop 3.4."""

from __future__ import annotations

import pytest

from skidway.audit.output import StoreFailed, StoreUnreachable
from skidway.audit.output.hdfs.failures import failures
from skidway.errors import SkidwayError

PATH = "hdfs://nn:8020/logs/file"
STACK = r"\n\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem.a(FSNamesystem.java:1)"
SAFE_MODE = (
    'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create file/x. '
    rf'Name node is in safe mode.\nIt was turned on manually. {STACK}")'
)
SPACE = (
    'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of '
    f'/logs is exceeded: quota = 1048576 B = 1 MB but diskspace consumed = 2 MB{STACK}")'
)
NO_DATA_NODE = (
    'RPCError("java.io.IOException", "File /logs/file could only be written to 0 of the 1 '
    "minReplication nodes. There are 0 datanode(s) running and 0 node(s) are excluded in this "
    f'operation.{STACK}")'
)


def gssapi(routine: str, minor: int, text: str) -> RuntimeError:
    """Returns the client's error for an error of the Kerberos library."""
    return RuntimeError(
        f'GSSAPIError(GssMajorCodes {{ raw: "0x000d0000", calling_error: "none", routine_error: '
        f'"{routine}", supplementary_info: "0x0000" }}, {minor}, "Unspecified GSS failure.  Minor '
        f'code may provide more information: {text}")'
    )


NODES = '[DatanodeInfoProto { id: DatanodeIdProto { ip_addr: \\"127.0.0.1\\" } }]'


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (
            RuntimeError(SAFE_MODE), StoreUnreachable,
            "the NameNode refuses it: Cannot create file/x. Name node is in safe mode.",
        ),
        (
            RuntimeError(SPACE), StoreFailed,
            "the NameNode refuses it: The DiskSpace quota of /logs is exceeded: quota = 1048576 B "
            "= 1 MB but diskspace consumed = 2 MB",
        ),
        (
            RuntimeError(NO_DATA_NODE), StoreUnreachable,
            "the NameNode refuses it: File /logs/file could only be written to 0 of the 1 "
            "minReplication nodes. There are 0 datanode(s) running and 0 node(s) are excluded in "
            "this operation.",
        ),
        (
            RuntimeError(f'DataTransferError("All DataNodes failed: {NODES}")'), StoreUnreachable,
            "no DataNode that has it answers",
        ),
        (
            RuntimeError('DataTransferError("All nodes failed for write")'), StoreUnreachable,
            "no DataNode is left that could write it",
        ),
        (
            RuntimeError('OperationFailed("Failed to complete file in time")'), StoreUnreachable,
            "no DataNode confirmed its bytes in time",
        ),
        (
            RuntimeError("ChecksumError"), StoreFailed,
            "the bytes that the DataNodes have are damaged",
        ),
        (
            OSError("early eof"),
            StoreUnreachable,
            "no connection to the NameNode or a DataNode: early eof",
        ),
        (
            OSError("No route to host (os error 113)"),
            StoreUnreachable,
            "no connection to the NameNode or a DataNode: No route to host (os error 113)",
        ),
        (
            gssapi("GSS_S_FAILURE", 2529638944, "Ticket expired"), StoreUnreachable,
            "Kerberos: its ticket has ended, and no KDC has given a new one",
        ),
        (
            gssapi("GSS_S_CREDENTIALS_EXPIRED", 0, "Success"), StoreUnreachable,
            "Kerberos: its ticket has ended, and no KDC has given a new one",
        ),
        (
            gssapi("GSS_S_NO_CRED", 2529638943, "Decrypt integrity check failed"), StoreFailed,
            "Kerberos: the principal's key in the keytab is not that of the KDC",
        ),
        (
            gssapi("GSS_S_FAILURE", 7, "A new trouble"), StoreFailed, "Kerberos: A new trouble",
        ),
        (
            RuntimeError(
                'FatalRPCError("javax.security.sasl.SaslException", "GSS initiate failed")'
            ),
            StoreUnreachable,
            "the NameNode refuses it: GSS initiate failed",
        ),
        (IsADirectoryError("/logs/file"), StoreFailed, "/logs/file"),
        (ValueError(""), StoreFailed, "ValueError"),
        (PermissionError("no"), StoreFailed, "no"),
    ],
)  # fmt: skip
def test_each_failure_is_one_sentence(
    error: Exception, kind: type[SkidwayError], sentence: str
) -> None:
    """If the NameNode or the DataNodes cannot serve a request at the moment, the exit status is
    that of an unreachable server. If the request can succeed only after a person has changed
    something, the exit status is that of a failed command. In both cases the message is one
    sentence without a Java stack trace."""
    with pytest.raises(SkidwayError) as caught, failures("write", PATH):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value) == f"cannot write {PATH}: {sentence}"


class Unclear(SkidwayError):
    """Raised if it is unknown whether HDFS has made the requested change."""


def test_an_outcome_may_be_unclear() -> None:
    """If a request to change something in HDFS fails, HDFS may still have made the change. Then the
    HDFS client's error is replaced by an error that says that the change may have been made. If
    HDFS has refused permission, it has certainly not made the change, so the new error says that
    the request failed. An error that Skidway's own code has raised is passed on unchanged."""
    with pytest.raises(Unclear, match="early eof"), failures("rename", PATH, Unclear):
        raise OSError("early eof")
    with pytest.raises(StoreFailed, match="not yours"), failures("rename", PATH, Unclear):
        raise PermissionError("not yours")
    with pytest.raises(StoreFailed, match=r"^said$"), failures("rename", PATH, Unclear):
        raise StoreFailed("said")
