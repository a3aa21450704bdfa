"""Mutants of the commands that tell what happened to a single line, and of those that compare lines
with records."""

from mutants.mutant import Mutant

_TRACE = "tests/unit/audit/tracing/test_trace.py::"
_FIND = "tests/unit/audit/tracing/test_find.py::"
_WHY = "tests/unit/audit/commands/test_why.py::"
_EXPLAINED = "tests/unit/audit/explanation/test_explanation.py::"
_PAGES = "tests/unit/audit/collector/test_reject_examples.py::"
_EXAMPLES = "tests/unit/schemas/consuming/test_rejected_examples.py::"
_COMPARE = "tests/unit/audit/comparison/test_matching.py::"
_NOTES = "tests/unit/audit/comparison/test_notes.py::"
_BOUNDS = "tests/unit/agent/counting/test_note_bounds.py::"
_COUNTING = "tests/unit/agent/counting/test_counting.py::"

MUTANTS = (
    Mutant(
        "a tier that was not looked at counts as a tier that has the line",
        "audit/tracing/fates.py",
        "return bool(fates) and all(x.state in HAS_IT for x in fates if x.tier != HOST)",
        "return bool(fates) and first_without(fates) is None",
        (f"{_TRACE}test_a_tier_that_was_not_looked_at_is_no_proof",),
    ),
    Mutant(
        "a record at the same offset of a mirror is taken for the line's record unseen",
        "audit/tracing/trace.py",
        "if found.origin != record.origin or (found.origin and not is_at(found.origin, point)):",
        "if found.offset != record.offset:",
        (f"{_TRACE}test_a_line_that_a_tier_lacks",),
    ),
    Mutant(
        "records older than their file's announcement are not looked for",
        "audit/tracing/trace.py",
        "    for ranges in (later, earlier):\n",
        "    for ranges in (later,):\n",
        (f"{_TRACE}test_a_line_before_the_announcement_is_found_too",),
    ),
    Mutant(
        "a producer id of one topic says whose batches of another topic are skipped",
        "audit/tracing/log_search.py",
        "producer = (topic, header.producer_id)",
        'producer = ("", header.producer_id)',
        (f"{_FIND}test_a_producer_id_belongs_to_one_topic_of_the_search",),
    ),
    Mutant(
        "batches without producer id are skipped as their first one was",
        "audit/tracing/log_search.py",
        "        if header.producer_id != NO_PRODUCER_ID:\n            self._agents",
        "        if header.producer_id >= NO_PRODUCER_ID:\n            self._agents",
        (f"{_FIND}test_batches_without_producer_id_are_always_looked_at",),
    ),
    Mutant(
        "a line of the file from before the time span is called missing",
        "audit/tracing/find.py",
        "        outside |= self._older(cluster, earlier, search, unmatched)\n",
        "",
        (f"{_FIND}test_lines_before_the_time_span_are_left_out",),
    ),
    Mutant(
        "a line of the file from after the time span is shown",
        "audit/tracing/find.py",
        "            if question.since_ms <= record.time_ms < question.until_ms:\n",
        "            if question.since_ms <= record.time_ms:\n",
        (f"{_FIND}test_lines_after_the_time_span_are_left_out",),
    ),
    Mutant(
        "a search opens files of an hour that nobody asked for",
        "audit/tracing/find.py",
        "hours_of(question.since_ms, question.until_ms)",
        "hours_of(question.since_ms, question.until_ms + AHEAD_MS)",
        (f"{_FIND}test_only_files_of_the_hours_asked_for_are_opened",),
    ),
    Mutant(
        "a search lists the output's topics once for each topic of the host",
        "audit/tracing/outputs.py",
        "        if self._names is None:\n",
        "        if True:\n",
        (f"{_FIND}test_only_files_of_the_hours_asked_for_are_opened",),
    ),
    Mutant(
        "a search notes any number of lines",
        "audit/tracing/find.py",
        "        if len(self._known) >= HITS_MAX:\n",
        "        if len(self._known) >= 1 << 62:\n",
        (f"{_FIND}test_a_text_of_too_many_lines_is_refused",),
    ),
    Mutant(
        "a byte past a declared loss counts as lost",
        "audit/evidence/line_evidence.py",
        "(self.end is None or position < self.end)",
        "(self.end is None or position <= self.end)",
        (f"{_TRACE}test_a_line_that_was_declared_lost",),
    ),
    Mutant(
        "the rest of a rotated file is called not shipped yet for ever",
        "audit/comparison/matching.py",
        "        fates[last:] = _NUMBERS[Fate.MISSING if is_passed else Fate.NOT_YET]\n",
        "        fates[last:] = _NUMBERS[Fate.NOT_YET]\n",
        (f"{_COMPARE}test_the_rest_of_a_rotated_file_is_missing",),
    ),
    Mutant(
        "lines whose records were not read are called missing",
        "audit/comparison/matching.py",
        "    before = Fate.MISSING if is_whole else Fate.NOT_COMPARED\n",
        "    before = Fate.MISSING\n",
        (f"{_COMPARE}test_lines_before_the_records_that_were_read_are_not_compared",),
    ),
    Mutant(
        "the beginning of a file that was found later is not compared",
        "audit/comparison/matching.py",
        "        has_all = is_whole or _is_of_later(each, since_ms)\n",
        "        has_all = is_whole\n",
        (f"{_NOTES}test_the_beginning_of_a_later_file_is_missing",),
    ),
    Mutant(
        "the lines of a compressed copy need records of their own",
        "audit/comparison/notes.py",
        "        _leave_out_repeats(files, uncertain)\n",
        "",
        (f"{_NOTES}test_a_compressed_copy_is_not_counted_twice",),
    ),
    Mutant(
        "a damaged note is compared",
        "audit/comparison/notes.py",
        "if checksum(file, first, end, read_ms, lines) != crc:",
        "if False:",
        (f"{_NOTES}test_damaged_notes_are_refused",),
    ),
    Mutant(
        "the position of a noted line is not durable with its note",
        "agent/counting/loop.py",
        "        self._changes.put_files(changed)\n",
        "        self._changes.put_files(changed if self._has_backlog else changed[:0])\n",
        (f"{_COUNTING}test_a_kill_at_any_moment_neither_loses_nor_doubles_a_line",),
    ),
    Mutant(
        "notes become more than they may",
        "agent/counting/segments.py",
        "kept > self._keep_bytes or now_ms",
        "now_ms",
        (f"{_BOUNDS}test_the_oldest_notes_are_dropped_if_there_are_too_many",),
    ),
    Mutant(
        "notes that were dropped leave the notes whole",
        "agent/counting/state.py",
        "        self.put_meta(notes.COUNTED_FROM, newest_ms + 1)\n",
        "",
        (f"{_BOUNDS}test_the_notes_say_since_when_they_are_whole",),
    ),
    Mutant(
        "bytes that are not noted are forgotten in silence",
        "agent/counting/state.py",
        "        self._do(_WHOLE_SINCE, (notes.UNNOTED_MAX, notes.COUNTED_FROM))\n",
        "",
        (f"{_COUNTING}test_what_is_not_noted_is_forgotten_with_its_time",),
    ),
    Mutant(
        "records that have expired are missing",
        "audit/commands/compare.py",
        "    return Reach(ranges, is_whole, max([since_ms, *stamps]), cut)\n",
        "    return Reach(ranges, is_whole, since_ms, cut)\n",
        ("tests/unit/audit/commands/test_compare.py::test_expired_records_are_not_missed",),
    ),
    Mutant(
        "records that expired from another partition are missing",
        "audit/comparison/matching.py",
        "        certain = shipped & join.is_certain(file)\n",
        "        certain = shipped\n",
        (f"{_COMPARE}test_records_that_expired_from_another_partition_are_not_missed",),
    ),
    Mutant(
        "a partition whose records have all expired says nothing about time",
        "audit/commands/compare.py",
        "    return max(firsts.get(tp, LAST_TIME) for tp in reach.cut)\n",
        "    return max(firsts.get(tp, 0) for tp in reach.cut)\n",
        (
            "tests/unit/audit/commands/test_compare.py::"
            "test_the_time_since_which_no_record_has_expired",
        ),
    ),
    Mutant(
        "lines of files that are gone are not shipped yet for ever",
        "audit/comparison/matching.py",
        "        is_passed = each.is_gone or any(\n",
        "        is_passed = any(\n",
        (f"{_NOTES}test_the_end_of_a_deleted_file_is_missing",),
    ),
    Mutant(
        "a file is still there if another file has its inode",
        "audit/comparison/notes.py",
        ' FROM files ORDER BY serial")\n    newest',
        ' FROM files ORDER BY -serial")\n    newest',
        (f"{_NOTES}test_the_end_of_a_deleted_file_is_missing",),
    ),
    Mutant(
        "lines that were not shipped for hours are good",
        "audit/comparison/matching.py",
        "        is_late = (fates == _NUMBERS[Fate.NOT_YET]) & ",
        "        is_late = (fates == _NUMBERS[Fate.MISSING]) & ",
        (f"{_NOTES}test_lines_that_were_not_shipped_for_an_hour_are_named",),
    ),
    Mutant(
        "records of a copy are records of another file",
        "audit/comparison/matching.py",
        "        return self.are_noted and any_may_have_copy(file, path)\n",
        "        return False\n",
        (f"{_NOTES}test_a_copy_that_is_shipped_too_doubles_its_lines",),
    ),
    Mutant(
        "lines that were noted after the clock was set back are not compared",
        "agent/counting/loop.py",
        "            self._changes.put_set_back(now_ms)\n",
        "            pass\n",
        (f"{_NOTES}test_a_clock_that_was_set_back_hides_no_line",),
    ),
    Mutant(
        "the rest of a divided line is noted as a line",
        "agent/counting/noting.py",
        "            lines = lines_of(data, is_divided=was_divided)\n",
        "            lines = lines_of(data, is_divided=False)\n",
        (f"{_COUNTING}test_a_line_that_is_divided_for_an_hour_is_not_compared",),
    ),
    Mutant(
        "a file that was found after a restart counts as written after it",
        "agent/counting/loop.py",
        "        self._looked_ms = state.looked_ms()  #",
        "        self._looked_ms = clock.time_ms()  #",
        (f"{_COUNTING}test_a_restart_does_not_make_files_younger",),
    ),
    Mutant(
        "one record stands for all equal lines",
        "audit/comparison/matching.py",
        "line = next((each for each in fitting if not self.counts[each]), fitting[0])",
        "line = fitting[0]",
        (f"{_COMPARE}test_equal_lines_are_counted",),
    ),
    Mutant(
        "a record of another file with the same text and offset stands for a line",
        "audit/comparison/matching.py",
        "if path is None or any(self._is_path_of(path, each) for each in self.files):",
        "if True:",
        (f"{_COMPARE}test_records_of_others_are_left_out",),
    ),
    Mutant(
        "a changed line is called missing",
        "audit/comparison/matching.py",
        "    join.changes()\n",
        "",
        (f"{_COMPARE}test_a_changed_line_is_neither_missing_nor_unknown",),
    ),
    Mutant(
        "files of which nothing was shipped are good",
        "audit/comparison/reports.py",
        "    return compared > 0 and not is_late and ",
        "    return compared >= 0 and not is_late and ",
        (f"{_COMPARE}test_records_of_others_are_left_out",),
    ),
    Mutant(
        "a command on another host names a loopback address of this host",
        "audit/explanation/next_command.py",
        '        if host in ("", self.here) or not self.here:\n',
        "        if True:\n",
        (f"{_EXPLAINED}test_commands_have_the_addresses_of_the_clusters_that_they_need",),
    ),
    Mutant(
        "an example is a line that was rejected after its bucket",
        "schemas/consuming/rejected_lines.py",
        "and (self.until is None or timestamp < self.until)",
        "and True",
        ("tests/unit/schemas/consuming/test_rejected_lines.py::test_lines_are_chosen",),
    ),
    Mutant(
        "the search for an example of rejected lines reads the whole topic",
        "schemas/consuming/rejected_lines.py",
        "        if most is not None:\n",
        "        if False:\n",
        (f"{_EXAMPLES}test_the_search_for_an_example_is_bounded",),
    ),
    Mutant(
        "the text of a rejected line is read from the host's file, without masks",
        "audit/commands/first_line.py",
        "        if found.cause in _OF_REJECTS:\n",
        "        if found.cause in _OF_REJECTS and not found.path:\n",
        (f"{_WHY}test_a_rejected_line_is_read_from_the_topic_of_rejects",),
    ),
    Mutant(
        "the pages' examples of rejected lines are read again and again",
        "audit/collector/reject_examples.py",
        "if self._looked.get(x) != at}",
        "if True}",
        (f"{_PAGES}test_the_example_is_of_the_newest_bucket_with_rejects",),
    ),
    Mutant(
        "an example of rejected lines is lost while the brokers are away",
        "audit/collector/reject_examples.py",
        "        found = {x: self.found[x] for x in wanted if x in self.found}\n",
        "        found = dict[Source, RejectedExample]()\n",
        (f"{_PAGES}test_while_the_brokers_are_away_the_earlier_example_stays",),
    ),
    Mutant(
        "a record that no agent has masked is shown",
        "audit/collector/loader_rejects.py",
        "np.flatnonzero((batch.offsets == record.offset) & batch.has_origin)",
        "np.flatnonzero(batch.offsets == record.offset)",
        (f"{_PAGES}test_a_record_that_no_agent_has_sent_is_never_shown",),
    ),
    Mutant(
        "another record that has the offset now is shown",
        "audit/collector/loader_rejects.py",
        "time_ms - time_ms % HOUR_MS == record.hour_ms",
        "time_ms",
        (f"{_PAGES}test_a_record_that_is_not_there_has_no_example",),
    ),
    Mutant(
        "the example of the loader's rejects is of the oldest load",
        "audit/collector/loader_rejects.py",
        "            found[load.source] = load.rejected\n",
        "            found.setdefault(load.source, load.rejected)\n",
        (f"{_PAGES}test_a_record_that_the_loader_rejected_is_shown",),
    ),
    Mutant(
        "a record that is a row after a reload is shown as rejected",
        "audit/collector/reject_examples.py",
        "if x.rejects and x.source in named]",
        "if x.source in named]",
        (f"{_PAGES}test_without_rejects_no_record_is_read",),
    ),
    Mutant(
        "the note of a load names a record of another hour",
        "loader/audit_topic/delta.py",
        "RejectedRecord(hour * layout.HOUR_MS, partition, offset)",
        "RejectedRecord(0, partition, offset)",
        (
            "tests/unit/loader/audit_topic/test_load_notes.py::"
            "test_a_load_tells_one_record_that_it_rejected",
        ),
    ),
)
