"""Makes a decoder and an encoder for each version of a message. The message is described by a class
with typed fields.

A message is a class whose annotations say everything about its fields::

    @structure
    class MetadataResponsePartition:
        error_code: Int16
        leader_epoch: Annotated[Int32, since(7)] = -1       # before 7: absent, read as -1
        replica_nodes: tuple[Int32, ...]
        host: Annotated[str | None, nullable(12)]           # before 12: null is refused

``str``, ``bytes``, ``bool``, ``uuid.UUID``, ``tuple[X, ...]`` and the class of another structure
need no ``Annotated``. The width of an integer is in its type. A field ``X | None`` may be null in
every version. With ``nullable(n)``, the field may be null only from version n on. A ``tagged``
field is in the tag section of flexible versions, and is written only if it differs from its
default. An array ``at_most`` has a limit. Usually ``encode`` leaves out a field that the version
does not have. But if the field is annotated with ``REFUSED_IF_ABSENT`` and the message sets it,
``encode`` raises UnsupportedVersion.

For each version, a class is compiled once into a list of steps. Neighbouring integers and bools
become one step with a common ``struct`` format. Every message can be read and written by such
steps. For Produce and Fetch there are also faster, hand-written functions; tests check that these
functions read and write the same bytes as the steps.
"""

from __future__ import annotations

import dataclasses
import struct
import types
import typing
import uuid
from collections.abc import Callable
from functools import cache
from operator import attrgetter, itemgetter
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from skidway.dataclass import dataclass
from skidway.kafka.errors import BadValue, UnsupportedVersion
from skidway.kafka.protocol import primitives as wire
from skidway.kafka.protocol.apis import ApiKey, VersionRange, flexible
from skidway.kafka.protocol.primitives import MessageReader

_FOREVER = 1 << 15


class Mark(NamedTuple):
    """One property of a field, in addition to its type."""

    what: str
    value: Any = True


Int8 = Annotated[int, Mark("code", "b")]
Int16 = Annotated[int, Mark("code", "h")]
Int32 = Annotated[int, Mark("code", "i")]
Int64 = Annotated[int, Mark("code", "q")]
ErrorText = Annotated[str | None, Mark("clipped")]
"""The type of a field with the text of an error. A text that is too long for a string of the
protocol is cut, not refused."""

REFUSED_IF_ABSENT = Mark("refused")
NO_ID = uuid.UUID(int=0)
"""The value of a missing topic id. The wire has no null for ids."""


def since(version: int) -> Mark:
    """Returns the property of a field that exists only from this version on."""
    return Mark("since", version)


def until(version: int) -> Mark:
    """Returns the property of a field that exists only up to this version (included)."""
    return Mark("until", version)


def nullable(version: int) -> Mark:
    """Returns the property of a field that may be null only from this version on."""
    return Mark("nullable", version)


def at_most(most: int, what: str) -> Mark:
    """Returns the property of an array field that all such arrays of a message together may have no
    more elements. what: the name of the elements in the error."""
    return Mark("at_most", (most, what))


def tagged(tag: int) -> Mark:
    """Returns the property of a field that is in the tag section, with the number `tag`."""
    return Mark("tag", tag)


