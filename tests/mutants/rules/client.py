"""Mutants of the client. They concern how the client fetches, finds the leaders of partitions,
encodes records, orders the batches that it produces, and reads as a consumer of a group."""

from mutants.mutant import Mutant

_MODEL = "tests/model/test_producer.py::test_order_holds_under_any_schedule"
_OUTBOX = "tests/unit/skidway/kafka/client/test_outbox.py"
_DISPATCH = "tests/unit/skidway/kafka/client/test_dispatch.py"
_FETCHING = "tests/unit/skidway/kafka/client/test_fetching.py"
_INTERRUPTIONS = "tests/unit/skidway/kafka/client/test_interruptions.py"
_CREATION = "tests/unit/skidway/kafka/client/test_topic_creation.py"
_METADATA = "tests/unit/skidway/kafka/client/test_metadata.py"
_BINDING = "tests/unit/skidway/kafka/client/test_producer_binding.py"
_BATCH = "tests/unit/skidway/kafka/test_batch.py"
_STREAM = "tests/unit/skidway/consumer/test_stream.py"
_PARTITIONING = "tests/unit/skidway/kafka/test_partitioning.py"

MUTANTS: tuple[Mutant, ...] = (
    # These mutants break the rules that keep batches in order under retries, refusals and crashes.
    # Only one batch may be in flight until the broker knows the producer. After that, up to five
    # batches may be in flight.
    Mutant(
        "five are in flight before the first is acknowledged",
        "skidway/kafka/client/outbox.py",
        "if not self._is_known or _is_old(self._acked_event_ms, wall_ms):",
        "if _is_old(self._acked_event_ms, wall_ms):",
        (_MODEL,),
    ),
    Mutant(
        "a new identity is taken before all that is in flight is answered",
        "skidway/kafka/client/outbox.py",
        "if self._draining and not any(each.state is BatchState.SENT for each in self._flight):",
        "if self._draining and self._flight[0].state is not BatchState.SENT:",
        (_MODEL,),
    ),
    Mutant(
        "five are in flight though records of the last batch are old",
        "skidway/kafka/client/outbox.py",
        "if not self._is_known or _is_old(self._acked_event_ms, wall_ms):",
        "if not self._is_known:",
        (_MODEL, f"{_OUTBOX}::test_old_event_times_go_one_by_one"),
    ),
    Mutant(
        "of batches to be sent again the last goes first",
        "skidway/kafka/client/outbox.py",
        "next((each for each in self._flight if each.state is BatchState.UNSENT), None)",
        "next((each for each in reversed(self._flight) if each.state is BatchState.UNSENT), None)",
        (f"{_OUTBOX}::test_a_retry_is_the_same_bytes", _MODEL),
    ),
    Mutant(
        "behind a refused batch the identity stays",
        "skidway/kafka/client/outbox.py",
        "            self.generation_wanted = self._identity.generation + 1\n",
        "            self.generation_wanted = self._identity.generation\n",
        (f"{_OUTBOX}::test_a_lost_identity_drains_and_begins_again", _MODEL),
    ),
    Mutant(
        "what stands behind a batch that was refused for good is sent without it",
        "skidway/kafka/client/outbox.py",
        """        self._queue = deque(entries[:refused])
        self._doomed.extendleft(reversed(entries[refused:]))
""",
        """        self._queue = deque([*entries[:refused], *entries[refused + 1 :]])
        self._doomed.extendleft(reversed(entries[refused : refused + 1]))
""",
        (f"{_OUTBOX}::test_refused_for_good_goes_back_with_all_behind", _MODEL),
    ),
    Mutant(
        "five are in flight behind a lost connection",
        "skidway/kafka/client/outbox.py",
        "        entry.state, self._is_known = BatchState.UNSENT, False\n",
        "        entry.state = BatchState.UNSENT\n",
        (_OUTBOX, _MODEL),
    ),
    Mutant(
        "another leader is taken for one that knows us",
        "skidway/kafka/client/outbox.py",
        "if address != self._address or idle_ms > IDLE_S * 1000:",
        "if idle_ms > IDLE_S * 1000:",
        (f"{_OUTBOX}::test_a_leader_that_moves_between_two_batches_is_like_the_beginning", _MODEL),
    ),
    Mutant(
        "an hour idle is told by the monotonic clock alone",
        "skidway/kafka/client/outbox.py",
        "idle_ms = max((now - self._acked_at) * 1000, wall_ms - self._acked_wall_ms)",
        "idle_ms = (now - self._acked_at) * 1000",
        (f"{_OUTBOX}::test_an_hour_that_a_host_slept_is_an_hour_idle", _MODEL),
    ),
    Mutant(
        "a retry gets a sequence of its own",
        "skidway/kafka/client/outbox.py",
        "        if entry.header is None:\n            entry.header",
        "        if entry.header is None or entry.attempts:\n            entry.header",
        (f"{_OUTBOX}::test_a_retry_is_the_same_bytes", _MODEL),
    ),
    Mutant(
        "sequences count batches",
        "skidway/kafka/client/outbox.py",
        "self._sequence = next_sequence(sequence, encoded.count)",
        "self._sequence = next_sequence(sequence, 1)",
        (f"{_OUTBOX}::test_sequences_count_records", _MODEL),
    ),
    Mutant(
        "acknowledgements are told as they come, over holes",
        "skidway/kafka/client/outbox.py",
        """        while self._flight and self._flight[0].state is BatchState.ACKED:
            entry = self._flight.popleft()
""",
        """        for entry in [each for each in self._flight if each.state is BatchState.ACKED]:
            self._flight.remove(entry)
""",
        (f"{_OUTBOX}::test_acknowledgements_are_contiguous", _MODEL),
    ),
    Mutant(
        "a duplicate is an error of the batch",
        "skidway/kafka/client/outbox.py",
        "ACKNOWLEDGED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})",
        "ACKNOWLEDGED = frozenset({ErrorCode.NONE})",
        (f"{_OUTBOX}::test_a_duplicate_is_acknowledged",),
    ),
    Mutant(
        "a batch is sealed under an identity that its partition has lost",
        "skidway/kafka/client/dispatch.py",
        "if self._identity is None or self._identity.generation < outbox.generation_wanted:",
        "if self._identity is None:",
        (f"{_DISPATCH}::test_a_new_identity_is_for_who_needs_it", _MODEL),
    ),
    Mutant(
        "a batch that the broker's answer leaves out counts as acknowledged",
        "skidway/kafka/client/dispatch.py",
        "missing = ProduceResult(*tp, ErrorCode.UNKNOWN_SERVER_ERROR, -1)",
        "missing = ProduceResult(*tp, ErrorCode.NONE, -1)",
        (f"{_DISPATCH}::test_a_batch_left_out_of_the_answer_is_sent_again",),
    ),
    Mutant(
        "sequences begin anew one too early",
        "skidway/kafka/batch.py",
        "SEQUENCE_END = 1 << 31  # sequences",
        "SEQUENCE_END = (1 << 31) - 1  # sequences",
        (f"{_BATCH}::test_sequences_wrap",),
    ),
    Mutant(
        "batches of a topic go to another one that has its name by now",
        "skidway/kafka/client/producer.py",
        "return None if self._is_another(tp.topic) else picture.leader(tp)",
        "return picture.leader(tp)",
        (f"{_BINDING}::test_a_topic_made_again_takes_nothing_that_was_for_the_one_before",),
    ),
    # These mutants concern the batches that a fetcher returns, and their order.
    Mutant(
        "batches are given that were fetched before the last seek",
        "skidway/kafka/client/fetching.py",
        "current = reading is not None and reading.generation == ready.generation",
        "current = reading is not None",
        (f"{_FETCHING}::test_what_was_sought_meanwhile_is_dropped",),
    ),
    Mutant(
        "an answer to a question from before a seek is taken",
        "skidway/kafka/client/fetching.py",
        """            reading = self._readings.get(tp)
            if reading is not None and reading.generation == generation:
                self._take_part""",
        """            reading = self._readings.get(tp)
            if reading is not None and generation >= 0:
                self._take_part""",
        (f"{_FETCHING}::test_what_was_sought_meanwhile_is_dropped",),
    ),
    Mutant(
        "the position moves when a batch is fetched, not when it is taken",
        "skidway/kafka/client/fetching.py",
        "        reading.next_offset, reading.max_bytes = end, self._max_bytes\n",
        """        reading.next_offset = reading.position = end
        reading.max_bytes = self._max_bytes
""",
        (f"{_FETCHING}::test_positions_move_when_batches_are_taken",),
    ),
    Mutant(
        "batches whose offsets do not rise are taken",
        "skidway/kafka/client/fetching.py",
        "            _check_order(header, end if found else 0)\n",
        "",
        (f"{_FETCHING}::test_offsets_that_do_not_rise_are_damage",),
    ),
    Mutant(
        "another connection to the same broker continues the one before",
        "skidway/kafka/client/fetching.py",
        "watermark, unbroken = part.high_watermark, reading.place == place",
        "watermark, unbroken = part.high_watermark, (reading.place or place)[0] == place[0]",
        (f"{_INTERRUPTIONS}::test_another_connection_breaks_though_no_fetch_was_lost",),
    ),
    Mutant(
        "a fetch that was lost interrupts nothing",
        "skidway/kafka/client/fetching.py",
        """            self._note_refusal(tp, now, why)
            self._interrupt(tp, why)
""",
        """            self._note_refusal(tp, now, why)
""",
        (f"{_INTERRUPTIONS}::test_a_lost_fetch_is_told_at_once",),
    ),
    Mutant(
        "the error of a partition waits until the other partitions are idle",
        "skidway/kafka/client/fetcher.py",
        "self._fetching.take(), self._fetching.error_count",
        "self._fetching.take(), 0",
        (
            "tests/unit/skidway/kafka/client/test_fetching.py::"
            "test_an_error_of_a_partition_does_not_wait_until_the_others_are_idle",
        ),
    ),
    Mutant(
        "a damaged batch is taken for one before the wanted offset",
        "skidway/kafka/client/fetching.py",
        "                check(records, at, header)  # a damaged header may hide wanted records\n",
        "",
        (
            "tests/unit/skidway/kafka/client/test_fetching.py::"
            "test_a_damaged_batch_is_not_taken_for_an_earlier_one",
        ),
    ),
    Mutant(
        "a loop that stood still goes on as if no time had passed",
        "skidway/kafka/client/following.py",
        "        if now - self._called_at > STOOD_STILL_S:\n",
        "        if self._called_at - now > STOOD_STILL_S:\n",
        (f"{_INTERRUPTIONS}::test_a_loop_that_stood_still_is_an_interruption",),
    ),
    # This mutant concerns the consumer.
    Mutant(
        "a consumer never reads a partition again that could not be read once",
        "skidway/consumer/reader.py",
        """            self._fetch_again()
            raise
""",
        """            raise
""",
        (
            f"{_STREAM}::test_a_damaged_batch_is_not_passed_over",
            f"{_STREAM}::test_a_refused_partition_is_fetched_again_with_each_poll",
        ),
    ),
    # These mutants concern the leaders of partitions, and connections.
    Mutant(
        "who asks for a leader creates the topic",
        "skidway/kafka/client/metadata.py",
        "allow_auto_topic_creation=False",
        "allow_auto_topic_creation=wanted is not None",
        (f"{_METADATA}::test_a_leader_is_looked_up_and_never_created",),
    ),
    Mutant(
        "a picture of the cluster is old only where somebody noticed",
        "skidway/kafka/client/metadata.py",
        "if self._ticket is not None or not (self._stale or old):",
        "if self._ticket is not None or not self._stale:",
        (f"{_METADATA}::test_a_stale_picture_and_an_old_one_are_renewed",),
    ),
    Mutant(
        "a new topic is waited for at one broker only",
        "skidway/kafka/client/topic_creation.py",
        "if not waiting or client",
        "if len(waiting) < 2 or client",
        (f"{_CREATION}::test_a_new_topic_is_waited_for_at_each_broker",),
    ),
    Mutant(
        "a topic is known to a broker that lists only some of its partitions",
        "skidway/kafka/client/topic_creation.py",
        "len(found.partitions) >= partitions",
        "len(found.partitions) > 0",
        (f"{_CREATION}::test_a_new_topic_is_waited_for_at_each_broker",),
    ),
    # This mutant concerns how a record's key selects the record's partition.
    Mutant(
        "the sign of a hash counts for the partition of a key",
        "skidway/kafka/partitioning.py",
        "hashes = murmur2(keys) & np.uint32(0x7FFFFFFF)",
        "hashes = murmur2(keys) & np.uint32(0xFFFFFFFF)",
        (f"{_PARTITIONING}::test_keys_are_hashed_as_kafka_does",),
    ),
)
