"""Mutants of the rules about samples. They concern which lines agents choose and report as samples,
and how rows and records are compared with these lines."""

from mutants.mutant import Mutant

_DRAW = "tests/unit/agent/sampling/test_draw.py::"
_SAMPLER = "tests/unit/agent/sampling/test_sampler.py::"
_RECORDS = "tests/unit/agent/batches/test_range_records.py::"
_SUMS = "tests/unit/audit/counts/test_content.py::"
_ROWS = "tests/unit/audit/sampling/test_row_contents.py::"
_COMPARE = "tests/unit/audit/sampling/test_comparison.py::"
_SURVEY = "tests/unit/audit/sampling/test_survey.py::"
_EVIDENCE = "tests/unit/audit/evidence/test_samples.py::"
_WHY = "tests/unit/audit/explanation/test_explanation.py::"

_TIME = f"{_COMPARE}test_the_event_time_of_a_line_is_proven_by_its_sum_only"
_BETWEEN = f"{_SURVEY}test_a_result_says_between_which_times_a_changed_line_may_be"
_HIDDEN = f"{_COMPARE}test_no_row_hides_another_row_of_its_line"
_FILE = f"{_COMPARE}test_host_and_path_of_a_row_are_compared"
_REMOVED = f"{_SURVEY}test_a_row_without_a_line_counts_until_it_is_removed"
_LEFT_OUT = f"{_SURVEY}test_a_run_that_left_rows_out_takes_nothing_back"
_DROPPED = f"{_SAMPLER}test_a_reload_that_draws_nothing_drops_what_is_drawn"
_NOTES = "tests/unit/audit/topic/test_notes.py::"

