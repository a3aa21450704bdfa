"""Tests the options of queries: their names, their values, and combinations that are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skidway.errors import UsageError
from skidway.loader.datasource import options
from skidway.loader.datasource.options import NAMES, Options
from skidway.loader.datasource.positions import EARLIEST
from skidway.schemas.client import Security

ROOT = Path(__file__).parents[4]
LEAST = {"kafka.bootstrap.servers": "b:1", "subscribe": "logs"}


def of(**more: str) -> Options:
    return Options.of(LEAST | {key.replace("__", "."): value for key, value in more.items()})


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    """As in Spark's Kafka source, a query without further options fails on lost data, and has no
    bounds and no extra columns."""
    found = of()
    assert (found.kafka.bootstrap_servers, found.topics, found.pattern) == ("b:1", ("logs",), None)
    assert (found.starting, found.ending, found.since_ms, found.until_ms) == (None,) * 4
    assert found.fail_on_data_loss
    assert (found.with_headers, found.with_places, found.skip_undecodable) == (False,) * 3
    assert (found.offsets_per_trigger, found.records_per_partition) == (None, 400_000)


def test_names_do_not_depend_on_case() -> None:
    """The names of options may be in upper or lower case, as always in Spark."""
    found = of(STARTINGOFFSETS="Earliest", failondataloss="FALSE", includeheaders="True")
    assert (found.starting, found.fail_on_data_loss, found.with_headers) == (EARLIEST, False, True)


def test_several_topics_are_separated_by_commas() -> None:
    """In a list of topics, spaces around a name are ignored, and a topic that is listed twice is
    read once."""
    assert of(subscribe="b, a,b,").topics == ("b", "a")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"topic": "logs"}, "has no option topic; it has kafka.bootstrap.servers, subscribe"),
        ({"subscribe": ""}, "needs one of the options subscribe and subscribePattern"),
        ({"subscribePattern": "a"}, "needs one of the options subscribe and subscribePattern"),
        ({"kafka__bootstrap__servers": ""}, "needs the option kafka.bootstrap.servers"),
        ({"subscribe": "", "subscribePattern": "("}, "subscribePattern: '\\(' is no regular"),
        ({"startingOffsets": "now"}, "startingOffsets is earliest, latest, or JSON"),
        ({"startingOffsets": '{"a": 1}'}, "a is no object of partitions"),
        ({"startingOffsets": '{"a": {"x": 1}}'}, "a has no partition 'x'"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "-3 is no offset"),
        ({"startingOffsets": '{"a": {"0": true}}'}, "True is no offset"),
        ({"startingOffsets": '{"a": {"id": 5}}'}, "the id of a is no text"),
        ({"startingOffsets": "[]"}, "it is no object of topics"),
        ({"endingOffsets": "earliest"}, "endingOffsets is latest or JSON, not earliest"),
        ({"startingTimestamp": "-5"}, "startingTimestamp is a number of at least 0, not '-5'"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is a number of at least 1"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss is true or false, not 'no'"),
        ({"undecodable": "drop"}, "undecodable is fail or skip, not 'drop'"),
    ],
)
def test_a_bad_option_gets_one_sentence(given: dict[str, str], sentence: str) -> None:
    """A query is refused if an option is unknown, if a required option is missing, or if an option
    has an invalid value. The error names the option."""
    with pytest.raises(UsageError, match=sentence):
        of(**given)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    """An option that says where a query ends is refused for a stream."""
    value = {"endingOffsets": "latest", "endingTimestamp": "5"}[name]
    with pytest.raises(UsageError, match=f"option {name}: a stream has no end"):
        of(**{name: value}).check_stream()
    of().check_stream()


def test_the_registry_may_ask_for_credentials() -> None:
    """The registry's files of user, password and certificates are set with Confluent's names,
    and are passed to the registry's client."""
    found = of(
        schema__registry__basic__auth__user__info__location="/me",
        schema__registry__ssl__ca__location="/ca.pem",
    )
    assert found.registry.security == Security(Path("/me"), Path("/ca.pem"), None, None)


def test_every_option_is_explained() -> None:
    """Two tables list every option: the table in the docstring of the module `options`, and the
    table in docs/spark.md."""
    for page in (options.__doc__ or "", (ROOT / "docs/spark.md").read_text()):
        cells = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
        words = [
            word for cell in cells for word in re.findall(r"[\w.]+(?:\{[a-z,]+\}\.\w+)?", cell)
        ]
        named = {each for word in words for each in spelt_out(word)}
        assert set(NAMES) <= named


def spelt_out(word: str) -> list[str]:
    """Returns the option names that a text with braces stands for. For example,
    `ssl.{ca,key}.location` stands for two options."""
    before, _, rest = word.partition("{")
    choices, _, after = rest.partition("}")
    return [before + each + after for each in choices.split(",")]
