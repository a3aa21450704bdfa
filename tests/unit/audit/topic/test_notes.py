"""Tests notes: messages on the audit topic that only inform people, for example about an agent's
backlog, a topic's retention or a load, and change no verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from skidway.audit.collector.risks import backlogs
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.topic import load_note, messages, notes, transactions, usual_messages
from skidway.audit.topic.backlog import (
    FILES_MAX,
    KIND,
    TOPICS_MAX,
    Backlog,
    FileBacklog,
    TopicBacklog,
    backlog_of,
    body_of,
    bounded,
)
from skidway.audit.topic.load_note import KEPT, Load, RejectedRecord, load_of
from skidway.audit.topic.messages import MessageRefused, SchemaUnknown
from skidway.audit.topic.notes import NOTE_BYTES_MAX, Note, encode
from skidway.audit.topic.retention import TOPICS_MAX as RETENTIONS_MAX
from skidway.audit.topic.retention import body_of as retention_body
from skidway.audit.topic.retention import known_ms, retention_of
from skidway.audit.topic.transactions import Held, Transactions, transactions_of
from skidway.kafka.source import Source
from skidway.schemas import single_object
from support.promises import promise

TOPIC = TopicBacklog("logs", 5, 6, 100, 900, (FileBacklog("/log/ä.log", 11, 100, 900),))
LOGS = Source("dc1", "cid", "logs", "logs-id")
NOTE = Note(KIND, "7", "app1", "dc1", 1, 9, 1_000, body_of(Backlog((TOPIC,), 2, 70)))


def test_a_note_is_read_as_it_was_sent() -> None:
    """Decoding an encoded note gives the same note, with all topics and files in it, whether the
    generic decoder or the fast decoder of audit messages decodes it."""
    for decode in (messages.decode, usual_messages.decode):
        assert decode(messages.encode(NOTE)) == NOTE
    assert backlog_of(NOTE) == Backlog((TOPIC,), 2, 70)


@promise("6 newer version")
def test_an_older_collector_takes_a_note_for_no_message() -> None:
    """A note has no Avro schema. So a reader that does not know notes refuses a note as bytes that
    are no message. It does not treat a note as a message with an unknown schema. Such a message
    would make every bucket unknown."""
    with pytest.raises(single_object.MessageInvalid) as caught:
        single_object.decode(encode(NOTE))
    assert not isinstance(caught.value, single_object.UnknownFingerprint)


@pytest.mark.parametrize(
    "value",
    [
        b'{"note":',
        b'{"note":1}',
        b'{"note":"backlog"}',
        encode(replace(NOTE, epoch=-1)),
        encode(replace(NOTE, time_ms=1 << 63)),
        encode(NOTE).replace(b'"body":{', b'"more":{'),
        b'{"note":' + b"[" * 100_000,
        encode(NOTE) + b" " * NOTE_BYTES_MAX,
        encode(replace(NOTE, producer="\ud800")),
        encode(replace(NOTE, body={"topics": [{"topic": "\ud800"}]})),
        encode(replace(NOTE, producer="9" * 17_000)),
    ],
)
def test_what_only_begins_like_a_note_is_refused(value: bytes) -> None:
    """A damaged note, or a note that is too long, is refused. The ledger only counts it as a
    refused message."""
    with pytest.raises(MessageRefused) as caught:
        messages.decode(value)
    assert not isinstance(caught.value, SchemaUnknown)
    ledger = Ledger()
    ledger.take([value])
    assert (ledger.notes(), sum(ledger.refused_by_reason().values()), ledger.unread()) == (
        [],
        1,
        {},
    )


def test_a_note_of_a_loader_with_the_longest_path_is_read() -> None:
    """A loader's name is made of the output's path and of the topic's name. HDFS allows paths of
    8,000 characters, and a topic's name has at most 249. A note with such a name is read, even if
    JSON needs six bytes for each of its characters."""
    path = "hdfs://names.example.org:8020" + "/ä" * 4_000
    for path_and_topic in (f"{path}/{'t' * 249}", path.replace("/", "ä")):
        named = replace(NOTE, producer=path_and_topic)
        assert messages.decode(encode(named)) == named


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (encode(NOTE).replace(b'"producer":"7",', b""), "does not say what it is about, or who"),
        (encode(NOTE).replace(b'"7"', b"7"), "does not say what it is about, or who sent it"),
        (encode(replace(NOTE, producer="9" * 17_000)), "a name of more than 16,384 characters"),
    ],
)
def test_a_refused_note_says_whether_a_name_is_missing_or_too_long(
    value: bytes, words: str
) -> None:
    """The sentence about a note whose kind or sender is missing differs from the sentence about a
    note with a name that is too long."""
    with pytest.raises(MessageRefused, match=words):
        messages.decode(value)


def test_what_a_note_does_not_tell_is_not_known() -> None:
    """If a field of a note is missing or has another type, the reader leaves this field out. So
    notes of other versions can be read."""
    body = {"topics": [{"topic": "logs", "unread": -4, "loss": "soon", "files": [{}, 3]}, {}, 7]}
    assert backlog_of(replace(NOTE, body=body)) == Backlog((TopicBacklog("logs"),))
    assert backlog_of(replace(NOTE, body={"topics": 3, "more": []})) == Backlog()
    assert retention_of(replace(NOTE, body={"topics": [["a"], 3, ["a", "b", "c", "d", "e"]]})) == {}
    assert retention_of(replace(NOTE, body={})) == {}
    rows = [["a"], 3, [*"citd", 1, [2]], [*"citd", -1, None], [*"citd", 1, 3]]
    rows += [[*"citd", 1, [1, 2, 3]], [*"citd", 1, [1, 2, 3, 4]], [*"citd", 1, [1, -2, 3, ""]]]
    assert transactions_of(replace(NOTE, body={"topics": rows})) == {}
    assert transactions_of(replace(NOTE, body={})) == {}


@pytest.mark.parametrize(("topics", "length"), [(600, 5), (490, 249)])
def test_a_note_about_many_transactions_is_small(topics: int, length: int) -> None:
    """However many topics have transactions, and however long the names are, every reader accepts
    the note. It names the topics with an open transaction first."""
    named = [Source("dc1", "id", f"{n:03}".ljust(length, "é"), "id") for n in range(topics)]
    found = {x: Transactions(1) for x in named} | {named[-1]: Transactions(0, Held(0, 5, 9))}
    value = encode(replace(NOTE, body=transactions.body_of(found)))
    told = transactions_of(notes.decode(value))
    assert told[named[-1]] == found[named[-1]]
    assert 20 < len(told) < topics


def test_a_note_names_what_is_lost_first_and_is_small() -> None:
    """If an agent has a backlog in many topics, its note lists the topics that will lose bytes
    first. Of the other topics it has only their number and the sum of their bytes. So the note
    stays small."""
    path = "/" + "d" * 5_000 + "/file.log"
    files = tuple(FileBacklog(path, 1, 5, 6) for _ in range(9))
    many = [TopicBacklog(f"t{n:03}", n, 0, 50, 1_000 - n, files) for n in range(100)]
    found = bounded(many)
    assert [x.topic for x in found.topics] == [f"t{n:03}" for n in range(99, 99 - TOPICS_MAX, -1)]
    assert (found.more_topics, found.more_bytes) == (100 - TOPICS_MAX, sum(range(68)))
    assert found.bytes == sum(range(100))
    value = encode(replace(NOTE, body=body_of(found)))
    assert len(value) < NOTE_BYTES_MAX // 2
    assert all(
        len(x.files) == FILES_MAX for x in backlog_of(replace(NOTE, body=body_of(found))).topics
    )
    unknown = [
        TopicBacklog("never", 1),
        TopicBacklog("old", 1, 0, 3),
        TopicBacklog("first", 1, 0, 9, 9),
    ]
    assert [x.topic for x in bounded(unknown).topics] == ["first", "old", "never"]


def test_the_ledger_keeps_the_newest_note_in_any_order() -> None:
    """For each sender and kind of note, the ledger keeps only the newest note, in whatever order
    the notes arrive. The newest note is the one with the highest epoch. Notes of the same epoch are
    compared by number, and then by time. The ledger ignores a note of an unknown kind."""
    newer = [
        replace(NOTE, time_ms=1_001),
        replace(NOTE, number=10, time_ms=5),
        replace(NOTE, epoch=2, number=1),
    ]
    values = [encode(x) for x in (NOTE, *newer, replace(NOTE, kind="weather"))]
    for order in (values, values[::-1]):
        ledger = Ledger()
        ledger.take(order)
        assert ledger.notes() == [newer[-1]]
        assert (sum(ledger.refused_by_reason().values()), ledger.unread()) == (0, {})
    other = replace(NOTE, producer="8")
    ledger.take([encode(other)])
    assert ledger.notes() == [newer[-1], other]


@pytest.mark.parametrize(
    ("settings", "ms"),
    [
        ({"retention.ms": "604800000"}, 604_800_000),
        ({"retention.ms": "1000", "retention.bytes": "-1", "cleanup.policy": "delete"}, 1_000),
        ({"retention.ms": "1000", "retention.hold": ""}, 1_000),
        ({"retention.ms": "-1"}, None),
        ({}, None),
        ({"retention.ms": "1000", "retention.bytes": "5000"}, None),
        ({"retention.ms": "1000", "retention.hold": "skidway-loader"}, None),
        ({"retention.ms": "1000", "cleanup.policy": "compact"}, None),
    ],
)
def test_a_retention_is_known_if_only_time_decides(
    settings: dict[str, str], ms: int | None
) -> None:
    """A topic's retention is known only if it depends on time alone. If it also depends on size, on
    compaction or on a consumer group, nobody knows when records will expire."""
    assert known_ms(settings) == ms


def test_retentions_are_read_as_they_were_sent() -> None:
    """Decoding a note about retention gives the times that were encoded. The note has a bounded
    number of topics: those whose records expire first."""
    found = {Source("dc1", "cid", f"t{n}", "tid"): 1_000 + n for n in range(RETENTIONS_MAX + 3)}
    note = replace(NOTE, kind="retention", body=json.loads(json.dumps(retention_body(found))))
    assert retention_of(note) == {x: ms for x, ms in found.items() if ms < 1_000 + RETENTIONS_MAX}


REJECTED_RECORD = RejectedRecord(7_200_000, 3, 41)


def _load(number: int) -> Note:
    body = load_note.body_of(Load(number, LOGS, 1.5, 10, 9, 1, 2, 300, REJECTED_RECORD))
    return Note(load_note.KIND, "/data/logs", "l1", "dc1", 1, number, 1_000 + number, body)


def test_the_newest_loads_are_kept_in_any_order() -> None:
    """For each output and topic, the ledger keeps only the notes of the KEPT newest loads, in
    whatever order the notes arrive. It keeps each load once, even if the loader reports the load
    again."""
    values = [encode(_load(number)) for number in range(1, 2 * KEPT + 3)]
    for order in (values, values[::-1], [*values, *values]):
        ledger = Ledger()
        ledger.take(order)
        numbers = sorted(x.number for x in ledger.notes())
        assert numbers == list(range(KEPT + 3, 2 * KEPT + 3))


def test_a_load_is_read_as_it_was_told() -> None:
    """If a note about a load comes from another version and lacks one of the load's values, this
    value is unknown, and not 0."""
    assert load_of(_load(7)) == Load(7, LOGS, 1.5, 10, 9, 1, 2, 300, REJECTED_RECORD)
    names = ["dc1", "cid", "logs", "logs-id"]
    less = replace(_load(7), body={"source": names, "rows": -1, "files": True, "seconds": "3"})
    assert load_of(less) == Load(7, LOGS)
    for rejected in (7, [1, 2], [1, 2, -3], [1, 2, "3"], [1, 2, 3, 4]):
        other = replace(less, body={"source": names, "rejected": rejected})
        assert load_of(other) == Load(7, LOGS)
    for body in ({}, {"source": names[:3]}, {"source": [*names[:3], 4]}):
        assert load_of(replace(less, body=body)) is None


@pytest.mark.parametrize("producer", ["9" * 200, "007", "٣", "", "-1"])
def test_a_producer_that_is_no_agent_has_no_backlog(producer: str) -> None:
    """The ledger uses a note about a backlog only if the note's producer is an agent's id, in the
    form in which agents write their ids."""
    assert backlogs([replace(NOTE, producer=producer), NOTE]) == {7: (NOTE, backlog_of(NOTE))}


def test_old_notes_are_deleted() -> None:
    """When the ledger deletes old data, it also deletes old notes, even those of senders from which
    no other message came."""
    ledger = Ledger()
    newer = replace(NOTE, producer="8", time_ms=2_000)
    ledger.take([encode(NOTE), encode(newer)])
    ledger.prune([], 2_000)
    assert ledger.notes() == [newer]
