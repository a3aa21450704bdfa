"""Says how long after the end of a bucket each place (for example a cluster of brokers) first had
all records of the bucket, without I/O.

The collector notes each place's present count of a bucket, and since when the place has had this
count (`Arrival`). Let N be the count of the place with the most records. The latency of a place is
known only if the place has N records in the verdict, and its arrival also has the count N. (If the
arrival has another count, the arrival is older or newer than the verdict.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from skidway.audit.judgement.verdict import BucketVerdict, Place
from skidway.audit.topic.messages import Tier


class Arrival(NamedTuple):
    """The number of records of a bucket that a place has, and since when it has had this number."""

    records: int
    time_ms: int


ByPlace = Mapping[tuple[Tier, str], Arrival]
"""The arrivals of one bucket, by tier and name of the place."""


def latencies_ms(verdict: BucketVerdict, arrivals: ByPlace) -> dict[Place, int | None]:
    """Returns for each place of a bucket how many ms after the bucket's end the place first had all
    records; negative if the place had them before the end, None if this is not known.
    """
    places = verdict.places()
    most = max((sums.count for sums in places.values() if sums is not None), default=0)
    end_ms = verdict.bucket + verdict.bucket_ms
    found: dict[Place, int | None] = dict.fromkeys(places)
    for place, sums in places.items():
        arrival = arrivals.get((place.tier, place.name))
        if sums is not None and arrival is not None and sums.count == most == arrival.records:
            found[place] = arrival.time_ms - end_ms
    return found


def documents(arrivals: ByPlace) -> list[dict[str, Any]]:
    """The arrivals of a bucket as JSON."""
    return [
        {"tier": tier.value.lower(), "place": place, "records": x.records, "time_ms": x.time_ms}
        for (tier, place), x in arrivals.items()
    ]


def arrivals_in(found: Any) -> dict[tuple[Tier, str], Arrival]:
    """Reads the arrivals from a collector's answer, which has them in the form that `documents`
    returns. Returns no arrivals if there are none, or if their form is unknown: the collector may
    be of another version.
    """
    try:
        return {
            (Tier(x["tier"].upper()), str(x["place"])): Arrival(
                int(x["records"]), int(x["time_ms"])
            )
            for x in found or ()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
