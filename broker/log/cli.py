"""`skidway broker dump-log DIR|FILE`: prints the content of a partition's files.

Exit status 0 means that the files consist only of batches whose CRC is right. Exit status 1 means
that the output names damaged data.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from skidway.broker.log import dump
from skidway.broker.log.dump import DumpedBatch, DumpedRecord, NoBatch
from skidway.cli.options import add_json_option
from skidway.errors import SkidwayError
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.codecs import codec_of

SHOWN_BYTES_MAX: Final = 200
_HEAD: Final = (
    "       OFFSETS              RECORDS      BYTES    POSITION  TIMESTAMP                 "
    "CODEC   EPOCH  PRODUCER             CRC"
)


def register(verbs: Any) -> None:
    """Adds the command `skidway broker dump-log`."""
    words = "the batches of a partition's directory or of one segment, every CRC computed"
    parser = verbs.add_parser("dump-log", help=words, description=words)
    parser.add_argument("path", metavar="DIR|FILE", type=Path)
    parser.add_argument("--records", action="store_true", help="the records of each batch, too")
    add_json_option(parser)
    parser.set_defaults(run=_dump)


def _dump(args: argparse.Namespace) -> int:
    try:
        return _show(args.path, with_records=args.records, as_json=args.json)
    except OSError as error:
        raise SkidwayError(f"cannot read {error.filename or args.path}: {error.strerror}") from None


def _show(path: Path, *, with_records: bool, as_json: bool) -> int:
    said = _Findings()
    for file in dump.segment_files(path):
        if not as_json:
            print(f"{file}\n{_HEAD}")
        for found in dump.batches(file):
            if isinstance(found, NoBatch):
                said.faults.append(_no_batch(found))
            else:
                said.note(found)
                _print(found, said, with_records=with_records, as_json=as_json)
    _conclude(said, as_json=as_json)
    return 1 if said.faults else 0


@dataclass(slots=True)
class _Findings:
    """What the command found in the files: a sentence for each piece of damaged data, a sentence
    for each gap between offsets, and the range of all offsets.
    """

    faults: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    first: int | None = None
    end: int = 0

    def note(self, batch: DumpedBatch) -> None:
        """Adds what the command found in a batch: a wrong CRC, a gap before the batch, and the
        batch's offsets."""
        header = batch.header
        if not batch.crc_ok:
            self.faults.append(f"{batch.path.name}: the CRC at position {batch.position} is wrong")
        if self.first is None:
            self.first = header.base_offset
        elif header.base_offset != self.end:
            self.gaps.append(
                f"{batch.path.name}: offset {header.base_offset} follows {self.end - 1} at "
                f"position {batch.position} (a mirror has the gaps that its source had)"
            )
        self.end = header.last_offset + 1


def _print(batch: DumpedBatch, said: _Findings, *, with_records: bool, as_json: bool) -> None:
    records: list[DumpedRecord] = []
    if with_records:
        try:
            records = dump.records(batch)
        except CorruptBatch as error:
            said.faults.append(
                f"{batch.path.name}: the records at position {batch.position} cannot be read: "
                f"{error}"
            )
    if as_json:
        document = _document(batch)
        if with_records:
            document["records"] = [_record_document(each) for each in records]
        print(json.dumps(document, ensure_ascii=False))
        return
    print(_line(batch))
    for each in records:
        print(_record_line(each))


def _document(batch: DumpedBatch) -> dict[str, Any]:
    header = batch.header
    return {
        "file": str(batch.path),
        "position": batch.position,
        "size_bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "codec": _codec(batch),
        "timestamp_type": "LogAppendTime" if header.has_log_append_time else "CreateTime",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
        "crc_ok": batch.crc_ok,
    }


def _record_document(record: DumpedRecord) -> Mapping[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _encoded(record.key),
        "value": _encoded(record.value),
        "headers": {name: _encoded(value) for name, value in record.headers},
    }


def _encoded(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _line(batch: DumpedBatch) -> str:
    header = batch.header
    offsets = f"{header.base_offset}-{header.last_offset}"
    producer = "-"
    if header.producer_id >= 0:
        producer = f"{header.producer_id}/{header.producer_epoch}#{header.base_sequence}"
    return (
        f"{offsets:>27} {header.count:>7} {header.size_bytes:>10} {batch.position:>11}  "
        f"{_time(header.max_timestamp):<24}  {_codec(batch):<6} {header.leader_epoch:>6}  "
        f"{producer:<20} {'good' if batch.crc_ok else 'WRONG'}"
    )


def _record_line(record: DumpedRecord) -> str:
    parts = [f"{record.offset:>27}", _time(record.timestamp)]
    if record.key is not None:
        parts.append(f"key {_short(record.key)}")
    parts += [f"{name}={_short(value)}" for name, value in record.headers]
    parts.append(_short(record.value))
    return "  ".join(parts)


def _short(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = data[:SHOWN_BYTES_MAX].decode("utf-8", "backslashreplace")
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    more = len(data) - SHOWN_BYTES_MAX
    return f"{shown}... ({more:,} bytes more)" if more > 0 else shown


def _codec(batch: DumpedBatch) -> str:
    try:
        return codec_of(batch.header).name
    except CorruptBatch:
        return "?"


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    try:
        at = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _no_batch(found: NoBatch) -> str:
    return (
        f"{found.path.name}: {found.size_bytes:,} bytes at position {found.position} are no batch: "
        f"{found.reason} (half a batch at the end of a running broker's active segment is no fault)"
    )


def _conclude(said: _Findings, *, as_json: bool) -> None:
    if as_json:
        for kind, sentences in (("fault", said.faults), ("gap", said.gaps)):
            for sentence in sentences:
                print(json.dumps({kind: sentence}, ensure_ascii=False))
        return
    for sentence in (*said.gaps, *said.faults):
        print(sentence)
    if said.first is None:
        print("no batches")
    elif not said.faults:
        print(f"good: offsets {said.first} to {said.end - 1}, every CRC is right")
