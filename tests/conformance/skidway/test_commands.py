"""The commands `skidway topics`, `skidway produce` and `skidway consume` work with Apache Kafka."""

from __future__ import annotations

import json

import pytest

from support.kafka import ApacheKafka, topic_name
from support.processes import free_port, run_skidway

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def topic(apache_kafka: ApacheKafka) -> str:
    """A topic with three partitions."""
    name = topic_name("commands")
    made = run_skidway(
        "topics",
        "create",
        name,
        "--partitions",
        "3",
        "--topic-config",
        "retention.ms=-1",
        "--bootstrap-server",
        apache_kafka.address,
    )
    assert made.returncode == 0, made.stderr
    return name


def test_topics_are_made_listed_described_and_deleted(
    apache_kafka: ApacheKafka, topic: str
) -> None:
    """`skidway topics` creates, lists, describes and deletes topics. If a topic does not exist, or
    cannot be created because it exists already, the error says so."""
    at = ("--bootstrap-server", apache_kafka.address)
    listed = json.loads(run_skidway("topics", "list", "--json", *at).stdout)
    assert {"topic": topic, "partitions": 3, "replicas": 1} in listed
    (described,) = json.loads(run_skidway("topics", "describe", topic, "--json", *at).stdout)
    assert described["configs"]["retention.ms"] == "-1"
    assert [row["high_watermark"] for row in described["partitions"]] == [0, 0, 0]
    assert "retention.ms = -1" in run_skidway("topics", "describe", topic, *at).stdout
    again = run_skidway("topics", "create", topic, *at)
    assert again.returncode == 1
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert run_skidway("topics", "create", topic, "--if-not-exists", *at).returncode == 0
    deleted = run_skidway("topics", "delete", topic, "never-was", "--yes", *at)
    assert deleted.returncode == 1
    assert f"deleted {topic}" in deleted.stdout
    assert "never-was: UNKNOWN_TOPIC_OR_PARTITION" in deleted.stderr
    gone = run_skidway("topics", "describe", "never-was", *at)
    assert gone.returncode == 1
    assert "there is no topic never-was" in gone.stderr


def test_lines_come_back_as_they_were_sent(apache_kafka: ApacheKafka, topic: str) -> None:
    """`skidway produce` makes one record of every line, including blank lines. A line may end with
    CRLF or LF, and the last line may have no line terminator."""
    at = ("--bootstrap-server", apache_kafka.address, "--topic", topic, "--partition", "1")
    sent = run_skidway("produce", *at, input_text="one\r\n\nzażółć\nlast")
    assert sent.returncode == 0, sent.stderr
    assert sent.stderr == f"4 lines acknowledged in {topic}\n"
    got = run_skidway("consume", *at, "--from-beginning", "--max", "4")
    assert got.stdout == "one\n\nzażółć\nlast\n", got.stderr
    got = run_skidway("consume", *at, "--offset", "2", "--max", "1", "--json")
    document = json.loads(got.stdout)
    assert document.pop("timestamp") > 1_600_000_000_000
    assert document == {
        "topic": topic,
        "partition": 1,
        "offset": 2,
        "key": None,
        "value": "zażółć",
        "origin": None,
    }


def test_keys_decide_the_partition_and_keep_their_order(
    apache_kafka: ApacheKafka, topic: str
) -> None:
    """`skidway produce` sends all lines with the same key to one partition and keeps their
    order."""
    at = ("--bootstrap-server", apache_kafka.address, "--topic", topic)
    lines = "".join(f"k{number % 7}:v{number}\n" for number in range(700))
    assert run_skidway("produce", *at, "--key-separator", ":", input_text=lines).returncode == 0
    got = run_skidway("consume", *at, "--from-beginning", "--max", "700", "--json")
    rows = [json.loads(line) for line in got.stdout.splitlines()]
    for key in range(7):
        mine = [row for row in rows if row["key"] == f"k{key}"]
        assert len({row["partition"] for row in mine}) == 1
        assert [row["value"] for row in mine] == [f"v{number}" for number in range(key, 700, 7)]
    assert len({row["partition"] for row in rows}) > 1


def test_consume_ends_when_nothing_comes(apache_kafka: ApacheKafka, topic: str) -> None:
    """With --timeout, `skidway consume` ends without an error if no record comes in this time."""
    at = ("--bootstrap-server", apache_kafka.address, "--topic", topic)
    ended = run_skidway("consume", *at, "--from-beginning", "--timeout", "1")
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("produce",), 2, "--topic"),
        (("consume", "--topic", "{topic}", "--partition", "3"), 2, "partitions 0 to 2 only"),
        (("consume", "--topic", "{topic}", "--offset", "1"), 2, "--offset needs one --partition"),
        (("consume", "--topic", "{topic}", "--partition", "0", "--offset", "9"), 1, "offset 9"),
        (("consume", "--topic", "never-was"), 1, "there is no topic never-was"),
        (("produce", "--topic", "{topic}", "--key-separator", ":"), 2, "line 2 has no ':'"),
        (("topics", "create", "a b"), 1, "INVALID_TOPIC_EXCEPTION"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    apache_kafka: ApacheKafka, topic: str, arguments: tuple[str, ...], status: int, words: str
) -> None:
    """If a command line or the input contains a mistake, the command says so in one sentence. It
    exits with status 2 if the command is used wrongly, and with status 1 if the broker refuses the
    request, or does not have the topic or the offset.
    """
    given = [argument.format(topic=topic) for argument in arguments]
    refused = run_skidway(*given, "--bootstrap-server", apache_kafka.address, input_text="a:1\nb\n")
    assert (refused.returncode, words in refused.stderr) == (status, True), refused.stderr


def test_unreachable_broker_is_status_3() -> None:
    """If the broker cannot be reached, `skidway topics list` prints the broker's address and exits
    with status 3."""
    refused = run_skidway("topics", "list", "--bootstrap-server", f"127.0.0.1:{free_port()}")
    assert refused.returncode == 3
    assert "127.0.0.1" in refused.stderr
