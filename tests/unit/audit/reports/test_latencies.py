"""Tests how long after the end of a bucket each place (cluster or output) first had all records of
the bucket."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.audit.reports.latencies import Arrival, arrivals_in, documents, latencies_ms
from skidway.audit.topic.messages import Tier
from support.fold import judge
from support.one_bucket import END, NOW, POLICY, good


def latencies(**arrivals: Arrival) -> dict[str, int | None]:
    [verdict] = judge(good(), POLICY, NOW)
    places = {x.tier.value.lower(): (x.tier, x.name) for x in verdict.places()}
    found = latencies_ms(verdict, {places[name]: x for name, x in arrivals.items()})
    return {place.tier.value.lower(): ms for place, ms in found.items()}


def test_a_latency_counts_from_the_end_of_the_bucket() -> None:
    """The latency of a place is the time from the end of the bucket until the place had all records
    of the bucket. It is negative if the place had all records before the end of the bucket. It is
    None if the collector has not noted when the place got all records."""
    found = latencies(broker=Arrival(5, END - 7), hdfs=Arrival(5, END + 90))
    assert found == {"agent": None, "broker": -7, "mirror": None, "hdfs": 90}


def test_an_arrival_of_another_count_says_nothing() -> None:
    """An arrival says how many records a place has, and since when. If this number is not the count
    in the verdict, the latency is not known."""
    found = latencies(broker=Arrival(4, END), mirror=Arrival(6, END), hdfs=Arrival(5, END))
    assert found == {"agent": None, "broker": None, "mirror": None, "hdfs": 0}


def test_arrivals_are_read_from_an_answer() -> None:
    """An arrival says how many records a place has, and since when. From a collector's answer, a
    command reads exactly the arrivals that the collector's store has."""
    arrivals = {(Tier.HDFS, "/logs"): Arrival(5, END), (Tier.AGENT, ""): Arrival(6, END + 1)}
    assert arrivals_in(documents(arrivals)) == arrivals


@pytest.mark.parametrize(
    "answer",
    [None, [], 7, [7], [{}], [{"tier": 1, "place": "", "records": 1, "time_ms": 1}],
     [{"tier": "hdfs", "place": "", "records": "x", "time_ms": 1}]],
)  # fmt: skip
def test_an_answer_that_is_not_understood_has_no_arrivals(answer: Any) -> None:
    """An arrival says how many records a place has, and since when. If a collector's answer does
    not have the expected form, for example because the collector has another version, a command
    reads no arrivals from the answer."""
    assert arrivals_in(answer) == {}
