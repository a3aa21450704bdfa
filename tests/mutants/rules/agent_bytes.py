"""Mutants of the rules by which the agent finds records in the bytes of files (with any byte order,
with byte order marks, with runs of NUL bytes), and by which it skips bytes and files.
"""

from mutants.mutant import Mutant

WIDE = "tests/unit/agent/parsing/test_wide_framing.py::"
HOLES = "tests/unit/agent/parsing/test_holes.py::"
UTF_16 = "tests/unit/agent/test_utf16.py::"
NUL_RUNS = "tests/unit/agent/test_nul_runs.py::"

START_AT = "tests/unit/agent/test_start_at.py::"
CHANGES = "tests/unit/agent/test_start_at_changes.py::"
IDLE = "tests/unit/agent/test_idle_files.py::"
SKIPS = "tests/model/test_agent_skips.py::"
TURNS = "tests/model/test_agent_turns.py::"

MUTANTS = (
    Mutant(
        "the code units of all ranges begin with the first range",
        "agent/parsing/framing.py",
        """            units = self._units(data, begin, end)
            line_ends""",
        """            units = self._units(data, begin // 2 * 2 if self.unit > 1 else begin, end)
            line_ends""",
        (WIDE + "test_ranges_are_framed_together_as_each_by_itself",),
    ),
    Mutant(
        "a line feed counts although its bytes belong to two characters",
        "agent/parsing/framing.py",
        """        while (at := data.rfind(self._lf, 0, end)) >= 0 and at % self.unit:
""",
        """        while (at := data.rfind(self._lf, 0, end)) >= 0 and at % 1:
""",
        (WIDE + "test_however_the_bytes_arrive_the_lines_are_the_same",),
    ),
    Mutant(
        "the byte order is that of the source, not of the file",
        "agent/files/sources.py",
        "return self.big_endian if self.big_endian is not None and is_big_endian else usual\n",
        "return usual\n",
        (UTF_16 + "test_utf16_lines_are_delivered_however_they_are_written",),
    ),
    Mutant(
        "the byte order is decided before the mark is written",
        "agent/files/sources.py",
        "            if len(head) == 2:",
        "            if head:",
        (UTF_16 + "test_half_a_mark_decides_nothing",),
    ),
    Mutant(
        "a byte order mark is taken off every range",
        "agent/batches/framed_lines.py",
        "for i, reading in enumerate(self.readings) if not reading.intent.first]",
        "for i, reading in enumerate(self.readings)]",
        (
            UTF_16 + "test_a_mark_in_the_middle_of_a_file_stays_in_the_text",
            UTF_16 + "test_a_utf8_mark_is_no_part_of_the_first_line",
        ),
    ),
    Mutant(
        "NUL bytes at the beginning of a line belong to the line",
        "agent/parsing/framing.py",
        "    is_hole = begins_line | ((end - first) * unit >= HOLE_BYTES)\n",
        "    is_hole = (end - first) * unit >= HOLE_BYTES\n",
        (HOLES + "test_holes_are_those_of_a_simple_program",),
    ),
    Mutant(
        "a hole counts as whole although more NUL bytes may follow",
        "agent/parsing/framing.py",
        "        is_over = end[-1] < len(units)",
        "        is_over = True",
        (HOLES + "test_what_follows_never_changes_a_hole",),
    ),
    Mutant(
        "a large hole takes the line behind it along",
        "agent/files/reading.py",
        """    if not is_hole:
        return lines.end_inside(piece)
""",
        """    if lines.unit:
        return lines.end_inside(piece)
""",
        (NUL_RUNS + "test_a_large_hole_is_at_most_two_rejected_ranges",),
    ),
    Mutant(
        "a run of NUL bytes that two readings of a long line divide is no hole",
        "agent/files/reading.py",
        "if is_hole else lines.size_before_nuls(piece)\n",
        "if lines.unit else lines.size_before_nuls(piece)\n",
        (NUL_RUNS + "test_how_much_is_read_at_once_does_not_decide_where_a_long_line_ends",),
    ),
    Mutant(
        "a hole may be a part of a record of several lines",
        "agent/parsing/multiline.py",
        "            joints.begins | hole | np.append(False, hole[:-1]),\n",
        "            joints.begins,\n",
        (HOLES + "test_a_hole_joins_no_record",),
    ),
    Mutant(
        "what was there at the first look is not skipped",
        "agent/files/sighting.py",
        "return self.found.size if self.is_first and self.source.starts_at_end else None",
        "return None",
        (START_AT + "test_what_was_written_before_the_first_look_is_skipped_and_said",),
    ),
    Mutant(
        "files that appear later are skipped",
        "agent/files/first_looks.py",
        "            return False\n        return not any(\n",
        "            return bool(looks)\n        return not any(\n",
        (CHANGES + "test_a_file_that_appears_before_a_pattern_is_added_is_read_whole",),
    ),
    Mutant(
        "a change of a pattern is a first look at all of its paths",
        "agent/files/first_looks.py",
        "pattern.means(path) or (self._is_new(topic, found) and _means_base(pattern, path))",
        "False",
        (CHANGES + "test_a_log_that_was_rotated_before_a_pattern_changed_is_read_whole",),
    ),
    Mutant(
        "a wider pattern skips rotated files that are new",
        "agent/files/first_looks.py",
        "pattern.means(path) or (self._is_new(topic, found) and _means_base(pattern, path))",
        "pattern.means(path)",
        (
            CHANGES
            + "test_a_wider_pattern_skips_only_rotated_files_that_are_older_than_the_last_look",
        ),
    ),
    Mutant(
        "a wider pattern reads rotated files from before the first look",
        "agent/files/first_looks.py",
        "pattern.means(path) or (self._is_new(topic, found) and _means_base(pattern, path))",
        "pattern.means(path) or _means_base(pattern, path)",
        (
            CHANGES
            + "test_a_wider_pattern_skips_only_rotated_files_that_are_older_than_the_last_look",
        ),
    ),
    Mutant(
        "a clock that was set back makes new rotated files old",
        "agent/files/first_looks.py",
        "since_ms is None or since_ms > self._now_ms + SLACK_MS",
        "since_ms is None",
        (CHANGES + "test_a_wider_pattern_after_the_clock_was_set_back_loses_no_line",),
    ),
    Mutant(
        "what an earlier pattern found through a link counts as new",
        "agent/files/first_looks.py",
        "                self._led.setdefault(directory, set()).add(above)\n",
        "                pass\n",
        (CHANGES + "test_a_pattern_that_goes_round_a_link_skips_no_new_file",),
    ),
    Mutant(
        "the state forgets what looks excluded",
        "agent/state/database.py",
        "exclude = json.loads(value) if isinstance(value, str) else []",
        "exclude: list[str] = []",
        (CHANGES + "test_a_file_that_every_look_excluded_is_skipped",),
    ),
    Mutant(
        "the last look alone says what was excluded",
        "agent/files/first_looks.py",
        "seen = pattern if before is None else _both(before, pattern)",
        "seen = pattern",
        (CHANGES + "test_a_file_that_an_early_look_did_not_exclude_is_read_whole",),
    ),
    Mutant(
        "a restart is a first look",
        "agent/loop/parts.py",
        "        tracker.first_looks.load(self._state.looked(), since)\n",
        "",
        (START_AT + "test_files_that_appear_later_are_read_whole",),
    ),
    Mutant(
        "a file that could not be opened at first is skipped up to its present end",
        "agent/files/unopened.py",
        "        return before.skip\n",
        "        return sighting.found.size\n",
        (START_AT + "test_a_file_that_cannot_be_opened_at_first_begins_where_it_ended_then",),
    ),
    Mutant(
        "skipped bytes are skipped again after the file was cut",
        "agent/files/unopened.py",
        "before._replace(found=found, skip=None))",
        "before._replace(found=found))",
        (START_AT + "test_a_file_that_was_cut_before_it_could_be_opened_is_read_whole",),
    ),
    Mutant(
        "the bytes before the first mark count as read",
        "agent/values/identity.py",
        "    return marks[0].position if marks and not marks[0].crc else 0\n",
        "    return 0\n",
        (START_AT + "test_a_skipped_file_is_recognised_after_a_restart",),
    ),
    Mutant(
        "a skipped file is closed before it is announced",
        "agent/accounts/register.py",
        "            if not tracked.announced_ms:\n",
        "            if tracked.file < 0:\n",
        (START_AT + "test_compressed_files_are_skipped_whole",),
    ),
    Mutant(
        "a compressed file that holds a known file may be too old",
        "agent/files/recognition.py",
        "any(map(self._known.gone, sighting.bases)):",
        "False:",
        (IDLE + "test_a_compressed_generation_that_was_read_is_no_ignored_file",),
    ),
    Mutant(
        "a file that waits to be opened becomes too old",
        "agent/files/recognition.py",
        "if not is_old(source, found, self._now_ms) or self._unopened.has(found.key):",
        "if not is_old(source, found, self._now_ms):",
        (IDLE + "test_a_file_that_could_not_be_opened_does_not_become_too_old",),
    ),
    Mutant(
        "a file that changed while no agent ran may be too old",
        "agent/files/recognition.py",
        "        if sighting.is_missed:\n            return False\n",
        "",
        (
            IDLE + "test_a_file_that_changed_after_the_last_look_is_never_too_old",
            SKIPS + "test_only_files_that_stood_still_are_left_alone",
        ),
    ),
    Mutant(
        "after the clock was set back, every old file has changed",
        "agent/files/first_looks.py",
        "return self._changed(topic, found) is True",
        "return self._changed(topic, found) is not False",
        (IDLE + "test_a_clock_that_was_set_back_makes_no_old_file_new",),
    ),
    Mutant(
        "an idle file is never closed",
        "agent/files/reading.py",
        "            self._handles.close_idle(now - self._close_inactive_s, self._is_read)\n",
        "            pass\n",
        (SKIPS + "test_closing_idle_files_loses_and_doubles_nothing",),
    ),
    Mutant(
        "old files are not counted",
        "agent/files/recognition.py",
        "        self.ignored.add(source.topic, found)\n",
        "",
        (IDLE + "test_an_old_file_is_counted_and_read_whole_when_it_changes",),
    ),
    Mutant(
        "a deleted file is closed early",
        "agent/files/handles.py",
        "            if may_close(file) and _has_name(self._open[file]):\n",
        "            if may_close(file):\n",
        (IDLE + "test_a_file_with_unread_bytes_or_without_a_name_stays_open",),
    ),
    Mutant(
        "a file is closed early although bytes of it are on their way",
        "agent/files/reading.py",
        """            tracked.read_position >= tracked.size
            and not tracked.flights
""",
        """            tracked.read_position >= tracked.size
""",
        (IDLE + "test_a_file_with_unread_bytes_or_without_a_name_stays_open",),
    ),
    Mutant(
        "two readings of a turn have the same number",
        "agent/files/reading.py",
        "sequence + len(taken) + 1)",
        "sequence + 1)",
        (f"{TURNS}test_a_turn_that_reads_a_file_several_times_loses_and_doubles_nothing",),
    ),
)
