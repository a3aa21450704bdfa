"""Mutants of a partition's log. They concern appending, flushing, recovery, retention, and the
partition's high watermark."""

from mutants.mutant import Mutant

_HOSTED = "tests/unit/broker/partitions/test_hosted.py"
_LOG = "tests/unit/broker/log/test_partition_log.py"
_PRODUCERS = "tests/unit/broker/log/test_producer_state.py"
_EPOCHS = "tests/unit/broker/log/test_leader_epochs.py"
_RETENTION = "tests/unit/broker/log/test_retention.py"
_CLOCK = "tests/unit/broker/log/test_retention_clock.py"
_VALIDATION = "tests/unit/broker/log/test_validation.py"
_RECOVERY = "tests/crash/broker/test_log_recovery.py"

MUTANTS: tuple[Mutant, ...] = (
    # These mutants break the rule that the high watermark is the end of the flushed records.
    Mutant(
        "the watermark is advanced before the flush",
        "broker/partitions/hosted.py",
        """            self._unflushed_since.pop(replica, None)
            self._submit(replica, flush)""",
        """            self._unflushed_since.pop(replica, None)
            replica.high_watermark = flush.end
            self._submit(replica, flush)""",
        (f"{_HOSTED}::test_the_watermark_moves_by_flushing_alone",),
    ),
    Mutant(
        "a flush counts for what was written while it ran",
        "broker/log/partition_log.py",
        "        self.flushed = flush.end\n",
        "        self.flushed = self.written\n",
        (f"{_LOG}::test_a_flush_counts_what_was_there_before_it",),
    ),
    Mutant(
        "the watermark is the leader's own flushed offset, whatever its followers have",
        "broker/partitions/replica.py",
        "least = min((self.log.flushed, *self.followers.values()))",
        "least = self.log.flushed",
        (f"{_HOSTED}::test_the_watermark_is_the_least_of_the_replicas",),
    ),
    Mutant(
        "a follower counts with what it has flushed, the leader with what it has written",
        "broker/partitions/replica.py",
        "least = min((self.log.flushed, *self.followers.values()))",
        "least = min((self.log.written, *self.followers.values()))",
        (
            f"{_HOSTED}::test_the_watermark_moves_by_flushing_alone",
            f"{_HOSTED}::test_the_watermark_is_the_least_of_the_replicas",
        ),
    ),
    Mutant(
        "the watermark goes back where a follower comes back into sync below it",
        "broker/partitions/replica.py",
        "if least.offset <= self.high_watermark.offset:",
        "if least.offset == self.high_watermark.offset:",
        (f"{_HOSTED}::test_the_watermark_is_the_least_of_the_replicas",),
    ),
    Mutant(
        "what is written and not flushed yet is read",
        "broker/log/offset_lookup.py",
        "limit = end.position if segment.base_offset == end.segment else segment.size",
        "limit = segment.size",
        (f"{_LOG}::test_nothing_unflushed_is_read",),
    ),
    # These mutants break the rule that the log is flushed at once if a request waits for the flush.
    Mutant(
        "a flush is not begun though somebody waits for it",
        "broker/partitions/flush_policy.py",
        """        state.awaited
        or state.unflushed_messages >= config.flush_messages""",
        """        state.unflushed_messages >= config.flush_messages""",
        (f"{_HOSTED}::test_somebody_waits_so_the_flush_is_at_once",),
    ),
    Mutant(
        "what came while a flush ran waits for the policy, though somebody waits for it",
        "broker/partitions/hosted.py",
        """                self._unflushed_since.setdefault(replica, self._clock.monotonic())
                self.flush_if_due(replica)
        self._tell_if_idle()""",
        """                self._unflushed_since.setdefault(replica, self._clock.monotonic())
        self._tell_if_idle()""",
        (f"{_HOSTED}::test_somebody_waits_so_the_flush_is_at_once",),
    ),
    Mutant(
        "flush.messages is a bound that has to be exceeded",
        "broker/partitions/flush_policy.py",
        "state.unflushed_messages >= config.flush_messages",
        "state.unflushed_messages > config.flush_messages",
        (f"{_HOSTED}::test_the_policy",),
    ),
    # These mutants break the rule that a failed fsync takes the log directory offline.
    Mutant(
        "an fsync that failed is asked again instead of being final",
        "broker/partitions/hosted.py",
        "return error.errno in (PASSING if isinstance(error, NothingSynced) else _NOT_OPENED)",
        "return error.errno is not None",
        (f"{_HOSTED}::test_a_failed_flush_takes_the_directory_offline",),
    ),
    Mutant(
        "an fsync that failed for want of space passes as an append does",
        "broker/partitions/hosted.py",
        'StorageFailed("flush", replica.log.directory, outcome.error, final=True)',
        'StorageFailed("flush", replica.log.directory, outcome.error)',
        (f"{_HOSTED}::test_a_failed_flush_takes_the_directory_offline",),
    ),
    Mutant(
        "a segment that was rolled since the last flush is not synced with the next",
        "broker/log/partition_log.py",
        "            files = (*(segment.file for segment in closed), self.active.file)\n",
        "            files = (self.active.file,)\n",
        (f"{_LOG}::test_a_flush_after_a_roll_has_the_old_segment_and_the_directory",),
    ),
    Mutant(
        "a segment that is rolled while a flush runs counts as flushed with it",
        "broker/log/partition_log.py",
        """        self.flush_running = False
        assert""",
        """        self.flush_running = False
        self._unflushed = []
        assert""",
        (f"{_LOG}::test_a_roll_while_a_flush_runs_keeps_the_old_segment_for_the_next",),
    ),
    # These mutants concern duplicate batches, the epochs of producers, and writes that fail.
    Mutant(
        "a duplicate is known by its sequences alone",
        "broker/log/producer_state.py",
        "same = stored.crc in (header.crc, CRC_UNKNOWN)",
        "same = True",
        (f"{_LOG}::test_other_bytes_under_a_used_sequence_are_refused",),
    ),
    Mutant(
        "a duplicate of what an earlier turn wrote is appended again",
        "broker/log/partition_log.py",
        "            if stored is not None:\n",
        "            if stored is not None and stored.base_offset >= self.written.offset:\n",
        (f"{_LOG}::test_a_duplicate_is_not_stored_again",),
    ),
    Mutant(
        "an older epoch of a producer may go on",
        "broker/log/producer_state.py",
        "if header.producer_epoch != known.epoch:",
        "if header.producer_epoch > known.epoch:",
        (f"{_PRODUCERS}::test_epochs_only_rise",),
    ),
    Mutant(
        "a newer epoch of a producer may begin with any sequence",
        "broker/log/producer_state.py",
        "    if header.base_sequence != 0:\n",
        "    if header.base_sequence < 0:\n",
        (f"{_PRODUCERS}::test_epochs_only_rise",),
    ),
    Mutant(
        "four batches of a producer are remembered instead of five",
        "broker/log/producer_state.py",
        "batches = (*known.batches[1 - BATCHES_KEPT :], batch)",
        "batches = (*known.batches[2 - BATCHES_KEPT :], batch)",
        (f"{_PRODUCERS}::test_the_last_five_batches_are_known_again",),
    ),
    Mutant(
        "the CRC of the stamped batch is remembered, not of what the producer sent",
        "broker/log/partition_log.py",
        """        if header.producer_id >= 0:
            self._update_producer(header, base, now_ms)
        if self.config.append_time:
            header = stamp_append_time(batch, 0, header, now_ms)
""",
        """        if self.config.append_time:
            header = stamp_append_time(batch, 0, header, now_ms)
        if header.producer_id >= 0:
            self.producers.update(
                header._replace(attributes=header.attributes & 7), base, now_ms
            )
""",
        ("tests/unit/broker/log/test_append_time.py::test_a_duplicate_is_known_by_what_was_sent",),
    ),
    Mutant(
        "a write that failed leaves its producers as if it had not",
        "broker/log/partition_log.py",
        "        self._undo.keep(header.producer_id)\n",
        "",
        (f"{_LOG}::test_a_full_disk_takes_nothing_by_half",),
    ),
    Mutant(
        "what a failed write left of its bytes stays in the file",
        "broker/log/partition_log.py",
        "            os.ftruncate(file.descriptor, undo.end.position)\n",
        "            os.fstat(file.descriptor)\n",
        (f"{_LOG}::test_a_full_disk_takes_nothing_by_half",),
    ),
    # These mutants concern four rules: when segments are rolled, when they are deleted, for which
    # readers they are kept, and when producers are forgotten.
    Mutant(
        "a segment expires by the event times of its records",
        "broker/log/expiration.py",
        "retention.SegmentAge(segment.base_offset, segment.size, segment.last_append_ms)",
        "retention.SegmentAge(segment.base_offset, segment.size, segment.max_timestamp)",
        (f"{_RETENTION}::test_expired_segments_leave_the_log_by_append_time",),
    ),
    Mutant(
        "a producer is forgotten by the event times of its records",
        "broker/log/producer_state.py",
        "Producer(header.producer_epoch, now_ms, batches)",
        "Producer(header.producer_epoch, header.max_timestamp, batches)",
        (f"{_PRODUCERS}::test_producers_are_forgotten_by_append_time",),
    ),
    Mutant(
        "a clock that jumps ahead is believed at once",
        "broker/log/retention_clock.py",
        "self._known_ms, self._seen_s = min(wall_ms, latest_ms), now_s",
        "self._known_ms, self._seen_s = wall_ms, now_s",
        (f"{_CLOCK}::test_a_clock_set_ahead_deletes_and_forgets_nothing",),
    ),
    Mutant(
        "a segment is rolled by the time since its last append",
        "broker/log/partition_log.py",
        "now_ms - (segment.first_append_ms or now_ms) >= config.segment_ms",
        "now_ms - segment.last_append_ms >= config.segment_ms",
        (f"{_LOG}::test_segments_roll_by_append_time",),
    ),
    Mutant(
        "a segment goes while the log still holds too much, not where it would still hold enough",
        "broker/log/retention.py",
        "return limit_bytes != UNLIMITED and total - segment.size >= limit_bytes",
        "return limit_bytes != UNLIMITED and total > limit_bytes",
        (f"{_RETENTION}::test_size_goes_by_what_remains",),
    ),
    Mutant(
        "a segment goes that is not flushed to its end",
        "broker/log/retention.py",
        "        if end > flushed_segment:\n",
        "        if segment.base_offset >= flushed_segment:\n",
        (f"{_RETENTION}::test_what_is_not_flushed_stays",),
    ),
    Mutant(
        "a segment is held that its readers have read to its end",
        "broker/log/retention.py",
        "if held_from is None or end <= held_from:",
        "if held_from is None or end < held_from:",
        (f"{_RETENTION}::test_what_a_reader_holds_stays",),
    ),
    Mutant(
        "a reader holds segments for ever unless both limits are passed",
        "broker/log/retention.py",
        """        _too_old(segment, config.hold_ms_max, now_ms)
        or _too""",
        """        _too_old(segment, config.hold_ms_max, now_ms)
        and _too""",
        (f"{_RETENTION}::test_nobody_holds_for_ever",),
    ),
    # These mutants concern the file of leader epochs.
    Mutant(
        "the file of leader epochs is written when the log is closed, not with its records",
        "broker/log/partition_log.py",
        "            epochs = self.directory / names.LEADER_EPOCHS, self.epochs.encode()\n",
        "",
        (f"{_EPOCHS}::test_the_file_is_durable_before_its_records_are",),
    ),
    Mutant(
        "an epoch whose first write failed is remembered",
        "broker/log/undo.py",
        "        self._epochs.cut_tail(end.offset)\n",
        "        self._epochs.cut_tail(end.offset + 1)\n",
        (f"{_EPOCHS}::test_an_epoch_that_was_not_written_is_forgotten",),
    ),
    # These mutants break the rule that the broker checks every batch before it appends it.
    Mutant(
        "a batch may have fewer records than offsets",
        "broker/log/validation.py",
        "        or count != delta + 1\n        or not",
        "        or count > delta + 1\n        or not",
        (f"{_VALIDATION}::test_bad_batches_are_refused_by_kind",),
    ),
    Mutant(
        "a batch may be followed by another one",
        "broker/log/validation.py",
        "or length + LENGTH_END != len(batch)",
        "or length + LENGTH_END > len(batch)",
        (f"{_VALIDATION}::test_bad_batches_are_refused_by_kind",),
    ),
    # These mutants concern the recovery of the log after a crash.
    Mutant(
        "a whole batch at the end that does not belong there is cut as a torn tail",
        "broker/log/recovery.py",
        "    if scan.is_whole(descriptor, position, segment.size):\n",
        "    if following and scan.is_whole(descriptor, position, segment.size):\n",
        (f"{_RECOVERY}::test_a_whole_batch_at_the_end_is_never_cut",),
    ),
    Mutant(
        "what recovery found good is believed without being synced",
        "broker/log/recovery.py",
        "    if not opening.clean or account.scanned_bytes:\n",
        "    if account.cut_bytes:\n",
        (f"{_RECOVERY}::test_all_that_recovery_believes_is_on_disk",),
    ),
    Mutant(
        "a torn tail is counted and stays in the file",
        "broker/log/recovery.py",
        """    segment.file_cut(error.position)
    segment.size = error.position
""",
        """    segment.size = error.position
""",
        (
            f"{_RECOVERY}::test_a_tail_cut_anywhere_in_the_last_batch_is_repaired",
            f"{_RECOVERY}::test_nonsense_behind_the_end_is_cut_and_kept",
            f"{_RECOVERY}::test_pages_that_a_power_failure_left_out_cost_what_is_behind_them",
        ),
    ),
    Mutant(
        "recovery trusts an index that leads to another batch",
        "broker/log/recovery.py",
        """            if header.last_offset != last_offset:
                return None
            position""",
        """            position""",
        (f"{_RECOVERY}::test_every_changed_byte_of_an_index_costs_nothing_but_time",),
    ),
    Mutant(
        "damage below the recovery point is cut as a torn tail",
        "broker/log/recovery.py",
        "    if end_offset < opening.recovery_point:\n        return f",
        "    if end_offset < opening.recovery_point and following:\n        return f",
        (f"{_RECOVERY}::test_damage_below_the_recovery_point_is_never_cut",),
    ),
    Mutant(
        "valid batches behind a bad one are looked for at its end only",
        "broker/log/recovery.py",
        "scan.valid_batch_after(descriptor, position + 1, segment.size, end_offset)",
        "scan.valid_batch_after(descriptor, segment.size - 1, segment.size, end_offset)",
        (f"{_RECOVERY}::test_every_damaged_byte_of_a_batch_in_front_stops_the_partition",),
    ),
    Mutant(
        "batches that are read again count as appended at their event times",
        "broker/log/state_recovery.py",
        "state.update(header, header.base_offset, opening.now_ms)",
        "state.update(header, header.base_offset, header.max_timestamp)",
        (f"{_RECOVERY}::test_producers_that_are_read_again_count_as_appended_now",),
    ),
    Mutant(
        "batches that recovery reads count as appended at their event times",
        "broker/log/recovery.py",
        "producers.update(header, header.base_offset, opening.now_ms)",
        "producers.update(header, header.base_offset, header.max_timestamp)",
        (f"{_RECOVERY}::test_producers_that_are_read_again_count_as_appended_now",),
    ),
    Mutant(
        "a log that ends below its recovery point begins there again",
        "broker/log/recovery.py",
        "    if end_offset < max(start, opening.recovery_point):\n",
        "    if end_offset < start:\n",
        (f"{_RECOVERY}::test_a_log_that_lost_flushed_batches_is_damaged",),
    ),
    Mutant(
        "what a kill leaves behind the recovery point was acknowledged to nobody",
        "broker/log/recovery.py",
        """            interval = opening.config.index_interval_bytes
            segment.note(header, header""",
        """            if not opening.clean and header.base_offset >= opening.recovery_point:
                account.cut_bytes += segment.size - position
                _cut(segment, opening.partition, scan.InvalidBatch(position, "not flushed"))
                break
            interval = opening.config.index_interval_bytes
            segment.note(header, header""",
        ("tests/crash/broker/test_broker_process.py::test_killed_while_it_takes",),
    ),
    Mutant(
        "an error of the device passes, as a full disk does",
        "broker/log/files.py",
        "PASSING = DISK_FULL | {errno.EMFILE,",
        "PASSING = DISK_FULL | {errno.EIO, errno.EMFILE,",
        (
            "tests/unit/broker/test_device_errors.py::"
            "test_a_write_error_takes_the_directory_offline",
        ),
    ),
    Mutant(
        "a read error in recovery stops its partition, and the device stays in use",
        "broker/log/log_manager.py",
        """            if error.errno in DEVICE_ERRORS:
                self.report(error)
""",
        "",
        (
            "tests/unit/broker/test_device_errors.py::"
            "test_a_read_error_in_recovery_takes_the_directory_offline",
        ),
    ),
)
