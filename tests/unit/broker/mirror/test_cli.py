"""Tests the output and the exit status of the command `skidway mirror status`."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.broker.mirror.cli import details, exit_status, row, with_unserved


def source(**changes: Any) -> dict[str, Any]:
    return {
        "cluster": "dc1", "reachable": True, "partitions": 1, "lag": 0, "lag_unknown": 0,
        "checking": 0, "stopped_count": 0, "stopped": {}, "waiting_count": 0, "waiting": {},
        "unverifiable": {}, "unserved": {}, "missed": {}, "begin_again": {}, "left_out": {},
        "gap_count": 0, "gaps": {}, "last_failure": "", **changes,
    }  # fmt: skip


STOPPED = source(stopped_count=1, stopped={"dc1.logs-0": "diverged"})
AWAY = source(reachable=False)


@pytest.mark.parametrize(
    ("sources", "status"),
    [
        ([], 0),
        ([source()], 0),
        ([source(gaps={"dc1.logs-0": ["1-2 expired"]})], 0),
        ([source(), STOPPED], 1),
        ([AWAY, STOPPED], 1),
        ([source(unserved={"dc1.logs-0": "is not in any log directory"})], 1),
        ([source(), AWAY], 3),
        ([source(reachable=None)], 3),
    ],
)
def test_the_exit_status_is_what_is_worst(sources: list[dict[str, Any]], status: int) -> None:
    """The exit status of `skidway mirror status` is that of the worst source. It is 1 if the mirror
    has stopped copying a partition, or if the broker does not serve one, because a person must act.
    An unreachable source gives the status 3, because it may soon be reachable again. A gap is a
    range of offsets that the mirror has recorded as missing; it does not change the status."""
    assert exit_status(sources) == status


def test_every_name_has_its_reason() -> None:
    """`skidway mirror status` prints a line for each partition or topic with a problem. The line
    has the kind of problem (for example "stopped"), the source, the name of the partition or topic,
    and the reason."""
    told = details(
        [
            source(
                stopped={"dc1.a-0": "diverged"}, unserved={"dc1.f-0": "lost"},
                waiting={"dc1.b-0": "the log refused a write"},
                left_out={"c": "too long"}, unverifiable={"dc1.d-0": 7},
                gaps={"dc1.e-1": ["3-9 expired", "12-13 missing-in-source"]},
            )
        ]
    )  # fmt: skip
    assert told == [
        "stopped: dc1: dc1.a-0: diverged",
        "unserved: dc1: dc1.f-0: lost",
        "waiting: dc1: dc1.b-0: the log refused a write",
        "left out: dc1: c: too long",
        "unverifiable: dc1: dc1.d-0: below offset 7",
        "gaps: dc1: dc1.e-1: 3-9 expired, 12-13 missing-in-source",
    ]


def test_what_is_stopped_shows_what_is_missed_and_the_command() -> None:
    """For a topic or partition that is stopped, `skidway mirror status` prints how many records the
    mirror may miss, and the command after which the mirror begins the topic again. It prints no
    command for a topic that is no mirror, because this command deletes the topic."""
    told = details(
        [
            source(
                stopped={"dc1.a": "made again", "dc1.b": "no mirror"},
                missed={"dc1.a": 53, "dc1.b": 0},
                begin_again={"dc1.a": "skidway topics delete dc1.a"},
            )
        ]
    )
    assert told == [
        "stopped: dc1: dc1.a: made again",
        "missed: dc1: dc1.a: up to 53 records of dc1",
        "to begin again: dc1: dc1.a: load what is here, then `skidway topics delete dc1.a`",
        "stopped: dc1: dc1.b: no mirror",
        "missed: dc1: dc1.b: up to 0 records of dc1",
    ]


def test_a_source_that_does_not_answer_comes_first() -> None:
    """If a source does not answer, `skidway mirror status` first prints since when and why. The lag
    is then unknown, because nobody knows what the source has by now."""
    gone = source(reachable=False, last_failure="b1:9092: refused", away_since_ms=61_500)
    assert details([source(stopped={"dc1.a-0": "diverged"}), gone]) == [
        "away: Cluster dc1 does not answer since 1970-01-01T00:01:01Z: b1:9092: refused",
        "stopped: dc1: dc1.a-0: diverged",
    ]
    assert (row(gone)["lag"], row(source(lag_unknown=1))["lag"]) == ("unknown", "0+")


def test_a_partition_that_the_broker_does_not_serve_is_no_good_mirror() -> None:
    """If the broker has lost a disk, `skidway mirror status` shows which partitions of mirror
    topics the broker no longer serves. It does not show lost partitions of topics that are not
    mirrors."""
    document = {
        "mirrors": [source(), source(cluster="dc2")],
        "stopped_partitions": {"dc1.logs-0": "lost", "own-0": "lost", "dc12.logs-0": "lost"},
    }
    first, second = with_unserved(document)
    assert (first["unserved"], second["unserved"]) == ({"dc1.logs-0": "lost"}, {})
    assert with_unserved({}) == []
