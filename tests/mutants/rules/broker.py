"""Mutants of the broker, except its logs. They concern the network, Produce and Fetch requests,
parked requests (requests that wait for data), the topic config retention.hold, and producer ids."""

from mutants.mutant import Mutant

_EXPIRY = "tests/unit/broker/test_expiry.py"
_PURGATORY = "tests/unit/broker/test_purgatory.py"
_RUN = "tests/unit/broker/api/test_produce_run.py"
_FETCH = "tests/unit/broker/api/test_delayed_fetch.py"
_KEPT = "tests/unit/broker/test_kept_answers.py"
_CONNECTION = "tests/unit/broker/network/test_connection.py"
_INBOUND = "tests/unit/broker/network/test_inbound.py"
_SHARES = "tests/unit/broker/network/test_shares.py"
_IDS = "tests/unit/broker/coordination/test_producer_ids.py"
_BLOCKS = "tests/unit/broker/coordination/test_session.py"

MUTANTS: tuple[Mutant, ...] = (
    # These mutants break the rule that no producer id is used twice.
    Mutant(
        "partitions that a topic has already count as partitions that a request adds",
        "broker/api/create_partitions.py",
        "check_room(wanted.count - known, room)",
        "check_room(wanted.count, room)",
        (
            "tests/conformance/broker/test_bounds.py::"
            "test_partitions_that_a_topic_has_already_do_not_count",
        ),
    ),
    Mutant(
        "the last id of a block is given twice",
        "broker/coordination/producer_ids.py",
        "if self._next <= self._last and not self._waiting:",
        "if self._next <= self._last + 1 and not self._waiting:",
        (f"{_IDS}::test_ids_come_from_the_block_in_order_and_once",),
    ),
    Mutant(
        "a block of ids begins with the last one of the block before",
        "broker/coordination/store.py",
        "        first = max(last, above) + 1\n",
        "        first = max(last, above + 1)\n",
        (f"{_BLOCKS}::test_producer_ids_end_where_their_type_ends",),
    ),
    Mutant(
        "a block of ids begins behind the block before, whatever ids stand in the logs",
        "broker/coordination/store.py",
        "        first = max(last, above) + 1\n",
        "        first = last + 1\n",
        (f"{_BLOCKS}::test_a_block_of_producer_ids_is_above_all_that_were_given",),
    ),
    Mutant(
        "a block of ids begins above those in our logs, whatever others took",
        "broker/coordination/store.py",
        "        first = max(last, above) + 1\n",
        "        first = (last if found is None else above) + 1\n",
        (f"{_BLOCKS}::test_a_block_of_producer_ids_is_above_all_that_were_given",),
    ),
    # These mutants break the rule that the broker keeps segments for the readers that
    # retention.hold names, up to a limit.
    Mutant(
        "the fastest of the groups decides what is held",
        "broker/expiry.py",
        "return min((known[reader] for reader in groups), default=None)",
        "return max((known[reader] for reader in groups), default=None)",
        (f"{_EXPIRY}::test_the_slowest_group_holds",),
    ),
    Mutant(
        "while ZooKeeper is away nobody has read anything",
        "broker/expiry.py",
        """            if isinstance(outcome, SkidwayError):
                _log""",
        """            if isinstance(outcome, SkidwayError):
                self._offsets = {}
                _log""",
        (f"{_EXPIRY}::test_without_zookeeper_what_was_read_last_counts",),
    ),
    Mutant(
        "what is lost to a reader is counted with what it had read",
        "broker/expiry.py",
        "        first = max(offset, cut.first)\n",
        "        first = cut.first\n",
        (f"{_EXPIRY}::test_beyond_the_limit_what_is_lost_is_counted",),
    ),
    Mutant(
        "a group that has committed nothing holds nothing",
        "broker/expiry.py",
        "offset, log = self._offsets.get(reader, 0), self._logs.logs.get(reader[1])\n",
        """log = self._logs.logs.get(reader[1])
        offset = self._offsets.get(reader, log.log_end_offset if log else 0)
""",
        (f"{_EXPIRY}::test_a_group_that_has_committed_nothing_holds_everything",),
    ),
    Mutant(
        "an offset behind the log's end is believed",
        "broker/expiry.py",
        "return offset if log is not None and offset <= log.log_end_offset else 0",
        "return offset if log is not None else 0",
        (f"{_EXPIRY}::test_an_offset_behind_the_end_is_another_topics",),
    ),
    Mutant(
        "a group that was named while others were asked for holds nothing yet",
        "broker/expiry.py",
        "                return 0",
        "                return None",
        (f"{_EXPIRY}::test_a_group_named_while_others_were_asked_for_holds_at_once",),
    ),
    # These mutants concern Fetch requests.
    Mutant(
        "a fetch reads what is written, past the watermark",
        "broker/api/fetch.py",
        """            max(min(target.max_bytes, left), 0),
            replica.high_watermark,
""",
        """            max(min(target.max_bytes, left), 0),
            replica.log.written,
""",
        (f"{_FETCH}::test_what_is_not_flushed_is_not_given",),
    ),
    Mutant(
        "what a parked fetch had found of a partition counts again when that changes",
        "broker/api/fetch.py",
        "        self._total += found - self._found.get(changed, 0)\n",
        "        self._total += found\n",
        (f"{_FETCH}::test_what_was_found_counts_once",),
    ),
    Mutant(
        "a parked fetch is not told that its partition is dropped",
        "broker/api/fetch.py",
        """    if replica is None or _epoch_error(replica, target):
        return least_bytes
""",
        """    if replica is None:
        return 0
    if _epoch_error(replica, target):
        return least_bytes
""",
        (f"{_FETCH}::test_a_partition_that_is_dropped_is_told_at_once",),
    ),
    Mutant(
        "every partition of a fetch gives at least one batch, whatever the limits",
        "broker/api/fetch.py",
        "at_least_one=not found)",
        "at_least_one=True)",
        (
            "tests/conformance/broker/test_traps.py::test_the_first_partition_with_data_gives_one_batch",
        ),
    ),
    # These mutants concern Produce requests.
    Mutant(
        "with acks=all a run is answered when it is written",
        "broker/api/produce_run.py",
        "if replica.served and replica.log.written.offset >= end > replica.offset:",
        "if replica.served and replica.log.written.offset < end:",
        (f"{_RUN}::test_with_acks_all_a_run_waits_for_the_flush",),
    ),
    Mutant(
        "a run waits for its first request alone",
        "broker/api/produce_run.py",
        "replica, end = self.shape.replica, self._parts[-1][3]",
        "replica, end = self.shape.replica, self._parts[0][3]",
        (f"{_RUN}::test_a_flush_of_its_first_batches_answers_no_run",),
    ),
    Mutant(
        "a run is answered as written, whatever became of the write",
        "broker/api/produce_run.py",
        """    if end > shape.replica.log.written.offset:
        return _not_written(broker, part)
    return shape.answer(correlation_id, base)
""",
        """    return shape.answer(correlation_id, base)
""",
        (f"{_RUN}::test_a_write_that_failed_is_no_success",),
    ),
    Mutant(
        "acks=0 is silent about what could not be written",
        "broker/api/produce_run.py",
        "        if any(end > shape.replica.log.written.offset for",
        "        if any(end > shape.replica.log.written.offset + end for",
        (f"{_RUN}::test_a_write_that_failed_is_no_success",),
    ),
    Mutant(
        "a run goes on behind a request that is not alike",
        "broker/api/produce_run.py",
        "    run, alike.run = alike.run, None\n    matched",
        "    run = alike.run\n    matched",
        (f"{_RUN}::test_a_bad_batch_is_left_to_the_general_way", _RUN),
    ),
    Mutant(
        "with acks=all nobody begins the flush that a run waits for",
        "broker/api/produce_run.py",
        "        broker.partitions.flush_if_due(replica)\n",
        "",
        (f"{_RUN}::test_with_acks_all_a_run_waits_for_the_flush",),
    ),
    # This mutant concerns parked requests, that is, requests that wait for data.
    Mutant(
        "what waits is bounded by operations, not by the partitions that they wait for",
        "broker/purgatory.py",
        "return self._watched_count + partitions <= WATCHED_MAX",
        "return len(self._waiting) + partitions <= WATCHED_MAX",
        (f"{_PURGATORY}::test_what_waits_is_bounded",),
    ),
    # These mutants concern the order of answers, limits for requests, and equal treatment of
    # clients if some of them send many requests.
    Mutant(
        "answers go out as they come",
        "broker/network/connection.py",
        """        if slots[0] is not slot:
            return False
        while slots and (ready := slots[0].pieces) is not None:
            self._unanswered -= slots.popleft().requests
            self._outbox.extend(ready)
""",
        """        slots.remove(slot)
        self._unanswered -= slot.requests
        self._outbox.extend(pieces)
""",
        (f"{_CONNECTION}::test_answers_go_out_in_the_order_of_the_requests",),
    ),
    Mutant(
        "requests that are answered together count as one",
        "broker/network/connection.py",
        "            self._unanswered -= slots.popleft().requests\n",
        "            slots.popleft()\n            self._unanswered -= 1\n",
        (f"{_CONNECTION}::test_requests_answered_together_count_each",),
    ),
    Mutant(
        "who was away has saved up what the others used",
        "broker/network/shares.py",
        "            tag = self._tags[who] = self._served_tag\n",
        "            self._tags[who] = tag\n",
        (f"{_SHARES}::test_who_asked_for_nothing_has_saved_nothing_up",),
    ),
    Mutant(
        "who comes anew is served before all others",
        "broker/network/shares.py",
        "        self._tags[who] = self._served_tag + self._allowance_min\n",
        "        self._tags[who] = self._served_tag\n",
        (f"{_SHARES}::test_coming_anew_for_each_request_gains_nothing",),
    ),
    Mutant(
        "a frame at the limit is refused",
        "broker/network/inbound.py",
        "        if not 0 <= length <= self._limit_bytes:\n",
        "        if not 0 <= length < self._limit_bytes:\n",
        (f"{_INBOUND}::test_a_frame_at_the_limit_is_taken_and_one_above_not",),
    ),
    # These mutants concern answers that the broker keeps in encoded form, for the next request that
    # gets the same answer.
    Mutant(
        "answers outlive the picture that they were made from",
        "broker/kept_answers.py",
        "if len(now) == len(self._made_from) and all(map(is_, now, self._made_from)):",
        "if len(now) == len(self._made_from):",
        (f"{_KEPT}::test_a_picture_that_was_replaced_ends_all_answers",),
    ),
    Mutant(
        "an answer is kept that was made while its picture was replaced",
        "broker/kept_answers.py",
        "        if outdated or len(request)",
        "        if len(request)",
        (f"{_KEPT}::test_an_answer_made_while_a_picture_was_replaced_is_not_kept",),
    ),
    Mutant(
        "a device that cannot be read stays in use",
        "broker/api/fetch.py",
        """    except StorageFailed as error:
        broker.partitions.storage_failed(error)
        return _error(target, ErrorCode""",
        """    except StorageFailed:
        return _error(target, ErrorCode""",
        (
            "tests/unit/broker/test_device_errors.py::"
            "test_a_read_error_before_an_answer_takes_the_directory_offline",
        ),
    ),
    Mutant(
        "a read error while an answer is sent is the client's going away",
        "broker/network/connection.py",
        "            if error.errno in DEVICE_ERRORS:",
        "            if error.errno is None:",
        (
            "tests/unit/broker/test_device_errors.py::"
            "test_a_read_error_while_an_answer_is_sent_takes_the_directory_offline",
        ),
    ),
    Mutant(
        "a client that goes away while an answer is sent is a read error",
        "broker/network/connection.py",
        "            if error.errno in DEVICE_ERRORS:",
        "            if error.errno:",
        (
            "tests/unit/broker/test_device_errors.py::"
            "test_a_client_that_is_gone_is_no_error_of_the_device",
        ),
    ),
)
