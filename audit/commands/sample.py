"""`skidway audit sample`: compares the content of rows and records with samples. For a sample, an
agent has read randomly chosen lines again and computed checksums of their records."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from skidway.audit.commands import options, publication, tracing_options
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.reports.topic_names import is_named, with_rejects
from skidway.audit.sampling import sample_report, told
from skidway.audit.sampling.survey import survey
from skidway.audit.sampling.told import Told
from skidway.audit.sampling.wanted import wanted_of
from skidway.audit.topic.messages import encode
from skidway.audit.topic.sample_result import DAY_MS
from skidway.cli.moments import parse_moment
from skidway.cli.output import print_json, print_lines, table
from skidway.clock import SystemClock
from skidway.errors import UsageError
from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.client import RegistryRefused
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import SchemaUnsupported
from skidway.schemas.consuming.asking import registry


def register(verbs: Any) -> None:
    """Adds the verb `sample`."""
    words = "compare the content of rows with samples of the lines on the hosts; 1 if it differs"
    parser = verbs.add_parser("sample", help=words, description=f"{words}.")
    tracing_options.add_where(parser)
    parser.add_argument(
        "--day",
        metavar="DAY",
        help="samples of what was delivered on this day (UTC): 2026-01-31; by default, of yesterday"
        " and today",
    )
    parser.add_argument(
        "--tell", action="store_true", help="tell the collector, which then judges the buckets"
    )
    parser.set_defaults(run=_sample)


def _sample(args: argparse.Namespace) -> int:
    clock = SystemClock()
    since_ms, until_ms = _span(args.day, clock.time_ms())
    with tracing_options.opened(args, clock, socket.gethostname(), _topics) as site:
        if not site.clusters:
            raise UsageError("Samples are in audit topics: name --bootstrap-server or --cluster.")
        known = Told()
        for cluster in site.clusters:
            told.read(cluster.client, cluster.name, clock, since_ms, until_ms, known)
        wanted = [x for x in wanted_of(known.samples.values()) if _is_asked(args, x.part.source)]
        found = survey(site, wanted, _codec_of(args))
        earlier = site.evidence.sample_results()
    gone = [each for each in known.samples.values() if each.gone]
    if args.tell:
        output, host = "" if site.output is None else site.output.url, socket.gethostname()
        results = sample_report.results(found, known, earlier, clock.time_ms(), host, output)
        values = [encode(each) for each in results]
        publication.say(args, options.settings_of(args), values, clock, "what the samples showed")
    if args.json:
        print_json(sample_report.document(found, gone, known))
    else:
        table(sample_report.table(found), sample_report.COLUMNS)
        print_lines(
            [*sample_report.lines(found, gone, known), sample_report.sentence(found, known)]
        )
    return 0 if sample_report.is_good(found) else 1


def _span(day: str | None, now_ms: int) -> tuple[int, int]:
    """Returns a span of time: the day `day` or, if it is None, yesterday and today up to now. The
    command compares the samples whose periods begin in this span. Raises UsageError if `day` is not
    a day."""
    if day is None:
        return now_ms - now_ms % DAY_MS - DAY_MS, now_ms
    try:
        datetime.strptime(day, "%Y-%m-%d")  # noqa: DTZ007 - parse_moment takes it as UTC
    except ValueError as error:
        raise UsageError(f"--day {day!r} is not a day like 2026-01-31.") from error
    begin = parse_moment(day, now_ms, "--day")
    return begin, begin + DAY_MS


def _topics(ledger: Ledger) -> Collection[str]:
    return {each.topic for each in ledger.topics()}


def _is_asked(args: argparse.Namespace, source: Any) -> bool:
    return args.topic is None or is_named(source, with_rejects(args.topic))


def _codec_of(args: argparse.Namespace) -> Callable[[int], Codec | str]:
    """Returns a function that gets a schema id, and returns the codec of this schema or, if the
    schema cannot be used, a sentence that says why. The function raises Unreachable if the registry
    does not answer."""
    client, _ = registry(args)
    known: dict[int, Codec | str] = {}

    def codec_of(schema_id: int) -> Codec | str:
        if schema_id not in known:
            try:
                known[schema_id] = Codec(client.schema(schema_id))
            except (RegistryRefused, SchemaInvalid, SchemaUnsupported) as error:
                known[schema_id] = f"the schema {schema_id} cannot be used: {error}"
        return known[schema_id]

    return codec_of