S = TypeVar("S")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def structure(cls: type[S]) -> type[S]:
    """A decorator for classes with typed fields: returns the class as a frozen, slotted,
    keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


class Message:
    """The body of a request or response, which is sent as a whole."""

    __slots__ = ()
    API: ClassVar[ApiKey]
    VERSIONS: ClassVar[VersionRange]
    ELEMENTS_MAX: ClassVar[int] = wire.ELEMENTS_MAX


class Request(Message):
    """The body of a request."""

    __slots__ = ()
    ELEMENTS_MAX = wire.REQUEST_ELEMENTS_MAX


class Response(Message):
    """The body of a response."""

    __slots__ = ()


M = TypeVar("M", bound=Message)


def encode(message: Message, version: int) -> bytes:
    """Returns the body of a message in a version.

    Raises UnsupportedVersion if the version is unknown, or if it lacks a field that is set and has
    the property REFUSED_IF_ABSENT. Raises ValueError if a value does not fit its type.
    """
    out = bytearray()
    try:
        _compiled(type(message), version).write(out, message)
    except struct.error as error:
        raise ValueError(f"{type(message).__name__} version {version}: {error}") from None
    return bytes(out)


def decode(
    cls: type[M],
    body: bytes | bytearray | memoryview,
    version: int,
    *,
    may_have_more: bool = False,
) -> M:
    """Decodes a whole body as a message of a version.

    With `may_have_more`, bytes after the message are ignored, as in Apache Kafka. For example,
    librdkafka 2.16 sends such bytes when it asks for all topics (Metadata 9 and newer): it writes a
    null array as four bytes, where the protocol has one byte.

    Without `may_have_more`, raises ProtocolError if the body is not exactly one message of this
    class. With `may_have_more`, raises ProtocolError if the body does not begin with such a
    message. Raises UnsupportedVersion if the version is unknown.
    """
    reader = MessageReader(memoryview(body), elements_max=cls.ELEMENTS_MAX)
    message = _compiled(cls, version).read(reader)
    if not may_have_more:
        reader.finish()
    return typing.cast(M, message)


# The description of a field. It is made once per class, from the annotations.


class Fixed(NamedTuple):
    """An integer or bool. `code` is its format character in Python's module `struct`."""

    code: str


class Text(NamedTuple):
    """A string."""

    clipped: bool


class Blob(NamedTuple):
    """Bytes."""


class Id(NamedTuple):
    """A UUID."""


class Array(NamedTuple):
    """Elements of one type. `most`: see `at_most`."""

    element: Shape
    most: tuple[int, str] | None = None


class Nested(NamedTuple):
    """A structure inside another structure."""

    cls: type


Shape = Fixed | Text | Blob | Id | Array | Nested


class Field(NamedTuple):
    """A field, described by its annotation. `default` is dataclasses.MISSING if the field has no
    default."""

    name: str
    shape: Shape
    since: int
    until: int
    nullable_since: int
    tag: int | None
    refused: bool
    default: Any

    def exists(self, version: int) -> bool:
        """Returns whether the version has this field."""
        return self.since <= version <= self.until


