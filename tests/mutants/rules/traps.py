"""Mutants for the table of traps in docs/broker.md. A trap is a problem that clients have had with
other brokers. Each mutant gives Skidway's broker one of these problems."""

from mutants.mutant import Mutant

_DETAILS = "tests/conformance/broker/test_trap_details.py"
_TRAPS = "tests/conformance/broker/test_traps.py"
_PROTOCOL = "tests/conformance/broker/test_protocol.py"
_FAIRNESS = "tests/conformance/broker/test_fairness.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "ApiVersions of a later client is answered in the newest version that is known",
        "broker/api/api_versions.py",
        "        version, body = _UNKNOWN_VERSION, _UNREAD  # one answer for unknown versions\n",
        "        version, body = max(api_versions.VERSIONS), _UNREAD\n",
        (f"{_DETAILS}::test_apis_of_a_later_client_are_told_in_version_0",),
    ),
    Mutant(
        "a client may have any name",
        "broker/api/api_versions.py",
        "return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST",
        "return ErrorCode.NONE if is_valid is not None else ErrorCode.INVALID_REQUEST",
        (f"{_DETAILS}::test_a_client_without_a_decent_name_is_told_so",),
    ),
    Mutant(
        "the leader epoch that a producer wrote stays in its batch",
        "broker/log/partition_log.py",
        "        stamp(batch, 0, base, leader_epoch)\n",
        "        stamp(batch, 0, base, header.leader_epoch)\n",
        (f"{_DETAILS}::test_a_batch_comes_back_as_it_was_sent",),
    ),
    Mutant(
        "a control batch is taken",
        "broker/log/validation.py",
        "or not 0 <= attributes <= Codec.ZSTD",
        "or not 0 <= attributes & ~CONTROL <= Codec.ZSTD",
        (f"{_DETAILS}::test_batches_that_kafka_refuses_are_refused",),
    ),
    Mutant(
        "zstd is taken of every client",
        "broker/log/validation.py",
        "or (attributes == Codec.ZSTD and produce_version < ZSTD_SINCE_PRODUCE)",
        "or (attributes == Codec.ZSTD and produce_version < ZSTD_SINCE_PRODUCE - 1)",
        (f"{_DETAILS}::test_zstd_needs_a_client_that_knows_it",),
    ),
    Mutant(
        "acks that do not exist mean one replica",
        "broker/api/produce.py",
        "    if request.acks not in (ALL, 0, 1):\n",
        "    if request.acks < ALL:\n",
        (f"{_DETAILS}::test_acks_that_do_not_exist_are_refused",),
    ),
    Mutant(
        "a refusal without acks is silent",
        "broker/api/produce.py",
        "    if request.refused or lost:\n",
        "    if lost:\n",
        (f"{_PROTOCOL}::test_a_refusal_without_acks_closes_the_connection",),
    ),
    Mutant(
        "read_committed has no list of aborted transactions",
        "broker/api/fetch.py",
        "        () if isolation_level == READ_COMMITTED else None,\n",
        "        None,\n",
        (f"{_DETAILS}::test_there_are_no_transactions_and_no_nearer_replica",),
    ),
    Mutant(
        "a session of another broker is taken for none",
        "broker/api/fetch.py",
        "    if request.session_id and request.session_epoch > 0:\n",
        "    if request.session_id and request.session_epoch < -1:\n",
        (f"{_TRAPS}::test_a_session_of_another_broker_is_unknown",),
    ),
    Mutant(
        "who asks for a session is refused",
        "broker/api/fetch.py",
        "    if request.session_id and request.session_epoch > 0:\n",
        "    if request.session_epoch >= 0:\n",
        (f"{_TRAPS}::test_a_new_fetch_session_is_answered_without_one",),
    ),
    Mutant(
        "a time whose records have expired is answered with what is left of their batch",
        "broker/log/timestamps.py",
        "    return None if expired else _itself(header, log_start_offset)\n",
        "    return _itself(header, log_start_offset)\n",
        (
            "tests/unit/broker/log/test_timestamps.py::"
            "test_a_time_whose_record_expired_is_not_its_batchs",
        ),
    ),
    Mutant(
        "a record of exactly the time that is asked for is passed over",
        "broker/log/timestamps.py",
        "        if found.timestamp >= timestamp:\n",
        "        if found.timestamp > timestamp:\n",
        (f"{_DETAILS}::test_times_are_found_within_batches",),
    ),
    Mutant(
        "the end of a log is its last record, not what comes next",
        "broker/api/list_offsets.py",
        "        return TimestampOffset(-1, replica.offset)\n",
        "        return TimestampOffset(-1, replica.offset - 1)\n",
        (f"{_PROTOCOL}::test_ends_in_every_version",),
    ),
    Mutant(
        "a topic is created for whoever asks about it",
        "broker/api/metadata.py",
        "    elif may_create and broker.settings.auto_create_topics:\n",
        "    elif broker.settings.auto_create_topics:\n",
        (f"{_PROTOCOL}::test_metadata_says_what_was_asked",),
    ),
    Mutant(
        "a partition of which nothing was committed begins at 0",
        "broker/api/offset_fetch.py",
        "        return OffsetFetchResponsePartition(partition_index=number)\n",
        "        return OffsetFetchResponsePartition(partition_index=number, committed_offset=0)\n",
        (f"{_TRAPS}::test_offsets_of_all_partitions_and_of_unknown_ones",),
    ),
    Mutant(
        "-1 is no number of partitions",
        "broker/api/create_topics.py",
        """    if count == BROKER_DEFAULT:
        count = broker.settings.num_partitions
    check_partition_count""",
        """    check_partition_count""",
        (f"{_TRAPS}::test_defaults_for_partitions_and_replicas",),
    ),
    Mutant(
        "sequences of idempotent producers end at int32's end",
        "broker/log/producer_state.py",
        "        if header.base_sequence == next_sequence(last.last_sequence, 1):\n",
        "        if header.base_sequence == last.last_sequence + 1:\n",
        ("tests/unit/broker/log/test_producer_state.py::test_sequences_wrap",),
    ),
    Mutant(
        "a transactional producer is told to come later",
        "broker/api/init_producer_id.py",
        "        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED\n",
        "        code = ErrorCode.COORDINATOR_NOT_AVAILABLE\n",
        (f"{_DETAILS}::test_a_transactional_producer_is_refused_for_good",),
    ),
    Mutant(
        "what is done for a connection does not count",
        "broker/network/shares.py",
        "        self._tags[who] += cost\n",
        "",
        (
            "tests/unit/broker/network/test_shares.py::"
            "test_those_that_always_have_something_to_do_get_the_same_by_cost",
            f"{_FAIRNESS}::test_a_good_client_is_served_beside_twenty_that_flood",
            f"{_FAIRNESS}::test_those_that_flood_share_alike_and_all_are_answered",
        ),
    ),
    Mutant(
        "a frame of a negative length is waited for",
        "broker/network/inbound.py",
        "        if not 0 <= length <= self._limit_bytes:\n",
        "        if length > self._limit_bytes:\n",
        (
            "tests/unit/broker/network/test_inbound.py::test_lengths_that_cannot_be_are_refused",
            f"{_PROTOCOL}::test_a_bad_frame_closes_its_connection_only",
        ),
    ),
    Mutant(
        "a full disk takes its directory offline",
        "broker/log/files.py",
        "return self.errno in PASSING and not self._final",
        "return self.errno in PASSING - DISK_FULL and not self._final",
        (
            "tests/unit/broker/partitions/test_hosted.py::"
            "test_a_full_disk_leaves_the_directory_online",
        ),
    ),
    Mutant(
        "a topic that is made again has the id that its name had",
        "broker/topics/administration.py",
        "        topic_id = uuid.uuid4()\n",
        "        topic_id = uuid.uuid5(uuid.NAMESPACE_OID, name)\n",
        ("tests/conformance/broker/test_trap_details.py::test_a_topic_made_again_has_another_id",),
    ),
    Mutant(
        "Fetch is offered in a version that names topics by their ids alone",
        "skidway/kafka/protocol/apis.py",
        "    FETCH = 1, 12, (4, 12)\n",
        "    FETCH = 1, 12, (4, 13), (4, 12)\n",
        (
            "tests/conformance/broker/test_trap_details.py::"
            "test_topics_are_not_fetched_by_their_ids",
        ),
    ),
)
