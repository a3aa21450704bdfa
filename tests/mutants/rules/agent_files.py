"""Mutants of the rules by which the agent handles files. They concern how the agent distinguishes
files, how it finds out what happened to a file, and which losses it declares."""

from mutants.mutant import Mutant

QUIET = "tests/unit/agent/files/test_quiet_files.py::"
UNBEGUN = "tests/unit/agent/files/test_unbegun.py::"
SAME_FILE = "tests/unit/agent/files/test_same_file.py::"
OVERWRITTEN = "tests/unit/agent/files/test_overwritten.py::"
EMPTIED = "tests/unit/agent/files/test_emptied.py::"

BACKLOG = "tests/unit/agent/accounts/test_backlog.py::"

IDLE = "tests/unit/agent/test_idle_files.py::"
UNFINISHED = "tests/unit/agent/loop/test_unfinished.py::"

NUL_RUNS = "tests/unit/agent/test_nul_runs.py::"
FILLED = (f"{NUL_RUNS}test_lines_in_place_of_nul_bytes_are_read_and_nothing_is_silent",)

MUTANTS = (
    Mutant(
        "a look does not read the last runs of NUL bytes again",
        "agent/files/recognition.py",
        "        elif self.see_filled(tracked, now):\n            return\n",
        "",
        FILLED,
    ),
    Mutant(
        "a look leaves out a file at rest although it has runs of NUL bytes",
        "agent/files/recognition.py",
        "            and not tracked.holes\n",
        "",
        FILLED,
    ),
    Mutant(
        "a look does not read the last runs of NUL bytes of a rotated file again",
        "agent/files/tracking.py",
        "        if self._recognition.see_filled(tracked, now):\n            return\n",
        "",
        FILLED,
    ),
    Mutant(
        "a file whose holes cannot be read is closed unchecked",
        "agent/files/tracking.py",
        "            if now - tracked.rotated_at < HIDDEN_S:\n                return False\n",
        "",
        (f"{NUL_RUNS}test_a_file_whose_holes_cannot_be_read_again_is_not_closed_unchecked",),
    ),
    Mutant(
        "reading holes again leaves the file open",
        "agent/files/recognition.py",
        "            with self._handles.glance(tracked) as handle:\n",
        "            for handle in [self._handles.get(tracked)]:\n",
        (f"{NUL_RUNS}test_reading_holes_again_keeps_no_file_open",),
    ),
    Mutant(
        "an emptied log that begins with the same lines again is read on from its old end",
        "agent/files/recognition.py",
        "        if tracked.is_emptied:\n",
        "        if False:\n",
        (
            f"{EMPTIED}test_lines_that_begin_as_before_are_all_read",
            "tests/unit/agent/counting/test_counting.py::"
            "test_an_emptied_log_that_begins_as_before_is_noted_whole",
        ),
    ),
    Mutant(
        "a start forgets which emptied logs a look found",
        "agent/state/database.py",
        "        is_emptied=bool(emptied),\n",
        "",
        (f"{EMPTIED}test_lines_that_begin_as_before_are_all_read",),
    ),
    Mutant(
        "an emptied log with its old size and an old time of change is unchanged",
        "agent/files/recognition.py",
        "        and not tracked.is_emptied\n",
        "",
        (f"{EMPTIED}test_the_same_bytes_at_the_same_time_of_change",),
    ),
    Mutant(
        "the copy of an emptied log counts as new when it is compressed",
        "agent/files/known.py",
        "        tracked.changed_ns, tracked.is_emptied = found.changed_ns, False\n",
        "        tracked.changed_ns = found.changed_ns\n",
        (f"{EMPTIED}test_a_copy_that_is_compressed_later_is_not_read_again",),
    ),
    Mutant(
        "an emptied log that begins with the same lines again has no copy with others",
        "agent/files/recognition.py",
        "            self._truncated.add(found.path)  # bytes may",
        "            pass  # bytes may",
        (f"{EMPTIED}test_lines_that_are_only_in_a_copy_are_read",),
    ),
    Mutant(
        "a log that was cut to a part of its first bytes has kept none of its lines",
        "agent/values/identity.py",
        "        return Proven(0, 0, True)\n",
        "        return Proven(0, 0, False)\n",
        (f"{SAME_FILE}test_lines_that_a_cut_kept_are_declared_if_they_come_twice",),
    ),
    Mutant(
        "a first line that each log has proves that a cut has kept it",
        "agent/values/identity.py",
        "    if not same and mark in marks[:1]:\n        return Proven(0, 0, True)\n",
        "",
        (f"{SAME_FILE}test_a_first_line_that_each_log_has_is_read_again",),
    ),
    Mutant(
        "a log that was quiet before its deletion is closed at once",
        "agent/files/reading.py",
        "max(tracked.grown_at, tracked.rotated_at) + self._close_rotated_s",
        "tracked.grown_at + self._close_rotated_s",
        (f"{IDLE}test_a_quiet_log_that_is_deleted_is_read_on_for_a_while",),
    ),
    Mutant(
        "a log with a name that no look finds is closed",
        "agent/files/tracking.py",
        "return self._known.find(tracked, is_held=True) is None",
        "return False",
        (f"{IDLE}test_a_log_that_no_look_finds_stays_open_while_it_has_a_name",),
    ),
    Mutant(
        "a log with a name that no look finds stays open for ever",
        "agent/files/tracking.py",
        " or now - tracked.rotated_at >= HIDDEN_S",
        "",
        (f"{IDLE}test_a_log_that_no_look_finds_is_closed_after_a_day",),
    ),
    Mutant(
        "notes pile up in the state while the brokers are away",
        "agent/accounts/backlog.py",
        "if now < self._tell_at or self._mail.has(self._last_id):",
        "if now < self._tell_at:",
        (f"{BACKLOG}test_one_note_waits_at_most",),
    ),
    Mutant(
        "bytes become younger when notes of a file's end are merged",
        "agent/accounts/backlog.py",
        "(later[0], earlier[1])",
        "(later[0], later[1])",
        (f"{BACKLOG}test_the_notes_of_a_file_are_few_and_never_make_bytes_younger",),
    ),
    Mutant(
        "a file that was deleted while the agent has it open has time left",
        "agent/accounts/backlog.py",
        "return tracked.is_deleted or (handle is not None and not handle.status().links)",
        "return False",
        (f"{BACKLOG}test_a_file_without_a_name_is_lost_at_once",),
    ),
    Mutant(
        "files that cannot be opened have no unread bytes",
        "agent/accounts/backlog.py",
        "if file.may_begin and file.found.size > 0:",
        "if False:",
        (f"{BACKLOG}test_a_file_that_cannot_be_opened_is_told_as_unread",),
    ),
    Mutant(
        "a start forgets which empty files and old files were at the paths",
        "agent/files/tracking.py",
        """            if base is None and is_meant(found.path, self.sources):
                lay.append(found)
""",
        """            del base
""",
        (f"{UNBEGUN}test_lines_written_and_rotated_between_two_looks",),
    ),
    Mutant(
        "a log without a file id that is copied and truncated is like one that grew",
        "agent/files/recognition.py",
        "        self._truncated.update(found.path for found in files)\n",
        "        del files\n",
        (
            f"{UNBEGUN}test_lines_written_and_rotated_between_two_looks",
            f"{UNBEGUN}test_a_log_that_is_empty_again_after_it_was_copied",
        ),
    ),
    Mutant(
        "an old empty log is left alone as soon as it is rotated",
        "agent/files/history.py",
        "            return bool(found.size) or not is_before\n",
        "            return True\n",
        (f"{UNBEGUN}test_an_old_empty_log_that_is_written_after_its_rotation",),
    ),
    Mutant(
        "a start forgets the empty generations to which programs may still write",
        "agent/files/rotations.py",
        "        self._waited = list(files)\n",
        "        del files\n",
        (f"{UNBEGUN}test_an_old_empty_log_that_is_written_after_its_rotation",),
    ),
    Mutant(
        "an unopened file whose source is removed is forgotten without a word",
        "agent/files/tracking.py",
        "            self._disown_unopened(file)\n",
        "            self._unopened.remove(file.found.key)\n",
        (f"{UNBEGUN}test_an_unopened_file_whose_source_is_removed",),
    ),
    Mutant(
        "a touch of a closed generation is declared as a loss",
        "agent/files/recognition.py",
        "if doubt is None and is_log and self._is_being_written(",
        "if doubt is None and self._is_being_written(",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_touch_of_a_closed_generation_is_nothing",
        ),
    ),
    Mutant(
        "a closed generation is looked at again only if its size differs",
        "agent/files/tracking.py",
        "        if there is not None and there.key == tracked.birth.key:\n            source",
        "        if there is not None and there.key == tracked.birth.key "
        "and there.size != tracked.length:\n            source",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_closed_generation_that_is_rewritten_with_the_same_size",
        ),
    ),
    Mutant(
        "an old file that came to a path hides the generations that are younger than it",
        "agent/files/history.py",
        "        if look.leads_to_older(base, index) or self._known.was_found_elsewhere(here):\n"
        "            return False  # the file at the path came from another path\n",
        "",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_an_old_file_that_came_to_the_path_hides_no_generation",
        ),
    ),
    Mutant(
        "an empty generation is known by its inode, whatever lies there now",
        "agent/files/rotations.py",
        "        if there is None or (there.key, there.born_ns) != (found.key, found.born_ns):\n"
        "            return None\n"
        "        return None if is_meant(there.path, sources) else there\n",
        "        return there if there is None or there.key == found.key else None\n",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_an_empty_generation_whose_inode_another_log_has_by_now",
        ),
    ),
    Mutant(
        "a file that was compressed is known by its inode alone, which another one may have since",
        "agent/files/known.py",
        "        is_moved = (key, born_ns) in self._moved_to\n"
        "        key = self._moved_to.get((key, born_ns), key)\n",
        "        moved = {each: to for (each, _), to in self._moved_to.items()}\n"
        "        is_moved, key = key in moved, moved.get(key, key)\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_log_with_the_inode_that_another_one_had_before_it_was_compressed",
        ),
    ),
    Mutant(
        "without births an inode that was given away stays that of the compressed file",
        "agent/files/known.py",
        "        self._moved_to.pop((tracked.birth.key, None), None)"
        "  # this file id has the inode now\n",
        "",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_log_with_the_inode_that_another_one_had_before_it_was_compressed",
        ),
    ),
    Mutant(
        "a file is known by its path, so a rename gives it a new id",
        "agent/files/recognition.py",
        "        if tracked is None or self._known.copies.is_overwritten(found):\n",
        "        if tracked is None or tracked.location != found.real_path:\n",
        ("tests/unit/agent/loop/test_loop.py::test_rotation_by_rename_keeps_the_id_and_closes_it",),
    ),
    Mutant(
        "a file that was cut goes on under its id where it is long enough again",
        "agent/files/reading.py",
        """        if status.size < tracked.size:
            reason = f"it was cut to {status.size} bytes, {tracked.size} were there"
            self._tracker.replace(tracked, reason, now)
            return False
""",
        """        if status.size < tracked.read_position:
            reason = f"it was cut to {status.size} bytes, {tracked.size} were there"
            self._tracker.replace(tracked, reason, now)
            return False
""",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_bytes_that_were_cut_off_and_written_anew_between_two_looks_are_lost",
        ),
    ),
    Mutant(
        "a truncation is noticed only below the read position",
        "agent/files/recognition.py",
        """        if found.size < tracked.size:
            self.replace(tracked, cut_reason(tracked, found.size), now)
        elif is_changed and""",
        """        tracked.size = min(tracked.size, max(found.size, tracked.read_position))
        if found.size < tracked.size:
            self.replace(tracked, cut_reason(tracked, found.size), now)
        elif is_changed and""",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_bytes_that_were_cut_off_behind_the_position_are_lost",
        ),
    ),
    Mutant(
        "a file that was cut is read again from its first byte",
        "agent/files/births.py",
        """        mark = Mark(proven.position, proven.crc)
""",
        """        mark = Mark(0, 0)
""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_a_file_cut_by_a_power_loss_goes_on_where_it_is_proven",
        ),
    ),
    Mutant(
        "what may be read twice behind the last mark is not declared",
        "agent/files/births.py",
        "may_be_old = proven.same_beginning or old.is_unproven",
        "may_be_old = old.is_unproven",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_a_file_cut_by_a_power_loss_goes_on_where_it_is_proven",
        ),
    ),
    Mutant(
        "what a truncated file had unread is not declared",
        "agent/files/recognition.py",
        """            self._truncated.add(tracked.meant)
        self._endings.lose(tracked, reason)
""",
        """            self._truncated.add(tracked.meant)
        self._endings.end(tracked)
""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_truncation_gives_a_new_id_and_declares_what_was_unread",
        ),
    ),
    Mutant(
        "the marks above a proven position go on with the new id",
        "agent/files/births.py",
        "kept = tuple(each for each in marks if each.position <= mark.position)",
        "kept = marks",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_after_a_cut_only_what_is_proven_again_is_not_read_again",
        ),
    ),
    Mutant(
        "a mark is proven by the file's length alone",
        "agent/values/identity.py",
        """        if crc != mark.crc:
            break
        proven = mark
""",
        """        proven = mark
        if crc != mark.crc:
            break
""",
        ("tests/unit/agent/values/test_identity.py::test_the_highest_proven_position_is_found",),
    ),
    Mutant(
        "the bytes before the position are not compared, only counted",
        "agent/values/identity.py",
        "if len(before) != guard.length or crc_of(before) != guard.crc:",
        "if len(before) != guard.length:",
        ("tests/unit/agent/values/test_identity.py::test_other_bytes_are_noticed",),
    ),
    Mutant(
        ("bytes before the read position are not compared when a file that is held is read on"),
        "agent/files/reading.py",
        ("is_alike = data[: len(tail)] == tail if tail else _begins_as_announced(tracked, data)"),
        "is_alike = bool(tail) or _begins_as_announced(tracked, data)",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_content_replaced_in_place_is_noticed_although_the_file_grew",
        ),
    ),
    Mutant(
        (
            "bytes that were exchanged between announcement and first reading are taken for "
            "those announced"
        ),
        "agent/files/reading.py",
        ("is_alike = data[: len(tail)] == tail if tail else _begins_as_announced(tracked, data)"),
        "is_alike = data[: len(tail)] == tail",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_bytes_that_were_exchanged_before_the_first_reading",
        ),
    ),
    Mutant(
        "after a start only the last bytes before the position are proven",
        "agent/files/reading.py",
        """        if reason is None and tracked.is_unwatched:
            reason = doubt_beginning(handle.read, point.marks)
""",
        "",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_bytes_that_were_exchanged_in_the_middle_while_the_agent_was_down",
        ),
    ),
    Mutant(
        "the same bytes that are written again are taken for those that were read",
        "agent/files/recognition.py",
        (
            "        is_same = found.size == size == tracked.promised and found.born_ns == "
            "tracked.birth.born_ns\n"
        ),
        """        is_same = False
""",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_the_same_bytes_written_again_are_declared",
        ),
    ),
    Mutant(
        "names that change while they are read are taken for what is there",
        "agent/files/rotations.py",
        "is_restless = known is not None and self._is_restless(look, changed_ns)",
        "is_restless = False",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_rotation_that_takes_many_looks_is_waited_for",
        ),
    ),
    Mutant(
        "a generation is known by a name that begins with the log's only",
        "agent/files/strays.py",
        "return os.path.basename(path) in name or shape(name) in map(shape, known)",
        "return name.startswith(os.path.basename(path))",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_generations_under_any_name_that_tells_whose_they_are",
        ),
    ),
    Mutant(
        "a gap in the numbers of generations is no loss",
        "agent/files/history.py",
        ("return not self._is_there(look, before, names) or self._has_hole(look, before, names)"),
        "return not self._is_there(look, before, names)",
        ("tests/unit/agent/files/test_rotations.py::test_a_hole_in_the_numbers_is_declared",),
    ),
    Mutant(
        "generations of while the agent was down are taken for history",
        "agent/files/look.py",
        """        return min(first, now_ms)
""",
        """        return now_ms
""",
        ("tests/unit/agent/files/test_rotations.py::test_rotations_while_the_agent_was_down",),
    ),
    Mutant(
        "a generation under the name and inode of one that is gone is taken for that one",
        "agent/files/history.py",
        ("if same is None or same.inode != found.key.inode or look.is_made_since(found):"),
        "if same is None or same.inode != found.key.inode:",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_generation_under_the_name_and_inode_of_one_that_is_gone",
        ),
    ),
    Mutant(
        "a generation without a byte is forgotten",
        "agent/files/tracking.py",
        """        if not found.size and not self._known.knows(found):
            self._rotations.wait_for(found, sighting.number, base, sighting.now)
""",
        "",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_generation_that_was_empty_when_it_was_rotated",
        ),
    ),
    Mutant(
        "two looks shortly one after the other prove that a rotation is over",
        "agent/files/stillness.py",
        "is_still = abs(now_ms - before.seen_ms) >= STILL_MS",
        "is_still = True",
        (
            "tests/unit/agent/files/test_stillness.py::"
            "test_two_looks_shortly_one_after_the_other_prove_nothing",
        ),
    ),
    Mutant(
        ("a generation whose time of change is older than its birth is left alone in silence"),
        "agent/files/history.py",
        """                self._doubt_age(look, base, index, member, found)
""",
        "",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_generation_whose_time_of_change_was_set_back_is_declared",
        ),
    ),
    Mutant(
        "the time since the last look is that of a clock which can be set",
        "agent/files/look.py",
        """            return min(place.looked_ms, now_ms - elapsed_ms)
""",
        """            return place.looked_ms
""",
        ("tests/unit/agent/files/test_rotations.py::test_a_clock_that_was_set_back_hides_nothing",),
    ),
    Mutant(
        "when a topic was started with first is not kept",
        "agent/loop/beginning.py",
        "for topic in {each.data.topic for each in destinations} - state.since().keys():",
        "for topic in {each.data.topic for each in destinations}:",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_when_a_topic_was_started_with_first_is_kept",
        ),
    ),
    Mutant(
        "where a directory cannot be listed nothing of its generations is waited for",
        "agent/files/rotations.py",
        (
            "                    moment.findings.unreadable.append((source.topic, directory, "
            "reason))\n"
        ),
        """                    del reason
""",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_directory_that_cannot_be_listed_holds_the_seal_back",
        ),
    ),
    Mutant(
        "a generation that nobody saw raises no doubt",
        "agent/files/news.py",
        """        self.doubts[unseen.topic] += 1
""",
        "",
        ("tests/unit/agent/test_seals.py::test_generations_that_nobody_saw_void_what_was_noted",),
    ),
    Mutant(
        "the time of birth says nothing of an inode that is taken again",
        "agent/files/same_file.py",
        """    if None not in births and births[0] != births[1]:
        return Answer.OTHER
    if known.device""",
        "    if known.device",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_an_inode_taken_again_by_a_file_that_begins_alike",
        ),
    ),
    Mutant(
        "where no birth is known, equal first bytes make a file the same wherever it lies",
        "agent/files/same_file.py",
        "if evidence.same_bytes is False or not evidence.same_place:",
        "if evidence.same_bytes is False:",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_an_inode_taken_again_where_no_birth_is_known",
        ),
    ),
    Mutant(
        ("where no birth is known, a file with other bytes in the same place is surely the same"),
        "agent/files/same_file.py",
        "if evidence.same_bytes is False or not evidence.same_place:",
        "if not evidence.same_place:",
        ("tests/unit/agent/files/test_same_file.py::test_what_the_evidence_says",),
    ),
    Mutant(
        "a file that was seen to be deleted is the one that has its inode now",
        "agent/files/same_file.py",
        "if known.inode != found.inode or evidence.was_deleted:",
        "if known.inode != found.inode:",
        ("tests/unit/agent/files/test_same_file.py::test_what_the_evidence_says",),
    ),
    Mutant(
        "on another device what lies in the same place is the same file",
        "agent/files/same_file.py",
        "proven = evidence.same_place and evidence.same_bytes",
        "proven = evidence.same_place",
        ("tests/unit/agent/files/test_same_file.py::test_what_the_evidence_says",),
    ),
    Mutant(
        "nobody remembers that a file lost its last name",
        "agent/files/endings.py",
        """        if status is not None and not status.links:
            tracked.location = ""  # the kernel may now give the file's inode to another file
""",
        "",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_an_inode_taken_again_after_the_agent_had_the_deleted_file_open",
        ),
    ),
    Mutant(
        (
            "a file of which nobody knows whether it is the same is read without a word of "
            "what may be double"
        ),
        "agent/files/recognition.py",
        "self._begin(sighting, old, may_double=min(found.size, old.length or 0))",
        "self._begin(sighting, old)",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_an_inode_taken_again_where_no_birth_is_known",
        ),
    ),
    Mutant(
        ("a file of the same size and time under an inode that is taken again is the former one"),
        "agent/files/recognition.py",
        "if is_known and found.born_ns == tracked.birth.born_ns and not tracked.is_deleted:",
        "if is_known and not tracked.is_deleted:",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_an_inode_taken_again_by_a_file_of_the_same_size_and_time",
        ),
    ),
    Mutant(
        "a link that leads nowhere does not hold the seal",
        "agent/files/unreadable.py",
        """        for path, reason in scan.unreadable:
            self.add(topic, path, reason)
""",
        """        for path, reason in scan.unreadable:
            if path not in scan.dead:
                self.add(topic, path, reason)
""",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_a_link_that_leads_nowhere_holds_the_seal_by_name",
        ),
    ),
    Mutant(
        "a link that leads nowhere is found to be nothing",
        "agent/files/operating_system.py",
        'scan.unreadable.append((path, "it is a link that leads nowhere"))',
        "pass",
        ("tests/unit/agent/files/test_host.py::test_a_link_that_leads_nowhere_is_named",),
    ),
    Mutant(
        "generations are looked for beside the link, not beside its target",
        "agent/files/rotations.py",
        'directory = found.real_path.rpartition("/")[0] or "/"',
        'directory = found.path.rpartition("/")[0] or "/"',
        ("tests/unit/agent/files/test_links.py",),
    ),
    Mutant(
        "links are watched where they lie, not where their files do",
        "agent/files/tracking.py",
        "self.linked_directories = frozenset(os.path.dirname(path) for path in linked)",
        ("self.linked_directories = frozenset(os.path.dirname(path) for path in linked.values())"),
        ("tests/unit/agent/files/test_links.py::test_an_event_of_the_target_is_one_of_the_link",),
    ),
    Mutant(
        "where a link leads is noted before it is compared with where it led",
        "agent/files/links.py",
        """            before = self._led.get(path, found.real_path)
            led[path] = found.real_path
""",
        """            led[path] = self._led[path] = found.real_path
            before = self._led.get(path, found.real_path)
""",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_what_a_link_led_to_between_two_looks_is_read",
        ),
    ),
    Mutant(
        "a link that leads somewhere else altogether is followed in silence",
        "agent/files/rotations.py",
        """            if places is None:
                moment.findings.miss(source, found.path, REPOINTED)
""",
        "",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_a_link_that_leads_somewhere_else_altogether_is_declared",
        ),
    ),
    Mutant(
        "a generation that seems younger than the log is left alone, though the clock was set back",
        "agent/files/history.py",
        "is_told = base not in look.moment.truncated and not look.was_set_back",
        "is_told = base not in look.moment.truncated",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_clock_that_is_set_back_between_two_rotations_hides_nothing",
        ),
    ),
    Mutant(
        "by a clock that was set back a link has led to nothing since the last look",
        "agent/files/rotations.py",
        "return min(self._looked_ms, said_ms), said_ms + STEP_MS < self._looked_ms",
        "return min(self._looked_ms, moment.now_ms), said_ms + STEP_MS < self._looked_ms",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_what_a_link_led_to_while_the_clock_was_set_back",
        ),
    ),
    Mutant(
        "whatever lies in the directories between is taken for a link's former target",
        "agent/files/links.py",
        """            if any(_shape(each, base) in shapes for base in _bases(name))
""",
        "",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_logs_of_other_names_where_a_link_led_in_between_are_left_alone",
        ),
    ),
    Mutant(
        "the names of containers that are called by their ids are all different",
        "agent/files/links.py",
        'return shape(name.replace(id_, "/") if len(id_) >= ID_LENGTH_MIN else name)',
        "return shape(name)",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_containers_whose_logs_are_called_by_their_ids",
        ),
    ),
    Mutant(
        "of a container that was started again only the newest log is read",
        "agent/files/sources.py",
        """            self.numbered.setdefault(shape(name), path)
""",
        """            self.numbered.setdefault(name, path)
""",
        (
            "tests/unit/agent/files/test_links.py::"
            "test_containers_that_are_started_again_between_two_looks",
        ),
    ),
    Mutant(
        "of a copy nothing is read, though its original was truncated unread",
        "agent/files/copies.py",
        """        if found.size > self._bytes_there(original, base):
            return False
""",
        "",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_what_a_copy_holds_of_truncated_bytes_is_read",
        ),
    ),
    Mutant(
        "a file that seems older than a log is no copy of it, though the clock was set back",
        "agent/files/same_file.py",
        "    shared = read if is_older else count\n",
        "    shared = 0 if is_older else count\n",
        ("tests/unit/agent/files/test_strays.py::test_a_copy_that_seems_older_than_its_log",),
    ),
    Mutant(
        "a file that seems older than a log and has its bytes is surely a copy",
        "agent/files/same_file.py",
        "    if is_in_place and not is_older:\n",
        "    if is_in_place:\n",
        ("tests/unit/agent/files/test_strays.py::test_an_earlier_log_is_no_copy",),
    ),
    Mutant(
        "an earlier log with the first bytes of a log that was not read yet may be its copy",
        "agent/files/same_file.py",
        "    shared = read if is_older else count\n",
        "    shared = count\n",
        ("tests/unit/agent/files/test_strays.py::test_an_earlier_log_is_no_copy",),
    ),
    Mutant(
        "a younger file with the name of a generation is a copy whatever its bytes are",
        "agent/files/copies.py",
        "alike = Answer.OTHER if answer is Answer.OTHER else self._begins(handle, found, each)",
        "alike = Answer.OTHER if answer is Answer.OTHER else Answer.SAME",
        ("tests/unit/agent/files/test_strays.py",),
    ),
    Mutant(
        "a copy over an older copy is a file that was rewritten",
        "agent/files/recognition.py",
        "        if not self._known.copies.note_overwritten(found, sighting.bases):\n",
        "        if True:\n",
        (f"{OVERWRITTEN}test_a_copy_over_an_older_copy_is_read_from_where_its_log_was_read",),
    ),
    Mutant(
        "a copy over an older copy is as old as that",
        "agent/files/copies.py",
        "born_ns = self._overwritten[found.key][2] if self.is_overwritten(found) else ",
        "born_ns = ",
        (f"{OVERWRITTEN}test_a_copy_over_a_file_that_is_older_than_its_log",),
    ),
    Mutant(
        "a copy over an older copy is still the older copy",
        "agent/files/known.py",
        "tracked is None or tracked.is_deleted or self.copies.is_overwritten(found):",
        "tracked is None or tracked.is_deleted:",
        (f"{OVERWRITTEN}test_a_growing_log_that_is_copied_over_an_older_copy",),
    ),
    Mutant(
        "whatever lies over an older copy is a copy for ever",
        "agent/files/copies.py",
        """        self._overwritten.pop(tracked.birth.key, None)
        self._add(""",
        "        self._add(",
        (f"{OVERWRITTEN}test_a_copy_that_is_written_over_an_older_copy_in_two_steps",),
    ),
    Mutant(
        "what was in a copy before is declared at each start",
        "agent/files/recognition.py",
        """        if is_new or not is_overwritten:
            self._note_rewritten(sighting.found""",
        """        if True:
            self._note_rewritten(sighting.found""",
        (f"{OVERWRITTEN}test_what_was_in_a_copy_before_is_declared_once",),
    ),
    Mutant(
        "a file that was there at the last look was not written over since",
        "agent/files/history.py",
        """        if _may_be_overwritten(look, base, index, found):
            return False
        same""",
        "        same",
        (f"{OVERWRITTEN}test_a_copy_over_a_copy_that_was_never_read_is_read",),
    ),
    Mutant(
        "a file that is older than the last look was not written over since",
        "agent/files/history.py",
        """        if _may_be_overwritten(look, base, index, found):
            return False
        return found.born_ns""",
        "        return found.born_ns",
        (f"{OVERWRITTEN}test_a_copy_over_a_copy_that_was_never_read_is_read",),
    ),
    Mutant(
        "a copy is compared with what its log had before",
        "agent/files/recognition.py",
        "return self._replace_rewritten(base, sighting.now) and self._see_copy(sighting, base)",
        "return False",
        (f"{OVERWRITTEN}test_a_copy_of_a_log_that_has_grown_to_its_old_size_again",),
    ),
    Mutant(
        "a compressed file that is known stays what it is",
        "agent/files/recognition.py",
        "        if self._compression.adopt(sighting, self._now_ms) is Answer.SAME:\n",
        "        if False:\n",
        (f"{OVERWRITTEN}test_a_compressed_file_over_an_older_one_is_known",),
    ),
    Mutant(
        "a compressed copy may be the log or its copy",
        "agent/files/compression.py",
        "return [each for each in files if each.file not in continued]",
        "return files",
        (f"{OVERWRITTEN}test_the_compressed_rest_of_a_truncated_log_is_read_once",),
    ),
    Mutant(
        "a compressed empty log can never be opened",
        "agent/files/recognition.py",
        "            self._unopened.remove(sighting.found.key)  # nothing is left to be opened\n",
        "",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_compressed_empty_log_holds_back_neither_seals_nor_losses",
        ),
    ),
    Mutant(
        "a log that was emptied is not where it was at the last look",
        "agent/files/tracking.py",
        "tracked.state is FileState.OPEN or self._is_in_place(tracked):",
        "tracked.state is FileState.OPEN:",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_what_was_rotated_before_an_emptied_log_is_declared_once",
        ),
    ),
    Mutant(
        "a log that has exactly its old size has its old bytes",
        "agent/files/recognition.py",
        "(log.verified and log.read_position == there.size)",
        "log.read_position == there.size",
        (f"{OVERWRITTEN}test_a_copy_of_a_log_that_has_grown_to_its_old_size_again",),
    ),
    Mutant(
        "what a copy gains was read if it is behind the end of its log",
        "agent/files/recognition.py",
        "end = 0 if log is None else min(found.size, log.length or found.size)",
        "end = 0 if log is None else found.size",
        (f"{OVERWRITTEN}test_a_log_that_is_copied_again_and_then_truncated_is_declared",),
    ),
    Mutant(
        "a copy that begins like what a truncated log had is a part of it",
        "agent/files/likeness.py",
        "return Answer.SAME if is_older and not old.is_emptied else Answer.UNKNOWN",
        "return Answer.SAME",
        (f"{OVERWRITTEN}test_a_copy_that_begins_like_what_its_log_had_before",),
    ),
    Mutant(
        "a copy of a truncated log is never known to be one",
        "agent/files/likeness.py",
        "return Answer.SAME if is_older and not old.is_emptied else Answer.UNKNOWN",
        "return Answer.UNKNOWN",
        (f"{OVERWRITTEN}test_an_older_copy_of_a_truncated_log_is_known_after_a_restart",),
    ),
    Mutant(
        "an inode is that of the id that began last",
        "agent/files/known.py",
        "            serial = self._serial = self.next_serial()\n",
        "            pass\n",
        (f"{OVERWRITTEN}test_a_compressed_file_over_an_older_one_is_declared_once",),
    ),
    Mutant(
        "what a copy gains was never read",
        "agent/files/recognition.py",
        "self._news.may_double(reader, size, end, log)",
        "pass",
        (f"{OVERWRITTEN}test_a_log_that_is_copied_again_and_again_is_read_twice_and_declared",),
    ),
    Mutant(
        "what may be double in a file that begins like another one is not declared",
        "agent/files/recognition.py",
        "return self._begin(sighting, original, may_double=found.size) is not None",
        "return self._begin(sighting, original) is not None",
        ("tests/model/test_agent_files.py::test_copies_are_known_or_declared",),
    ),
    Mutant(
        "a compressed file is read under an id of its own",
        "agent/files/compression.py",
        """            if answer is Answer.SAME:
                self._known.move(each, found)
                return answer
""",
        """            if answer is Answer.SAME:
                return Answer.OTHER
""",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_the_rest_of_a_known_file_is_read_from_the_compressed_one",
        ),
    ),
    Mutant(
        "a file is declared lost while the one that may hold it is being measured",
        "agent/files/tracking.py",
        """            if not self._may_be_compressed(tracked):
                self._endings.vanish(tracked, VANISHED)
""",
        """            self._endings.vanish(tracked, VANISHED)
""",
        (
            "tests/unit/agent/files/test_compression.py",
            "tests/model/test_agent_files.py::test_compressed_generations_lose_and_double_nothing",
        ),
    ),
    Mutant(
        "a compressed file is as long as it is on the disk",
        "agent/files/decompressed.py",
        """        return self._handle.status()._replace(size=self._size)
""",
        """        return self._handle.status()
""",
        ("tests/unit/agent/files/test_decompressed.py::test_plain_bytes_at_any_position",),
    ),
    Mutant(
        "going back in a compressed file goes on where it is",
        "agent/files/decompressed.py",
        """            self._plain.rewind()
            self._at, self._last = 0, b""
        while""",
        """            self._at, self._last = 0, b""
        while""",
        ("tests/unit/agent/files/test_decompressed.py::test_plain_bytes_at_any_position",),
    ),
    Mutant(
        "a file that cannot be opened is named and not written down",
        "agent/files/births.py",
        """        self._unopened.add(
            UnopenedFile(
                source.topic, source.topic_id, sighting.base, found, sighting.may_begin,
                sighting.skip,
            )
        )  # fmt: skip
""",
        "",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_what_goes_away_before_it_can_be_read_is_declared",
        ),
    ),
    Mutant(
        "which files could not be opened is known until the agent ends",
        "agent/files/tracking.py",
        """        self._unopened.load(unopened)
""",
        "",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_what_goes_away_before_it_can_be_read_is_declared",
        ),
    ),
    Mutant(
        "of a file that could not be opened the base is forgotten",
        "agent/state/changes.py",
        (
            "file.topic, file.topic_id, None if base is None else os.fsencode(base), "
            "int(file.may_begin),"
        ),
        "file.topic, file.topic_id, None, int(file.may_begin),",
        ("tests/unit/agent/state/test_database.py::test_files_that_could_not_be_opened_are_kept",),
    ),
    Mutant(
        "a file that was cut before it could be opened has lost nothing",
        "agent/files/recognition.py",
        """        self._mind_unopened(sighting)
""",
        "",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_what_was_cut_off_before_it_could_be_read_is_declared",
        ),
    ),
    Mutant(
        ("a file that stood still for a minute has lost nothing, however long nobody looked"),
        "agent/files/endings.py",
        "still_s >= max(STILL_S, STILL_FACTOR * unseen_s)",
        "still_s >= STILL_S",
        ("tests/unit/agent/files/test_same_file.py::test_deleted_while_nobody_looked",),
    ),
    Mutant(
        "what was deleted at rest is a loss",
        "agent/files/endings.py",
        """        if self._stood_still(tracked):
            self.end(tracked)
        else:
            self.lose(tracked, reason)
""",
        """        self.lose(tracked, reason)
""",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_deleting_what_was_read_long_ago_loses_nothing",
        ),
    ),
    Mutant(
        "what was read to its last known byte and deleted has lost nothing",
        "agent/files/endings.py",
        """        if self._stood_still(tracked):
""",
        """        if tracked.size <= tracked.promised:
""",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_deleting_what_was_written_just_now_is_a_loss",
        ),
    ),
    Mutant(
        "each file that went in one look is a loss of its own",
        "agent/files/news.py",
        "apart = _together(self.set_apart)",
        "apart = self.set_apart",
        ("tests/unit/agent/files/test_same_file.py::test_one_look_declares_one_loss",),
    ),
    Mutant(
        "after the clock was set back, an older time of change says nothing",
        "agent/files/recognition.py",
        "found.changed_ns > before or self._set_back.is_later(found.changed_ns, before)",
        "found.changed_ns > before",
        (
            "tests/unit/agent/files/"
            "test_same_file.py::test_the_same_bytes_written_again_after_the_clock_was_set_back",
        ),
    ),
    Mutant(
        "only a look through all patterns notices that the clock was set back",
        "agent/files/tracking.py",
        "        self._recognition.note_clock(now, now_ms)\n        path",
        "        path",
        (
            "tests/unit/agent/files/"
            "test_same_file.py::test_the_same_bytes_written_again_after_the_clock_was_set_back",
        ),
    ),
    Mutant(
        "after the clock was set back, any older time of change is a write",
        "agent/files/set_back.py",
        "return begin_ns <= changed_ns < before_ns <= end_ns",
        "return bool(end_ns) and changed_ns < before_ns",
        (
            "tests/unit/agent/files/"
            "test_same_file.py::test_a_time_of_change_that_is_older_than_the_clock_ever_was_says_nothing",
        ),
    ),
    Mutant(
        "a clock that is set back again was never set back before",
        "agent/files/set_back.py",
        "= begin_ms, max(end_ms, self._end_ms)",
        "= begin_ms, end_ms",
        ("tests/unit/agent/files/test_set_back.py::test_a_clock_that_is_set_back_twice",),
    ),
    Mutant(
        "the span of a clock that was set back twice begins at the second time",
        "agent/files/set_back.py",
        "begin_ms = min(begin_ms, self._begin_ms)",
        "pass",
        (
            "tests/unit/agent/files/test_set_back.py::"
            "test_a_clock_that_is_set_back_less_the_second_time",
        ),
    ),
    Mutant(
        "by a clock that was set a file was at rest",
        "agent/files/endings.py",
        "changed_ms = max(tracked.changed_ns / 1_000_000, self._set_ms)",
        "changed_ms = tracked.changed_ns / 1_000_000",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_by_a_clock_that_was_set_nothing_was_at_rest",
        ),
    ),
    Mutant(
        "before the start a file was looked at when its topic was started with first",
        "agent/loop/beginning.py",
        """            found[name] = max(found.get(name, 0), topic.sealed_until)
""",
        """            found.setdefault(name, topic.sealed_until)
""",
        (
            "tests/unit/agent/files/test_same_file.py::test_deleted_while_nobody_looked",
            "tests/unit/agent/files/test_rotations.py",
        ),
    ),
    Mutant(
        "a file whose source was taken away has lost nothing",
        "agent/files/tracking.py",
        "if found is not None and found.size <= tracked.promised:",
        "if found is not None:",
        ("tests/unit/agent/loop/test_loop.py::test_a_source_that_was_removed_leaves_a_loss",),
    ),
    Mutant(
        "bytes behind a closure go on under the closed id",
        "agent/files/recognition.py",
        "            new = self._births.go_on(sighting, tracked, handle)\n",
        """            tracked.state, tracked.length, new = FileState.OPEN, None, None
            handle.close()
""",
        ("tests/unit/agent/loop/test_loop.py::test_bytes_behind_a_closure_get_a_new_id",),
    ),
    Mutant(
        "a topic that was made again takes the file ids of the one before",
        "agent/files/recognition.py",
        ("elif (tracked.birth.topic, tracked.birth.topic_id) != (source.topic, source.topic_id):"),
        "elif tracked.birth.topic != source.topic:",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_a_topic_made_again_gives_new_ids_when_nothing_was_on_its_way",
        ),
    ),
    Mutant(
        "a file in a directory that cannot be looked into is gone",
        "agent/files/tracking.py",
        (
            "        if any(self._unreadable.hides(path) for path in (tracked.meant, "
            "tracked.location)):\n"
            "            return\n"
            "        status"
        ),
        "        status",
        (
            "tests/unit/agent/files/test_mounts.py",
            "tests/unit/agent/files/test_rotations.py",
            "tests/model/test_agent_files.py::test_where_nobody_may_look_nothing_is_gone",
        ),
    ),
    Mutant(
        "an unmounted file system has lost its files",
        "agent/files/tracking.py",
        """        for topic, directory in self._mounts.missing():
            self._unreadable.add(topic, directory, UNMOUNTED)
""",
        "",
        (
            "tests/unit/agent/files/test_mounts.py::"
            "test_files_whose_file_system_is_not_mounted_yet_are_waited_for",
        ),
    ),
    Mutant(
        "a line that is being written is a record as soon as it is seen",
        "agent/files/reading.py",
        "return now - tracked.grown_at >= self._flush_s(tracked)",
        "return now - tracked.grown_at >= 0",
        (
            "tests/unit/agent/loop/test_loop.py",
            "tests/unit/agent/commands/test_draining.py",
            "tests/unit/agent/test_leaving.py",
        ),
    ),
    Mutant(
        "a record that never ends is not read as long as its file grows",
        "agent/files/reading.py",
        "            end = _overdue_end(body, framer.lines)\n",
        "            end = 0\n",
        (f"{UNFINISHED}test_a_record_that_never_ends_holds_back_no_seal_for_long",),
    ),
    Mutant(
        "a long line that never ends is not read as long as its file grows",
        "agent/files/reading.py",
        "            ended |= self._is_overdue(tracked, now)\n",
        "            pass\n",
        (f"{UNFINISHED}test_an_overlong_line_that_never_ends_is_divided",),
    ),
    Mutant(
        "a long line that began long ago is divided before the file's end",
        "agent/files/reading.py",
        "        if len(piece) < READ_BYTES:  # the bytes",
        "        if piece:  # the bytes",
        (f"{UNFINISHED}test_a_long_line_is_divided_only_where_the_file_ends",),
    ),
    Mutant(
        "the time of an unfinished record goes on with the next record",
        "agent/values/tracked.py",
        """        self.read_position, self.read_crc = end, prefix_crc
        self.unfinished_at = None
""",
        """        self.read_position, self.read_crc = end, prefix_crc
""",
        (f"{UNFINISHED}test_what_is_written_slowly_stays_one_record",),
    ),
    Mutant(
        "a record of lines that never ends is divided inside a line",
        "agent/files/reading.py",
        "    return lines.whole_records_end(body) or lines.part_end(body)\n",
        "    return lines.part_end(body)\n",
        (f"{UNFINISHED}test_a_record_of_lines_that_never_ends_is_divided_between_lines",),
    ),
    Mutant(
        "a record that never ends is divided inside a code unit",
        "agent/files/reading.py",
        "    return lines.whole_records_end(body) or lines.part_end(body)\n",
        "    return lines.whole_records_end(body) or len(body)\n",
        (f"{UNFINISHED}test_no_code_unit_is_divided",),
    ),
    Mutant(
        "a growing record is divided although the time without changes is longer",
        "agent/files/reading.py",
        "max(self._unfinished_s, self._flush_s(tracked))",
        "self._unfinished_s",
        (f"{UNFINISHED}test_a_longer_time_without_changes_applies_to_growing_files_too",),
    ),
    Mutant(
        "a line that grows for hours is divided by a counting agent, too",
        "agent/files/reading.py",
        "        unfinished_s: float = math.inf,\n",
        "        unfinished_s: float = UNFINISHED_S,\n",
        (
            "tests/unit/agent/counting/test_counting.py::"
            "test_a_line_that_is_written_for_hours_is_noted_whole",
        ),
    ),
    Mutant(
        "a rotated file is closed as soon as it was read to its end",
        "agent/files/reading.py",
        "            if now < due:",
        "            if not due:",
        (
            "tests/unit/agent/files/test_rotations.py::test_a_generation_is_read_on_and_closed",
            "tests/unit/agent/loop/test_loop.py::test_rotation_by_rename_keeps_the_id_and_closes_it",
        ),
    ),
    Mutant(
        "a file that is held open is known by the bytes before the position alone",
        "agent/files/reading.py",
        "        if is_alike and tail and len(data) > len(tail):",
        "        if False:",
        (
            "tests/unit/agent/files/test_same_file.py::"
            "test_a_file_that_ends_alike_and_begins_otherwise_was_written_anew",
        ),
    ),
    Mutant(
        "what was read of a file system that is not mounted is forgotten",
        "agent/files/tracking.py",
        "self._may_be_compressed(tracked) or self._mounts.may_come_back(tracked, now)",
        "self._may_be_compressed(tracked)",
        (
            "tests/unit/agent/files/test_mounts.py::"
            "test_what_was_read_is_known_again_however_late_its_file_system_comes",
        ),
    ),
    Mutant(
        "a closed file that was moved away is forgotten at once",
        "agent/files/tracking.py",
        "may_return = is_newest and not is_due and not tracked.is_deleted",
        "may_return = False",
        (
            "tests/unit/agent/files/test_moved_back.py::"
            "test_a_log_that_was_moved_away_and_back_is_not_read_again",
        ),
    ),
    Mutant(
        "a closed file that is gone is never forgotten",
        "agent/files/tracking.py",
        "            is_due = since is not None and now - since >= HIDDEN_S\n",
        "            is_due = False\n",
        (
            "tests/unit/agent/files/test_moved_back.py::"
            "test_a_log_that_is_gone_for_a_day_is_forgotten",
        ),
    ),
    Mutant(
        "a file that was seen to be deleted is remembered like one that was moved",
        "agent/files/tracking.py",
        "may_return = is_newest and not is_due and not tracked.is_deleted",
        "may_return = is_newest and not is_due",
        (
            "tests/unit/agent/files/test_moved_back.py::"
            "test_a_log_that_is_gone_for_a_day_is_forgotten",
        ),
    ),
    Mutant(
        "an agent that is started every day never forgets what is gone",
        "agent/files/tracking.py",
        "            if is_first and not is_young:\n                may_return = False\n",
        "",
        (
            "tests/unit/agent/files/test_moved_back.py::"
            "test_an_agent_that_is_started_every_day_forgets_what_is_gone_for_a_week",
        ),
    ),
    Mutant(
        "a running agent forgets at once what is gone and was closed long ago",
        "agent/files/tracking.py",
        "            if is_first and not is_young:\n",
        "            if not is_young:\n",
        (
            "tests/unit/agent/files/test_moved_back.py::"
            "test_a_log_that_was_closed_long_ago_may_be_moved_away_and_back",
        ),
    ),
    Mutant(
        "a closed file that came back beside its path is forgotten",
        "agent/files/tracking.py",
        "if is_newest and (since is None or is_due) and self._is_there(tracked, now):",
        "if is_newest and since is None and self._is_there(tracked, now):",
        (
            "tests/unit/agent/files/test_moved_back.py::"
            "test_a_log_that_is_back_beside_its_path_is_not_forgotten",
        ),
    ),
    Mutant(
        "a closed file that is gone lives on until the agent forgets it",
        "agent/loop/loop.py",
        "self._backlogs.gone(news.gone, now_ms)",
        "self._backlogs.gone(news.forgotten, now_ms)",
        (
            "tests/unit/agent/accounts/test_backlog.py::"
            "test_the_life_of_a_closed_file_is_rather_too_short",
        ),
    ),
    Mutant(
        "a rotated file that could not be looked at once holds the seal for good",
        "agent/files/tracking.py",
        "if tracked.size > tracked.promised or not tracked.verified:",
        "if tracked.size > tracked.promised:",
        (
            "tests/unit/agent/test_seals.py::"
            "test_a_rotated_file_that_could_not_be_read_at_the_start_holds_the_seal_no_longer",
        ),
    ),
    Mutant(
        "a new file is read as such, whatever it is a copy of",
        "agent/files/recognition.py",
        "if new is not None and not any(self._see_copy(new, base) for base in new.bases):",
        "if new is not None:",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_compressed_log_of_which_nobody_knows_is_in_doubt",
            "tests/unit/agent/files/test_strays.py::"
            "test_a_copy_that_is_seen_before_its_original_was_cut_waits_for_that",
        ),
    ),
    Mutant(
        "a copy does not wait until its original is seen to be cut",
        "agent/files/recognition.py",
        """        if original.length is None and self._is_put_off(sighting, original):
            return True
""",
        "",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_a_copy_that_is_seen_before_its_original_was_cut_waits_for_that",
        ),
    ),
    Mutant(
        "a copy waits for its original only until the kernel reports the copy again",
        "agent/files/recognition.py",
        "        if since < self._looks and not is_undecided:\n",
        "        if self._unopened.has(found.key) and not is_undecided:\n",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_a_copy_that_is_seen_before_its_original_was_cut_waits_for_that",
        ),
    ),
    Mutant(
        "a file that could not be checked at its first look is at rest",
        "agent/files/recognition.py",
        "            and tracked.verified\n",
        "",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_a_copy_that_could_not_be_read_for_a_moment_holds_back_no_seal",
        ),
    ),
    Mutant(
        "a file that was moved is looked for only where it was written",
        "agent/files/copies.py",
        "        self._add(tracked, after - before)\n",
        "",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_what_was_moved_to_another_directory_is_not_read_again_when_it_is_compressed",
        ),
    ),
    Mutant(
        "nobody notes where a closed file was moved to",
        "agent/files/recognition.py",
        """            self._note_place(tracked, sighting)
            return
""",
        """            return
""",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_what_was_moved_to_another_directory_is_not_read_again_when_it_is_compressed",
        ),
    ),
    Mutant(
        "a generation that was moved has no later generations where it is now",
        "agent/files/copies.py",
        "    return paths.union(*map(copied_from, paths))\n",
        "    return paths.union(copied_from(tracked.birth.path))\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_what_was_moved_to_another_directory_is_not_read_again_when_it_is_compressed",
        ),
    ),
    Mutant(
        "a file that was moved stays in the lists of its former paths",
        "agent/files/copies.py",
        "        self._remove(tracked, before - after)\n",
        "",
        (
            "tests/unit/agent/files/test_copies.py::"
            "test_a_moved_log_is_found_where_it_was_written_and_where_it_is",
        ),
    ),
    Mutant(
        "a record that never ends may be divided inside a character",
        "agent/files/reading.py",
        "lines.whole_records_end(body) or lines.part_end(body)",
        "lines.whole_records_end(body) or len(body) - len(body) % lines.unit",
        ("tests/unit/agent/loop/test_unfinished.py::test_no_character_and_no_line_end_is_divided",),
    ),
    Mutant(
        "a dropped seal has not held anything back",
        "agent/accounts/accounts.py",
        "self._waiting_since.setdefault(topic, self._begun_at)",
        "self._begun_at",
        (
            "tests/unit/agent/loop/test_unfinished.py::"
            "test_a_file_is_named_although_the_agent_drops_each_seal",
        ),
    ),
    Mutant(
        "a copy is left alone for good before all its bytes were read from its original",
        "agent/files/copies.py",
        "        if found.size <= original.position:\n            self._left_alone",
        "        if True:\n            self._left_alone",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_a_copy_that_a_look_finds_before_its_original_is_truncated",
        ),
    ),
    Mutant(
        "whatever has the inode of a copy that was left alone is that copy",
        "agent/files/copies.py",
        "        return self._left_alone.get(found.key) == _content_of(found)\n",
        "        return found.key in self._left_alone\n",
        (
            "tests/unit/agent/files/test_strays.py::"
            "test_another_file_under_the_inode_of_a_copy_is_no_copy",
        ),
    ),
    Mutant(
        "any compressed file has the time of change of the file that is gone",
        "agent/files/compression.py",
        """            is_same_time = each.changed_ns is not None and is_time_of(
                found.changed_ns, [each.changed_ns]
            )
""",
        "            is_same_time = True\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_compressed_log_of_which_nobody_knows_is_in_doubt",
        ),
    ),
    Mutant(
        "the time of change says nothing of a compressed file",
        "agent/files/compression.py",
        """            is_same_time = each.changed_ns is not None and is_time_of(
                found.changed_ns, [each.changed_ns]
            )
""",
        "            is_same_time = False\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_short_file_is_known_by_its_time_of_change",
        ),
    ),
    Mutant(
        "promised bytes are gone while the compressed file is being measured",
        "agent/files/tracking.py",
        "        if path is None and (not self._now_ms or self._may_be_compressed(tracked)):\n",
        "        if path is None and not self._now_ms:\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_promises_wait_for_a_file_that_is_being_measured",
        ),
    ),
    Mutant(
        "whose a compressed file is has to be known at the first look",
        "agent/files/history.py",
        "                look.unknown.add(member.inode)\n",
        "",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_promises_wait_for_a_file_that_is_being_measured",
        ),
    ),
    Mutant(
        "a generation that is measured for long is history by then",
        "agent/files/unopened.py",
        "file._replace(may_begin=file.may_begin or before.may_begin, skip=before.skip)",
        "file._replace(skip=before.skip)",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_generation_that_is_measured_for_long_is_read_however_old_it_is_then",
        ),
    ),
    Mutant(
        "a compressed file is read as soon as it is there, beside the plain one",
        "agent/files/compression.py",
        "        return is_decompressed(path) and self._host.look(plain) is not None\n",
        "        return False\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_while_the_plain_file_is_there_the_compressed_one_is_not_read",
        ),
    ),
    Mutant(
        "a generation is read from the compressed file while the plain one is there",
        "agent/files/history.py",
        "return any(name == plain for name, _ in self._directories.names(look.directory))",
        "return False",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_compressed_file_that_was_being_written_at_the_last_look",
        ),
    ),
    Mutant(
        "a directory changes no more within the tick in which it was looked at",
        "agent/files/rotations.py",
        "            changed_ns if is_clean else None,\n",
        "            changed_ns,\n",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_directory_that_changed_just_now_is_listed_again",
        ),
    ),
    Mutant(
        "a look into the middle of a rotation is one since which a generation is old",
        "agent/files/rotations.py",
        """            del moment.findings.unseen[said:]
            return  # the directory was read while names changed
""",
        "            del moment.findings.unseen[said:]\n",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_look_into_a_rotation_is_no_look_since_when_a_generation_would_be_old",
        ),
    ),
    Mutant(
        "that another file has the inode is forgotten with a look into a rotation",
        "agent/files/rotations.py",
        "            self._again |= moment.reborn.intersection(here)\n",
        "",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_another_file_under_the_same_inode_is_known_when_names_stand_still_again",
        ),
    ),
    Mutant(
        "promised bytes are gone where nobody has looked yet",
        "agent/files/tracking.py",
        "        if path is None and (not self._now_ms or self._may_be_compressed(tracked)):\n",
        "        if path is None and self._may_be_compressed(tracked):\n",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_promises_are_not_given_up_before_the_first_look",
        ),
    ),
    Mutant(
        "a compressed file with fewer bytes than were promised may be the one that is gone",
        "agent/files/compression.py",
        "        if size < max(gone.size, gone.promised, 1) or",
        "        if size < 1 or",
        (
            "tests/unit/agent/files/test_compression.py::"
            "test_a_compressed_file_with_fewer_bytes_than_were_promised_is_another_one",
        ),
    ),
    Mutant(
        "names stand still where another file has the inode of the one before",
        "agent/files/look.py",
        "    files = ((path, (found.key, found.born_ns)) for",
        "    files = ((path, found.key) for",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_another_file_under_the_same_inode_is_known_when_names_stand_still_again",
        ),
    ),
    Mutant(
        "a file that was written is at rest",
        "agent/files/recognition.py",
        """            and found.changed_ns == tracked.changed_ns
            and found.size == tracked.size""",
        "            and found.size <= tracked.size",
        (f"{QUIET}test_whatever_changes_a_file_is_found_without_an_event",),
    ),
    Mutant(
        "a file that has another inode's time of birth is at rest",
        "agent/files/recognition.py",
        "            and found.born_ns == tracked.birth.born_ns\n            and number",
        "            and number",
        (f"{QUIET}test_another_file_with_the_same_inode_size_and_time_is_not_at_rest",),
    ),
    Mutant(
        "a file has the description of the file that was at its path",
        "agent/files/operating_system.py",
        "before is not None and before.key == key:\n            key = before.key\n",
        "before is not None:\n            key = before.key\n",
        (f"{QUIET}test_a_quiet_file_has_one_description",),
    ),
    Mutant(
        "a file that is rotated while it is described has no time of birth",
        "agent/files/birth_times.py",
        "_INODE_AT)[0] != inode:\n        raise _moved(path)",
        "_INODE_AT)[0] != inode:\n        return None",
        (
            "tests/unit/agent/files/test_host.py::test_a_rotation_during_a_look_hides_no_time_of_birth",
        ),
    ),
    Mutant(
        "the settings import Arrow, and so pandas",
        "agent/settings.py",
        "from skidway.errors import ConfigurationRefused\n",
        "from skidway.agent.shaping.checking import check_patterns as check_patterns\n"
        "from skidway.errors import ConfigurationRefused\n",
        ("tests/unit/agent/test_imports.py",),
    ),
)