@cache
def fields(cls: type) -> tuple[Field, ...]:
    """Returns the fields of a structure, in wire order."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_field(item, hints[item.name]) for item in dataclasses.fields(cls))


def _field(item: dataclasses.Field[Any], hint: Any) -> Field:
    kind, marks = _unwrap(hint)
    optional = get_origin(kind) in (typing.Union, types.UnionType)
    if optional:
        (kind, more) = _unwrap(next(arg for arg in get_args(kind) if arg is not types.NoneType))
        marks = {**more, **marks}
    first = marks.get("since", 0)
    return Field(
        name=item.name,
        shape=_shape(kind, marks),
        since=first,
        until=marks.get("until", _FOREVER),
        nullable_since=marks.get("nullable", first) if optional else _FOREVER,
        tag=marks.get("tag"),
        refused="refused" in marks,
        default=item.default,
    )


def _unwrap(hint: Any) -> tuple[Any, dict[str, Any]]:
    if get_origin(hint) is not Annotated:
        return hint, {}
    kind, *marks = get_args(hint)
    return kind, {mark.what: mark.value for mark in marks}


def _shape(kind: Any, marks: dict[str, Any]) -> Shape:
    if "code" in marks:
        return Fixed(marks["code"])
    if get_origin(kind) is tuple:
        return Array(_shape(*_unwrap(get_args(kind)[0])), marks.get("at_most"))
    if kind is str:
        return Text("clipped" in marks)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return Nested(kind)
    simple: dict[Any, Shape] = {bool: Fixed("?"), bytes: Blob(), uuid.UUID: Id()}
    return simple[kind]


# How a field is read and written in a given version.


class _Codec(NamedTuple):
    read: Callable[[MessageReader], Any]
    write: Callable[[bytearray, Any], None]
    least_bytes: int


_ReadStep = Callable[[MessageReader, dict[str, Any]], None]
_WriteStep = Callable[[bytearray, Any], None]


class _Step(NamedTuple):
    read: _ReadStep
    write: _WriteStep
    least_bytes: int


def _compiled(cls: type[Message], version: int) -> _Codec:
    codec = _CODECS.get((cls, version))
    if codec is None:
        if version not in cls.VERSIONS:
            raise UnsupportedVersion(
                f"{cls.__name__} is known in versions {cls.VERSIONS}, not in {version}"
            )
        codec = _structure(cls, version, flexible(cls.API, version))
        _CODECS[cls, version] = codec
    return codec


_CODECS: dict[tuple[type[Message], int], _Codec] = {}


def _structure(cls: type, version: int, compact: bool) -> _Codec:
    present = [field for field in fields(cls) if field.exists(version)]
    steps = [_guard(cls, f) for f in fields(cls) if f.refused and not f.exists(version)]
    steps += _steps([field for field in present if field.tag is None], version, compact)
    if compact:
        steps.append(_tag_step([f for f in present if f.tag is not None], version))
    reads = [step.read for step in steps]
    writes = [step.write for step in steps]

    def read(reader: MessageReader) -> Any:
        values: dict[str, Any] = {}
        for step in reads:
            step(reader, values)
        return cls(**values)

    def write(out: bytearray, value: Any) -> None:
        for step in writes:
            step(out, value)

    return _Codec(read, write, sum(step.least_bytes for step in steps))


def _guard(cls: type, field: Field) -> _Step:
    def write(_: bytearray, value: Any) -> None:
        if getattr(value, field.name) != field.default:
            raise UnsupportedVersion(
                f"{cls.__name__} can say {field.name} only since version {field.since}"
            )

    return _Step(lambda _reader, _values: None, write, 0)


def _steps(fields: list[Field], version: int, compact: bool) -> list[_Step]:
    """Returns one step for each group of neighbouring integers and bools, and one step for each
    other field."""
    steps: list[_Step] = []
    run: list[tuple[str, str]] = []
    for field in fields:
        if isinstance(field.shape, Fixed):
            run.append((field.name, field.shape.code))
            continue
        if run:
            steps.append(_run_step(run))
            run = []
        steps.append(_field_step(field.name, _codec(field, version, compact)))
    if run:
        steps.append(_run_step(run))
    return steps


def _run_step(run: list[tuple[str, str]]) -> _Step:
    names = tuple(name for name, _ in run)
    form = struct.Struct(">" + "".join(code for _, code in run))
    get = attrgetter(*names)
    single = len(names) == 1

    def read(reader: MessageReader, values: dict[str, Any]) -> None:
        values.update(zip(names, reader.fixed(form), strict=True))

    def write(out: bytearray, value: Any) -> None:
        out += form.pack(get(value)) if single else form.pack(*get(value))

    return _Step(read, write, form.size)


def _field_step(name: str, codec: _Codec) -> _Step:
    read_value, write_value, least_bytes = codec
    get = attrgetter(name)

    def read(reader: MessageReader, values: dict[str, Any]) -> None:
        values[name] = read_value(reader)

    def write(out: bytearray, value: Any) -> None:
        write_value(out, get(value))

    return _Step(read, write, least_bytes)


def _tag_step(fields: list[Field], version: int) -> _Step:
    by_tag = {field.tag or 0: (field, _codec(field, version, True)) for field in fields}

    def read(reader: MessageReader, values: dict[str, Any]) -> None:
        def known(tag: int, part: MessageReader) -> bool:
            found = by_tag.get(tag)
            if found is not None:
                values[found[0].name] = found[1].read(part)
            return found is not None

        reader.tags(known if by_tag else None)

    def write(out: bytearray, value: Any) -> None:
        parts = []
        for tag, (field, codec) in sorted(by_tag.items(), key=itemgetter(0)):
            content = getattr(value, field.name)
            if content != field.default:
                part = bytearray()
                codec.write(part, content)
                parts.append((tag, part))
        wire.put_uvarint(out, len(parts))
        for tag, part in parts:
            wire.put_uvarint(out, tag)
            wire.put_uvarint(out, len(part))
            out += part

    return _Step(read, write, 1)


def _codec(field: Field, version: int, compact: bool) -> _Codec:
    null_allowed = version >= field.nullable_since
    shape = field.shape
    if isinstance(shape, Nested | Id | Fixed):
        # The wire has no null for a structure, an id or an integer. So an optional field of such a
        # type is a tagged field, and the encoder writes null by leaving the field out.
        return _element(shape, version, compact)
    codec = _array(shape, version, compact) if isinstance(shape, Array) else _sized(shape, compact)
    return codec if null_allowed else _never_null(codec, field.name)


def _element(shape: Shape, version: int, compact: bool) -> _Codec:
    if isinstance(shape, Nested):
        return _structure(shape.cls, version, compact)
    if isinstance(shape, Id):
        return _Codec(MessageReader.uuid, lambda out, value: out.extend(value.bytes), 16)
    if isinstance(shape, Fixed):
        return _fixed(struct.Struct(">" + shape.code))
    codec = _array(shape, version, compact) if isinstance(shape, Array) else _sized(shape, compact)
    return _never_null(codec, "an element")


def _fixed(form: struct.Struct) -> _Codec:
    return _Codec(
        lambda reader: reader.fixed(form)[0],
        lambda out, value: out.extend(form.pack(value)),
        form.size,
    )


def _never_null(codec: _Codec, name: str) -> _Codec:
    read_value, write_value, least_bytes = codec

    def read(reader: MessageReader) -> Any:
        value = read_value(reader)
        if value is None:
            raise BadValue(f"{name} is null, which this version does not allow")
        return value

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            raise ValueError(f"{name} must not be None in this version")
        write_value(out, value)

    return _Codec(read, write, least_bytes)


def _sized(shape: Text | Blob, compact: bool) -> _Codec:
    if isinstance(shape, Text):
        read = MessageReader.compact_string if compact else MessageReader.string
        put = wire.put_compact_string if compact else wire.put_string
        if not shape.clipped:
            return _Codec(read, put, 1 if compact else 2)
        return _Codec(read, lambda out, value: put(out, _clip(value)), 1 if compact else 2)
    take = MessageReader.compact_sized if compact else MessageReader.sized

    def read_bytes(reader: MessageReader) -> bytes | None:
        view = take(reader)
        return None if view is None else bytes(view)

    return _Codec(
        read_bytes, wire.put_compact_sized if compact else wire.put_sized, 1 if compact else 4
    )


def _clip(text: str | None) -> str | None:
    if text is None or len(text) * 4 <= wire.STRING_BYTES_MAX:
        return text
    return text.encode()[: wire.STRING_BYTES_MAX].decode(errors="ignore")


def _array(shape: Array, version: int, compact: bool) -> _Codec:
    take_count = MessageReader.compact_count if compact else MessageReader.count
    put_count = wire.put_compact_count if compact else wire.put_count
    element = _element(shape.element, version, compact)
    read_element, write_element, least_bytes = element
    most = shape.most

    def read(reader: MessageReader) -> tuple[Any, ...] | None:
        count = take_count(reader, least_bytes)
        if most is not None:
            reader.limit(most[1], count, most[0])
        return None if count < 0 else tuple([read_element(reader) for _ in range(count)])

    def write(out: bytearray, value: tuple[Any, ...] | None) -> None:
        put_count(out, -1 if value is None else len(value))
        for item in value or ():
            write_element(out, item)

    return _Codec(read, write, 1 if compact else 4)