MUTANTS = (
    Mutant(
        "the first ranges of a period are drawn",
        "agent/sampling/draw.py",
        "        if len(self._kept) >= self._limit and _order(each) >= _order(self._kept[-1]):\n",
        "        if len(self._kept) >= self._limit:\n",
        (f"{_DRAW}test_a_draw_depends_on_nothing_but_what_was_delivered",),
    ),
    Mutant(
        "a range has the same lot in every period",
        "agent/sampling/draw.py",
        "_PLACE.pack(agent, period, intent.file, intent.first)",
        "_PLACE.pack(agent, 0, intent.file, intent.first)",
        (f"{_DRAW}test_a_draw_depends_on_nothing_but_what_was_delivered",),
    ),
    Mutant(
        "a replaced range stays in the state",
        "agent/sampling/sampler.py",
        "                changes.forget_drawn([replaced])\n",
        "                changes.forget_drawn([])\n",
        (f"{_SAMPLER}test_an_agent_draws_no_more_ranges_than_it_is_told",),
    ),
    Mutant(
        "a told range stays in the state, and a restarted agent tells it again",
        "agent/sampling/sampler.py",
        "        changes.forget_drawn([each])\n",
        "        changes.forget_drawn([])\n",
        (f"{_SAMPLER}test_a_sample_has_the_sums_of_what_brokers_have",),
    ),
    Mutant(
        "recipes of drawn ranges are deleted at the next start",
        "agent/state/changes.py",
        '            " AND fingerprint NOT IN (SELECT recipe FROM drawn)",\n',
        '            "",\n',
        (f"{_SAMPLER}test_recipes_are_kept_as_long_as_drawn_ranges_need_them",),
    ),
    Mutant(
        "records are made of bytes that were not sent",
        "agent/sampling/sampler.py",
        "len(data) == intent.length and crc_of(data) == intent.crc",
        "len(data) == intent.length",
        (f"{_SAMPLER}test_what_is_not_there_any_more_is_told_as_gone",),
    ),
    Mutant(
        "a sample has the path that rotation has given to the file",
        "agent/sampling/sampler.py",
        "else tracked.birth.path,",
        "else tracked.location,",
        (f"{_SAMPLER}test_a_sample_has_the_path_that_was_announced",),
    ),
    Mutant(
        "another version of the program tells what it would make",
        "agent/sampling/sampler.py",
        "if recipe is None or recipe != at_present(recipe):",
        "if recipe is None:",
        (f"{_SAMPLER}test_another_program_does_not_tell_what_it_would_make",),
    ),
    Mutant(
        "a file that cannot be read for a moment is told as gone",
        "agent/sampling/sampler.py",
        "            if self._attempts < ATTEMPTS_MAX:\n",
        "            if self._attempts < 0:\n",
        (f"{_SAMPLER}test_an_unreadable_file_is_tried_again_and_then_told_as_gone",),
    ),
    Mutant(
        "the last records of a long range are never told",
        "agent/batches/range_records.py",
        "at = lot % (len(firsts) - limit + 1)",
        "at = lot % (len(firsts) - limit)",
        (f"{_RECORDS}test_a_sample_tells_whole_ranges_or_a_drawn_part",),
    ),
    Mutant(
        "a sum gets the position of another line",
        "agent/batches/range_records.py",
        '    chosen = chosen[np.argsort(records.first[chosen], kind="stable")]\n',
        "",
        (f"{_RECORDS}test_a_part_has_rising_positions_with_their_own_sums",),
    ),
    Mutant(
        "the content sum leaves the event time out",
        "audit/counts/content.py",
        "_HEAD.pack(time_ms, length)",
        "_HEAD.pack(0, length)",
        (f"{_SUMS}test_equal_records_have_equal_sums_and_every_part_counts",),
    ),
    Mutant(
        "a row with a value that no record can have hides all rows beside it",
        "audit/sampling/row_contents.py",
        "        if table.num_rows <= 1:\n",
        "        if table.num_rows:\n",
        (f"{_ROWS}test_a_value_that_no_record_can_have_differs",),
    ),
    Mutant(
        "rows of other files belong to a sample",
        "audit/sampling/row_contents.py",
        '(columns["_agent"] == span.agent) & (columns["_file_id"] == span.file)',
        'columns["_agent"] == span.agent',
        (f"{_ROWS}test_only_rows_of_the_span_are_read",),
    ),
    Mutant(
        "a renamed column makes all rows differ",
        "audit/sampling/row_contents.py",
        "        if at < 0:\n",
        "        if at < -1:\n",
        (f"{_ROWS}test_what_cannot_be_turned_back_is_no_difference",),
    ),
    Mutant(
        "a second row of a line is overlooked",
        "audit/sampling/comparison.py",
        "    if len(rows) > 1:\n",
        "    if len(rows) > 2:\n",
        (f"{_COMPARE}test_rows_are_equal_or_differ",),
    ),
    Mutant(
        "of two rows only the first is compared",
        "audit/sampling/comparison.py",
        "    for row in rows:\n",
        "    for row in rows[:1]:\n",
        (f"{_COMPARE}test_rows_are_equal_or_differ",),
    ),
    Mutant(
        "a reject hides a changed row of its line",
        "audit/sampling/comparison.py",
        "    if difference is None and len(kept) < len(rows):\n",
        "    if len(kept) < len(rows):\n",
        (_HIDDEN,),
    ),
    Mutant(
        "a row that cannot be compared hides other rows of its line",
        "audit/sampling/comparison.py",
        "    elif difference is None and kept[0].content is None:\n",
        "    elif kept[0].content is None:\n",
        (_HIDDEN,),
    ),
    Mutant(
        "a line with a row and a reject is equal",
        "audit/sampling/comparison.py",
        "is None and len(kept) < len(rows):\n",
        "is None and not kept:\n",
        (f"{_COMPARE}test_a_line_with_a_row_and_a_reject_is_not_equal",),
    ),
    Mutant(
        "the host of a row is not compared",
        "audit/sampling/comparison.py",
        "row.host not in {None, wanted.sample.host} or ",
        "",
        (_FILE,),
    ),
    Mutant(
        "the path of a row is not compared",
        "audit/sampling/comparison.py",
        " or row.path not in {None, wanted.sample.path}:",
        ":",
        (_FILE,),
    ),
    Mutant(
        "a row without host is not compared with the line's host",
        "audit/sampling/row_contents.py",
        '    return [each or "" for each in table.column(name).to_pylist()]\n',
        "    return table.column(name).to_pylist()\n",
        (f"{_ROWS}test_host_and_path_of_a_row_are_read",),
    ),
    Mutant(
        "a row that the load has left out is compared as not loaded",
        "audit/sampling/comparison.py",
        "    elif record.offset < ends.get(record.partition, 0):\n",
        "    elif record.offset < 0:\n",
        (f"{_COMPARE}test_records_are_compared_if_there_is_no_row",),
    ),
    Mutant(
        "rows that the agent would not make are overlooked",
        "audit/sampling/comparison.py",
        "        if each.first not in sums and not each.is_reject:\n",
        "        if each.first not in sums and each.is_reject:\n",
        (f"{_COMPARE}test_rows_are_equal_or_differ",),
    ),
    Mutant(
        "a file that cannot be read makes its rows missing",
        "audit/sampling/survey.py",
        "if topics and not result.unread else {}",
        "if topics else {}",
        (f"{_SURVEY}test_a_file_that_cannot_be_read_is_named",),
    ),
    Mutant(
        "a run that could not look at a row calls it good",
        "audit/sampling/sample_report.py",
        "                if (x.agent, x.file, x.first) not in seen and not _is_removed(each, x)\n",
        "                if (x.agent, x.file, x.first) in seen and not _is_removed(each, x)\n",
        (f"{_SURVEY}test_a_result_takes_back_only_what_was_compared_again",),
    ),
    Mutant(
        "a row without a line counts although a reload has removed it",
        "audit/sampling/sample_report.py",
        " not in seen and not _is_removed(each, x)\n",
        " not in seen\n",
        (_REMOVED,),
    ),
    Mutant(
        "a run that did not read all files takes back a row without a line",
        "audit/sampling/sample_report.py",
        "earlier.tier != Tier.HDFS or surveyed.unread or not surveyed.output",
        "earlier.tier != Tier.HDFS or not surveyed.output",
        (_REMOVED,),
    ),
    Mutant(
        "a run whose output lacks the topic takes back a row without a line",
        "audit/sampling/sample_report.py",
        "surveyed.unread or not surveyed.output:",
        "surveyed.unread:",
        (_REMOVED,),
    ),
    Mutant(
        "a run that looked for rows takes back a record without a line",
        "audit/sampling/sample_report.py",
        "    if earlier.tier != Tier.HDFS or ",
        "    if ",
        (_REMOVED,),
    ),
    Mutant(
        "a run that read other bytes takes back a row without a line",
        "audit/sampling/wanted.py",
        "return is_sampled and first not in self.part.firsts",
        "return first not in self.part.firsts",
        (_REMOVED,),
    ),
    Mutant(
        "a run that could not compare a line takes back its difference",
        "audit/sampling/wanted.py",
        "return is_sampled and first not in self.part.firsts",
        "return is_sampled",
        (f"{_SURVEY}test_a_result_takes_back_only_what_was_compared_again",),
    ),
    Mutant(
        "a repeated or mirrored sample is another sample",
        "audit/topic/sample.py",
        "        return self.agent, self.period, self.file, self.first\n",
        "        return self.agent, self.period, self.file, id(self)\n",
        (f"{_EVIDENCE}test_samples_are_taken_once_and_by_their_day",),
    ),
    Mutant(
        "a difference stays although a newer comparison found none",
        "audit/evidence/ledger_rows.py",
        "        if message.differing:\n",
        "        if message:\n",
        (f"{_EVIDENCE}test_the_newest_comparison_of_a_day_counts",),
    ),
    Mutant(
        "the collector does not judge a bucket again when it hears of a difference",
        "audit/judgement/dependence.py",
        "            tuple(facts.topic.samples),\n",
        "",
        (f"{_EVIDENCE}test_the_collector_judges_a_bucket_again_when_it_hears_of_a_difference",),
    ),
    Mutant(
        "a difference belongs to every bucket of its topic",
        "audit/judgement/topic_judgement.py",
        "[x for x in result.differences if start <= x.time_ms < start + size]\n",
        "[x for x in result.differences if start <= start + size]\n",
        (f"{_WHY}test_where_content_differs",),
    ),
    Mutant(
        "a run that could not read all files takes differences back",
        "audit/sampling/sample_report.py",
        "set() if each.unread else compared.lines",
        "compared.lines",
        (_LEFT_OUT,),
    ),
    Mutant(
        "a run that left lines out forgets the differences that were not listed",
        "audit/sampling/sample_report.py",
        "            if each.unread or compared.uncompared:\n",
        "            if compared.uncompared:\n",
        (_LEFT_OUT,),
    ),
    Mutant(
        "a range is made into records without the labels that the agent has forgotten",
        "agent/sampling/sampler.py",
        "        if tracked.labels and tracked.labels[0].first > intent.first:\n",
        "        if not tracked:\n",
        (
            "tests/unit/agent/test_labels.py::"
            "test_a_sample_of_a_range_whose_labels_are_forgotten_is_gone",
        ),
    ),
    Mutant(
        "ranges are told although nothing is to be drawn any more",
        "agent/sampling/sampler.py",
        "            self._draws.clear()\n",
        "",
        (_DROPPED,),
    ),
    Mutant(
        "dropped ranges stay in the state",
        "agent/sampling/sampler.py",
        "            changes.forget_all_drawn()\n",
        "            pass\n",
        (_DROPPED,),
    ),
    Mutant(
        "a note may have half of a surrogate pair",
        "audit/topic/notes.py",
        "    if not _is_unicode(record):\n",
        "    if not record:\n",
        (f"{_NOTES}test_what_only_begins_like_a_note_is_refused",),
    ),
    Mutant(
        "a note may have a sender of any length",
        "audit/topic/notes.py",
        "isinstance(x, str) and len(x) <= _NAME_MAX",
        "isinstance(x, str)",
        (f"{_NOTES}test_what_only_begins_like_a_note_is_refused",),
    ),
    Mutant(
        "notes are never deleted",
        "audit/evidence/ledger_rows.py",
        "DELETE FROM notes WHERE time < ?",
        "DELETE FROM notes WHERE time < ? AND 0",
        (f"{_NOTES}test_old_notes_are_deleted",),
    ),
    Mutant(
        "a result may have any day",
        "audit/topic/sample_result.py",
        '    if not 0 <= record["day"] < DAYS_END_MS:\n',
        '    if record["day"] is None:\n',
        (f"{_SURVEY}test_a_result_of_no_day_is_refused",),
    ),
    Mutant(
        "a bucket with differences that no list has is complete",
        "audit/judgement/topic_judgement.py",
        "and times[0] < start + size and times[1] >= start:\n",
        "and start <= times[0] < start + size:\n",
        (f"{_WHY}test_differences_that_no_list_has_leave_no_bucket_complete",),
    ),
    Mutant(
        "the times of differences that no list has are forgotten by the next comparison",
        "audit/sampling/sample_report.py",
        "                times += [ms for x in before for ms in x.unlisted_times]\n",
        "                pass\n",
        (f"{_SURVEY}test_a_result_says_when_the_lines_were_that_it_does_not_list",),
    ),
    Mutant(
        "a changed row has its line's event time",
        "audit/sampling/comparison.py",
        "        return content == self.found.content or part.least_ms == part.greatest_ms\n",
        "        return True\n",
        (_TIME,),
    ),
    Mutant(
        "a changed row makes a bucket incomplete in which its line cannot be",
        "audit/sampling/comparison.py",
        "        if not self.has_line:\n",
        "        if part:\n",
        (_TIME,),
    ),
    Mutant(
        "a result does not say between which times a changed line may be",
        "audit/sampling/sample_report.py",
        "            times = _unproven_times(compared)\n",
        "            times: list[int] = []\n",
        (_BETWEEN,),
    ),
    Mutant(
        "a kept difference loses the times between which its line may be",
        "audit/sampling/sample_report.py",
        "            if kept or unlisted:\n",
        "            if unlisted:\n",
        (_BETWEEN,),
    ),
    Mutant(
        "a bucket in which a line of a listed difference may be is complete",
        "audit/topic/sample_result.py",
        "        return times if self.unlisted or any(times) else ()\n",
        "        return times if self.unlisted else ()\n",
        (f"{_WHY}test_lines_of_unknown_event_times_leave_no_bucket_complete",),
    ),
)
