"""A dump may be written by Skidway, kafka-console-consumer or kcat. The same records are read from
all three forms."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas.dump.records import (
    DumpRefused,
    Record,
    console_line,
    key_text,
    line,
    read_lines,
    record,
    value_text,
)

texts = st.text(max_size=8)
documents = st.dictionaries(
    texts, st.recursive(st.none() | st.integers() | texts, st.lists, max_leaves=4), max_size=4
)
records = st.builds(
    lambda key, kind, value: Record({**key, "keytype": kind}, value),
    documents,
    texts,
    st.none() | documents,
)


@given(st.lists(records, max_size=4))
def test_lines_give_back_their_records(wanted: list[Record]) -> None:
    """A dump may have the form of Skidway, of kafka-console-consumer or of kcat. Records that are
    written in any of these forms and read again are the same, whatever characters they contain."""
    kcat = [
        json.dumps({"offset": 1, "key": key_text(each), "payload": value_text(each)})
        for each in wanted
    ]
    assert list(read_lines([line(each) + "\n" for each in wanted])) == wanted
    assert list(read_lines([console_line(each) + "\n" for each in wanted])) == wanted
    assert list(read_lines(kcat)) == wanted


def test_a_byte_order_mark_is_no_part_of_a_dump() -> None:
    """A dump that begins with a byte order mark is read as without it."""
    wanted = Record({"keytype": "NOOP", "magic": 0}, None)
    assert list(read_lines(["\ufeff" + line(wanted) + "\n"])) == [wanted]
    assert list(read_lines(["\ufeff" + console_line(wanted) + "\n"])) == [wanted]


def test_what_the_console_consumer_can_print_besides_is_passed_over() -> None:
    """In the output of kafka-console-consumer, blank lines and the last line with the number of
    messages are skipped. A time, partition and offset before a key are skipped, too."""
    lines = [
        'CreateTime:1700000000000\tPartition:0\tOffset:3\t{"keytype":"NOOP","magic":0}\tnull\n',
        "\n",
        "Processed a total of 1 messages\n",
    ]
    assert list(read_lines(lines)) == [Record({"keytype": "NOOP", "magic": 0}, None)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"subject": "s"}', "has no key"),
        ('{"keytype":"NOOP"} {"a":1}', "its line is no JSON"),
        ('{"keytype":"NOOP"}\t1\t2', "a tab between them"),
        ("no json\tnull", "its key is no JSON"),
        ('{"magic":0}\tnull', "has no keytype"),
        ('{"keytype":"NOOP"}\t[1]', "no JSON object"),
        ('{"keytype":"NOOP"}\t{"a"', "its value is no JSON"),
        ("[" * 100_000, "its line is no JSON"),
    ],
)
def test_what_is_no_dump_is_refused_by_its_line(text: str, words: str) -> None:
    """A line of a dump that is not a record is refused, and the error has the number of the
    line."""
    with pytest.raises(DumpRefused, match="Line 2") as caught:
        list(read_lines(['{"keytype":"NOOP","magic":0}\tnull', text]))
    assert words in str(caught.value)


def test_a_topic_without_keys_is_refused() -> None:
    """A record of a dump without a key is refused, because only the key contains the subject and
    the version."""
    with pytest.raises(DumpRefused, match="Offset 4 of _schemas has no key"):
        record(None, b"{}", "Offset 4 of _schemas")
