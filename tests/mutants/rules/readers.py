"""Mutants of two kinds of rules. The first kind are the checks that the loader and the counters
make when they read from brokers and mirrors. The second kind are the agent's rules about event
times. The agent's rules are necessary because Apache Kafka deletes records by their event times."""

from mutants.mutant import Mutant

_CONTINUITY = "tests/unit/audit/counter/test_continuity.py"
_COUNTER = "tests/unit/audit/counter/test_counter.py"
_RUNS = "tests/unit/audit/counter/test_batch_runs.py"
_FRAMES = "tests/unit/skidway/kafka/test_zstd_frames.py"
_CONNECTION = "tests/unit/agent/cluster/test_connection.py"
_PRESS = "tests/unit/agent/batches/test_press.py"
_COLUMNS = "tests/unit/skidway/kafka/test_columns.py"
_SLICE_LOAD = "tests/unit/loader/slices/test_slice_load.py"
_GAPS = "tests/unit/skidway/kafka/test_gaps.py"

MUTANTS: tuple[Mutant, ...] = (
    # A topic on Apache Kafka must have configs with which no record expires by its event time.
    # These mutants break this rule.
    Mutant(
        "a topic of Apache Kafka may have any retention.ms",
        "agent/cluster/connection.py",
        'for key in ("retention.ms", "message.timestamp.type"):',
        'for key in ("message.timestamp.type",):',
        (f"{_CONNECTION}::test_on_apache_kafka_nothing_may_expire_by_event_time",),
    ),
    Mutant(
        "topics are made on Apache Kafka with the retention of its brokers",
        "agent/cluster/connection.py",
        '    "retention.ms": "-1",\n',
        "",
        (f"{_CONNECTION}::test_on_apache_kafka_nothing_may_expire_by_event_time",),
    ),
    # If a line's event time is more than an hour later than the time at which the agent read the
    # line, the agent replaces the event time. These mutants break this rule.
    Mutant(
        "an event time is believed however far it is ahead",
        "agent/batches/press.py",
        "believed = stated & (event_ms >= 0) & (event_ms <= read_ms + AHEAD_MS_MAX)",
        "believed = stated & (event_ms >= 0)",
        (f"{_PRESS}::test_times_that_cannot_be_believed_are_those_of_reading",),
    ),
    Mutant(
        "an event time just an hour ahead is replaced",
        "agent/batches/press.py",
        "(event_ms <= read_ms + AHEAD_MS_MAX)",
        "(event_ms < read_ms + AHEAD_MS_MAX)",
        (f"{_PRESS}::test_times_that_cannot_be_believed_are_those_of_reading",),
    ),
    # Before the loader or a counter reads further, it must check that the last batch it has read is
    # unchanged. These mutants break this rule.
    Mutant(
        "a counter compares the offset of the batch below, and nothing else",
        "audit/counter/continuity.py",
        "    if identity(header) == position.below:\n",
        "    if position.below is not None and header.base_offset == position.below.base_offset:\n",
        (f"{_CONTINUITY}::test_another_batch_below_means_a_diverged_log",),
    ),
    Mutant(
        "a counter goes on where it stood without a look at the batch below",
        "audit/counter/continuity.py",
        "return Following(position, comparing=position.below is not None)",
        "return Following(position)",
        (
            f"{_CONTINUITY}::"
            "test_after_an_interruption_the_batch_below_is_compared_and_not_counted_again",
        ),
    ),
    Mutant(
        "the loader compares the offset of the batch below, and nothing else",
        "loader/planning/plan.py",
        """    if below is None or (header.base_offset, header.crc, header.leader_epoch) == (
        below.base_offset,
        below.crc,
        below.epoch,
    ):
""",
        """    if below is None or header.base_offset == below.base_offset:
""",
        (
            "tests/crash/loader/test_load.py::test_a_manifest_that_says_another_batch_is_a_divergence",
        ),
    ),
    # When a counter reports missing offsets, it must say whether the mirror has declared all of
    # them as gaps. These mutants break this rule.
    Mutant(
        "a gap counts as named where the mirror named a part of it",
        "skidway/kafka/gaps.py",
        "    if first >= end or not covers(here, partition, first, end):\n",
        "    if first >= end or not here:\n",
        (f"{_COUNTER}::test_a_hole_has_the_reason_that_the_mirror_gave",),
    ),
    Mutant(
        "the gaps of another partition name what is missing here",
        "skidway/kafka/gaps.py",
        "here = sorted(each for each in gaps if each.partition == partition)\n    if",
        "here = sorted(each._replace(partition=partition) for each in gaps)\n    if",
        (f"{_COUNTER}::test_a_hole_has_the_reason_that_the_mirror_gave",),
    ),
    Mutant(
        "a topic that is no mirror names gaps",
        "skidway/kafka/gaps.py",
        "    if not configs.get(CLUSTER_CONFIG) or not text:\n",
        "    if not text:\n",
        (f"{_GAPS}::test_only_mirrors_name_gaps",),
    ),
    # These mutants break the rule that batches are checked one by one, even if they are decoded
    # together.
    Mutant(
        "a record may reach from one batch into the next one",
        "skidway/kafka/record_bounds.py",
        "    if at != len(payload):\n",
        "    if at < 0:\n",
        (f"{_COLUMNS}::test_a_batch_has_the_records_of_its_own_bytes",),
    ),
    Mutant(
        "a record that ends with an origin may reach from one batch into the next one",
        "skidway/kafka/record_bounds.py",
        "    return ends if (ends[counts - 1] == np.cumsum(run.sizes)).all() else None\n",
        "    return ends\n",
        (f"{_COLUMNS}::test_a_batch_has_the_records_of_its_own_bytes",),
    ),
    Mutant(
        "what looks like an origin ends a record, whatever the record's length",
        "skidway/kafka/record_bounds.py",
        "            if (at + length == ends).all():",
        "            if len(at) == len(ends):",
        (f"{_COLUMNS}::test_values_may_look_like_origins",),
    ),
    Mutant(
        "batches that are decoded together have the first one's times",
        "skidway/kafka/record_decoding.py",
        "    found = np.repeat(run.base_timestamp, run.counts) + delta",
        "    found = run.base_timestamp[0] + delta",
        (f"{_COLUMNS}::test_batches_decoded_together_give_the_rows_of_each",),
    ),
    Mutant(
        "a loader passes over the damaged batch of a chunk",
        "loader/slices/chunk.py",
        "            self.damage = batches[sound].header, error\n"
        "            batches = batches[:sound]\n",
        "            batches = batches[:sound] + batches[sound + 1 :]\n",
        (f"{_SLICE_LOAD}::test_records_that_contradict_themselves_end_the_range",),
    ),
    Mutant(
        "a counter never fetches a partition again that could not be fetched once",
        "audit/counter/counter.py",
        "self._seek_again, self._failure = True, str(error)",
        "self._failure = str(error)",
        (f"{_COUNTER}::test_a_partition_that_cannot_be_fetched_is_named_in_health",),
    ),
    Mutant(
        "a counter passes over the damaged batch of a run",
        "audit/counter/batch_runs.py",
        "        raise damage from None\n",
        "        return\n",
        (f"{_COUNTER}::test_only_the_batches_before_a_damaged_one_are_counted",),
    ),
    Mutant(
        "a counter counts over a hole between two batches of one fetch",
        "skidway/kafka/run_unpacking.py",
        "_sound_headers(headers, sizes) & _follows(headers)",
        "_sound_headers(headers, sizes)",
        (f"{_COUNTER}::test_a_hole_has_the_reason_that_the_mirror_gave",),
    ),
    Mutant(
        "a counter believes every CRC but the first",
        "skidway/kafka/run_unpacking.py",
        "!= crcs[index]:",
        "!= crcs[index] and index == 0:",
        (f"{_RUNS}::test_runs_are_what_one_batch_after_the_other_gives",),
    ),
    Mutant(
        "a counter counts the markers of transactions",
        "skidway/kafka/run_unpacking.py",
        'filled = (headers["count"] > 0) & (headers["attributes"] & CONTROL == 0)',
        'filled = headers["count"] > 0',
        (
            f"{_RUNS}::test_runs_are_what_one_batch_after_the_other_gives",
            f"{_RUNS}::test_many_small_batches_are_one_run",
        ),
    ),
    Mutant(
        "a frame of one batch may go on in the next batch",
        "skidway/kafka/zstd_frames.py",
        "    known &= _filled(padded, size_at + size_bytes,",
        "    known |= _filled(padded, size_at + size_bytes,",
        (f"{_FRAMES}::test_a_frame_ends_with_its_piece",),
    ),
    Mutant(
        "frames that are damaged together are believed",
        "skidway/kafka/zstd_frames.py",
        "    return written == len(room)\n",
        "    return True\n",
        (f"{_FRAMES}::test_damaged_frames_do_not_fill_the_room",),
    ),
)
