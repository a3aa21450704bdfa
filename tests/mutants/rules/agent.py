"""Mutants of the rules about intents (durable rows in the agent's state that say which lines to
send), and about sending lines, handling acknowledgements, counting lines, and publishing messages
to the audit. The module agent_files has the mutants of the rules about files."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a loss ends where a bucket of the present size begins",
        "agent/accounts/accounts.py",
        "        return max(latest_ms, self._topics.sealed_until(topic) or now_ms)\n",
        "        return self._bucket(max(latest_ms, self._topics.sealed_until(topic) or now_ms))\n",
        (
            "tests/unit/agent/accounts/test_accounts.py::"
            "test_a_loss_reaches_the_buckets_of_an_earlier_size",
        ),
    ),
    Mutant(
        "validate shows a file under each source that matches it",
        "agent/validation/trial.py",
        "    owners.update((each.key, source.topic) for each in found)\n",
        "",
        (
            "tests/unit/agent/validation/test_checks.py::"
            "test_a_file_is_shown_under_the_first_source_that_matches_it",
        ),
    ),
    Mutant(
        "a setting may have half of a surrogate pair",
        "skidway/settings/conversion.py",
        "            text.encode()  #",
        "            pass  #",
        ("tests/unit/skidway/settings/test_settings.py::test_bad_override_is_one_sentence",),
    ),
    Mutant(
        "an agent begins anew if the disk of its database is not mounted",
        "agent/state/database.py",
        "    is_new = not os.path.lexists(path)\n",
        "    is_new = not path.exists()\n",
        ("tests/unit/agent/state/test_database.py::test_a_database_that_is_no_file_is_refused",),
    ),
    Mutant(
        "the metrics count bytes that were lost before once more when the file is truncated",
        "agent/events.py",
        "        return range_.tracked.lost_unread\n",
        "        return range_.tracked.tally.lost\n",
        ("tests/unit/agent/test_figures.py::test_bytes_are_lost_only_once",),
    ),
    Mutant(
        "an agent takes the state of whichever machine it was made on",
        "agent/state/database.py",
        """    if state.machine != machine:
""",
        """    if not state.machine:
""",
        ("tests/unit/agent/state/test_database.py::test_a_state_belongs_to_its_machine",),
    ),
    Mutant(
        "ids may be 2^63 and above",
        "agent/values/identity.py",
        """ID_BITS: Final = 63
""",
        """ID_BITS: Final = 64
""",
        ("tests/unit/agent/values/test_identity.py::test_ids_fit_signed_longs",),
    ),
    Mutant(
        "a file is read before the cluster has its announcement",
        "agent/loop/parts.py",
        "return tracked.announced and not accounts.leaving.is_done_with(tracked.birth.topic)",
        "return not accounts.leaving.is_done_with(tracked.birth.topic)",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_nothing_is_sent_before_its_announcement_is_acknowledged",
        ),
    ),
    Mutant(
        "an announcement counts as said when it was staged",
        "agent/accounts/register.py",
        """        tracked.announced_ms = now_ms
        source""",
        """        tracked.announced_ms, tracked.announced = now_ms, True
        source""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_nothing_is_sent_before_its_announcement_is_acknowledged",
        ),
    ),
    Mutant(
        "files are announced again every ten days",
        "agent/accounts/announcements.py",
        "REPEAT_AFTER_MS = 86_400_000",
        "REPEAT_AFTER_MS = 864_000_000",
        ("tests/unit/agent/loop/test_loop.py::test_files_are_announced_again_every_day",),
    ),
    Mutant(
        "a file is closed without waiting for the checkpoint",
        "agent/accounts/register.py",
        """            if tracked.flights or tracked.position != tracked.length:
                continue
""",
        "",
        (
            "tests/unit/agent/accounts/test_register.py::"
            "test_a_file_is_closed_once_its_records_are_acknowledged",
        ),
    ),
    Mutant(
        "a file of which nothing is on its way is closed before its promises are kept",
        "agent/accounts/register.py",
        """            if tracked.flights or tracked.position != tracked.length:
""",
        """            if tracked.flights:
""",
        (
            "tests/unit/agent/accounts/test_register.py::"
            "test_a_file_is_not_closed_before_its_promises_are_kept_after_a_start",
        ),
    ),
    Mutant(
        "a closure is in a transaction behind that of the position",
        "agent/loop/loop.py",
        """        passed = self._progress.pass_flights(self.tracker, changes)
        for tracked, before in passed.moved:
            if before < FINGERPRINT_BYTES <= tracked.position:
                self._register.announce_grown(tracked, now_ms)
        self._register.close_ended(now_ms)
""",
        """        self._register.close_ended(now_ms)
        passed = self._progress.pass_flights(self.tracker, changes)
        for tracked, before in passed.moved:
            if before < FINGERPRINT_BYTES <= tracked.position:
                self._register.announce_grown(tracked, now_ms)
""",
        (
            "tests/unit/agent/accounts/test_register.py::"
            "test_the_closure_is_in_the_transaction_in_which_the_position_stands_there",
        ),
    ),
    Mutant(
        "audit messages are published before they are durable",
        "agent/accounts/mail.py",
        "self._staged.append(Message(self._last_id, number, file, encode(message)))",
        "self._durable.append(Message(self._last_id, number, file, encode(message)))",
        ("tests/unit/agent/accounts/test_mail.py::test_only_what_is_durable_is_published",),
    ),
    Mutant(
        "a transaction that is tried again swallows what was published meanwhile",
        "agent/accounts/mail.py",
        """        self._staged = []
        self._forgetting = []

    def take""",
        """        self._staged = []
        self._forgetting, self._published = [], []

    def take""",
        (
            "tests/unit/agent/accounts/test_mail.py::"
            "test_what_was_published_while_the_disk_was_full_is_forgotten_later",
        ),
    ),
    Mutant(
        "a file that grew is not announced with more of its bytes",
        "agent/loop/loop.py",
        """            if before < FINGERPRINT_BYTES <= tracked.position:
""",
        """            if before == 0 and FINGERPRINT_BYTES <= tracked.position:
""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_a_file_that_grew_is_known_again_after_the_state_was_deleted",
        ),
    ),
    Mutant(
        "announcements do not say when the file was made",
        "agent/accounts/announcements.py",
        """        born_ns=birth.born_ns,
""",
        """        born_ns=None,
""",
        ("tests/unit/agent/loop/test_loop.py::test_a_small_file_that_grew_is_known_by_its_birth",),
    ),
    Mutant(
        "a file with a predecessor is nobody else's",
        "audit/evidence/rereading.py",
        """    if message.fingerprint_length == 0:
""",
        """    if message.fingerprint_length == 0 or message.predecessor is not None:
""",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::test_a_predecessor_hides_no_file",
            "tests/unit/audit/judgement/rules/test_doublings.py::test_without_births_first_bytes_decide",
            "tests/unit/agent/loop/test_loop.py::"
            "test_a_file_that_was_truncated_is_known_again_after_the_state_was_deleted",
        ),
    ),
    Mutant(
        "first bytes decide also where births are told, and differ",
        "audit/evidence/rereading.py",
        """    return any(note.born_ns is None for note in notes)
""",
        """    return any(True for _ in notes)
""",
        ("tests/unit/audit/judgement/rules/test_doublings.py::test_another_birth_is_another_file",),
    ),
    Mutant(
        "the floors of a topic outlive it",
        "agent/state/changes.py",
        """        self._do("DELETE FROM floors WHERE topic = ?", (topic,))
""",
        "",
        (
            "tests/unit/agent/state/test_database.py::"
            "test_floors_go_with_the_offsets_of_a_topic_made_again",
        ),
    ),
    Mutant(
        "a topic is known by its name, whichever id it has",
        "skidway/kafka/source.py",
        """    cluster: str
    cluster_id: str
    topic: str
    topic_id: str
""",
        """    cluster: str
    cluster_id: str
    topic: str
    topic_id: str = __import__("dataclasses").field(compare=False)
""",
        (
            "tests/unit/audit/judgement/test_topic_judgement.py::test_a_topic_made_again_is_another_topic",
        ),
    ),
    Mutant(
        "a press is kept for each topic, whatever the recipe is by now",
        "agent/delivery/presses.py",
        """        press = self._presses.get(fingerprint)
        if press is None:
            press = Press(self._recipes[fingerprint], self._codec)
            self._presses[fingerprint] = press
""",
        """        recipe = self._recipes[fingerprint]
        fingerprint = recipe.data.name.encode()
        press = self._presses.get(fingerprint)
        if press is None:
            press = Press(recipe, self._codec)
            self._presses[fingerprint] = press
""",
        ("tests/unit/agent/loop/test_loop.py::test_partitions_added_while_running",),
    ),
    Mutant(
        "a line that is sent again says where its file lies now",
        "agent/values/tracked.py",
        "return Reading(intent, data, self.birth.host, self.birth.path, labels)",
        "return Reading(intent, data, self.birth.host, self.location, labels)",
        (
            "tests/unit/agent/test_encoding.py::"
            "test_a_rejected_line_that_is_sent_again_says_the_path_of_its_announcement",
        ),
    ),
    Mutant(
        ("the time of an event that is not believed is that of the clock when it is pressed"),
        "agent/batches/press.py",
        """    times = np.where(believed, event_ms, np.int64(read_ms))
""",
        ('    times = np.where(believed, event_ms, np.datetime64("now", "ms").astype(np.int64))\n'),
        (
            "tests/unit/agent/batches/test_press.py::"
            "test_times_that_cannot_be_believed_are_those_of_reading",
        ),
    ),
    Mutant(
        "what a line is routed by depends on what it travels with",
        "agent/batches/press.py",
        """    files = distinct(records.file)
    if len(files) == 1 or topic.partitions == 1:
""",
        """    files = distinct(records.file)
    if len(files) >= 1 or topic.partitions == 1:
""",
        (
            "tests/unit/agent/batches/test_press.py::"
            "test_each_file_keeps_its_partition_whatever_travels_with_it",
        ),
    ),
    Mutant(
        "on a full disk bytes are sent whose intent was not written",
        "agent/loop/loop.py",
        """        if self._write(self._unwritten):
            taken, self._unwritten = self._unwritten.taken, None
            self._presses.press(taken, self.outbound, now)
""",
        """        taken, self._unwritten.taken = self._unwritten.taken, []
        self._presses.press(taken, self.outbound, now)
        if self._write(self._unwritten):
            self._unwritten = None
""",
        (
            "tests/unit/agent/loop/test_loop.py::test_a_full_disk_stops_reading_and_loses_nothing",
            "tests/unit/agent/loop/test_loop.py::test_a_kill_on_a_full_disk_loses_nothing",
        ),
    ),
    Mutant(
        "a commit returns before it is on the disk",
        "agent/state/database.py",
        """        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
""",
        """        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
""",
        (
            "tests/unit/agent/state/test_durability.py::"
            "test_a_transaction_is_on_the_disk_when_it_is_committed",
        ),
    ),
    Mutant(
        "a new state is renamed before it is on the disk",
        "agent/state/database.py",
        """        connection = sqlite3.connect(new, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
""",
        """        connection = sqlite3.connect(new, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
""",
        (
            "tests/unit/agent/state/test_durability.py::"
            "test_a_transaction_is_on_the_disk_when_it_is_committed",
        ),
    ),
    Mutant(
        "a commit does not wait for the disk, as SQLite has it by default with a WAL",
        "agent/state/database.py",
        """        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
""",
        """        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
""",
        (
            "tests/unit/agent/state/test_durability.py::"
            "test_a_transaction_is_on_the_disk_when_it_is_committed",
        ),
    ),
    Mutant(
        "on a full disk a new turn takes the place of the one that was not written",
        "agent/loop/loop.py",
        """        if self._unwritten is None:
            self._unwritten = self._gather(now)
""",
        """        self._unwritten = self._gather(now)
""",
        ("tests/unit/agent/loop/test_loop.py::test_a_full_disk_stops_reading_and_loses_nothing",),
    ),
    Mutant(
        "a recipe is not kept for the intents that name it",
        "agent/delivery/presses.py",
        """            changes.put_recipe(self._recipes[fingerprint])
            self._kept.add(fingerprint)
""",
        """            self._kept.add(fingerprint)
""",
        ("tests/unit/agent/loop/test_loop.py::test_new_settings_begin_behind_the_last_intent",),
    ),
    Mutant(
        "promises are sent again with the settings of now",
        "agent/delivery/presses.py",
        """        self._recipes[recipe.fingerprint] = recipe
""",
        """        for old, each in self._recipes.items():
            if each.data.name == recipe.data.name:
                self._recipes[old] = recipe
        self._recipes[recipe.fingerprint] = recipe
""",
        ("tests/unit/agent/loop/test_loop.py::test_new_settings_begin_behind_the_last_intent",),
    ),
    Mutant(
        "of several ranges only the last one ends a record",
        "agent/parsing/framing.py",
        """        if (array[range_ends - 1] != LF).any():  # a range's last line has no terminator
            end = np.union1d(end, range_ends)
""",
        """        if array[-1] != LF:  # the last line has no terminator
            end = np.append(end, len(data))
""",
        ("tests/unit/agent/parsing/test_framing.py::test_no_record_crosses_the_end_of_a_range",),
    ),
    Mutant(
        "a half-read line belongs to the intent that was read with it",
        "agent/files/reading.py",
        """        end = framer.whole_records_end(body)
""",
        """        end = framer.whole_records_end(body)
        end = len(body) if end else 0
""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_a_partial_line_that_was_flushed_and_then_completed",
            "tests/unit/agent/loop/test_loop.py",
        ),
    ),
    Mutant(
        "a record of several lines is read before its last line is there",
        "agent/parsing/multiline.py",
        "        return end if is_closed else int(lines.first[last])\n",
        "        return end\n",
        (
            "tests/unit/agent/parsing/test_multiline.py::"
            "test_what_follows_never_changes_a_whole_record",
            "tests/unit/agent/loop/test_multiline.py::test_a_record_waits_for_its_last_line",
        ),
    ),
    Mutant(
        "the first lines of a range belong to the record of another file",
        "agent/parsing/multiline.py",
        "        forced = np.isin(lines.first, np.append(0, range_ends[:-1]))\n",
        "        forced = lines.first == 0\n",
        (
            "tests/unit/agent/parsing/test_multiline.py::"
            "test_records_of_several_lines_never_depend_on_another_range",
        ),
    ),
    Mutant(
        "a record has as many lines as there are",
        "agent/parsing/multiline.py",
        "                if line - record >= self._lines_max or size > self._bytes_max:\n",
        "                if size > self._bytes_max:\n",
        (
            "tests/unit/agent/parsing/test_multiline.py::"
            "test_a_record_has_no_more_lines_and_bytes_than_allowed",
            "tests/model/test_agent.py::test_records_of_several_lines_are_neither_lost_nor_doubled",
        ),
    ),
    Mutant(
        "a record of several lines may not be longer than a byte",
        "agent/batches/parsers.py",
        "(recipe.multiline, recipe.line_bytes, recipe.container, recipe.encoding)\n",
        "(recipe.multiline, 1, recipe.container, recipe.encoding)\n",
        ("tests/unit/agent/loop/test_multiline.py::test_a_record_waits_for_its_last_line",),
    ),
    Mutant(
        "a recipe does not say how lines are joined",
        "agent/batches/source_recipes.py",
        "        multiline=None if multiline is None else multiline.rule,\n",
        "",
        (
            "tests/unit/agent/loop/test_multiline.py::"
            "test_a_killed_agent_sends_the_same_records_again_under_other_settings",
        ),
    ),
    Mutant(
        "a record of several lines waits only as long as a line",
        "agent/cluster/destinations.py",
        "            flush_s=None if multiline is None else multiline.timeout_ms / 1000,\n",
        "",
        ("tests/unit/agent/loop/test_multiline.py::test_a_record_waits_for_its_last_line",),
    ),
    Mutant(
        "parts of a container's line are records of their own",
        "agent/parsing/multiline.py",
        "            (joints.begins & ~follows) | containers.is_alone(wrapped),\n",
        "            joints.begins | containers.is_alone(wrapped),\n",
        (
            "tests/unit/agent/parsing/test_containers.py::test_parts_of_a_line_are_joined",
            "tests/unit/agent/parsing/test_containers.py::test_texts_are_those_of_a_simple_program",
        ),
    ),
    Mutant(
        "lines of two streams of a container become one record",
        "agent/parsing/containers.py",
        "    alone = ~lines.is_good | _differs(lines)\n",
        "    alone = ~lines.is_good\n",
        ("tests/unit/agent/parsing/test_containers.py::test_a_trace_in_a_container_is_one_record",),
    ),
    Mutant(
        "a line that is not of the runtime goes with the line before it",
        "agent/parsing/containers.py",
        "    alone = ~lines.is_good | _differs(lines)\n",
        "    alone = _differs(lines)\n",
        (
            "tests/unit/agent/parsing/test_containers.py::test_texts_are_those_of_a_simple_program",
            "tests/unit/agent/parsing/test_containers.py::"
            "test_a_line_that_is_not_of_the_runtime_is_rejected_alone",
        ),
    ),
    Mutant(
        "a part is read before the next part is there",
        "agent/parsing/multiline.py",
        "            return _Joints(yes, ~is_part, yes, ~is_part)\n",
        "            return _Joints(yes, yes, yes, ~is_part)\n",
        ("tests/unit/agent/parsing/test_containers.py::test_the_last_part_is_awaited",),
    ),
    Mutant(
        "a group may be empty where RE2 needs a character",
        "agent/parsing/delimited.py",
        "        if group.kind != _REST:\n",
        "        if group.kind == _SOME_REST:\n",
        (
            "tests/unit/agent/parsing/test_delimited.py::test_what_re2_does_not_match_does_not_match",
        ),
    ),
    Mutant(
        "a class that continues behind its bracket seems to end there",
        "agent/parsing/delimited.py",
        r"@\[\]-`{-~ ]|\\\\|",
        r"@\[-`{-~ ]|",
        (
            "tests/unit/agent/parsing/test_delimited.py"
            "::test_a_class_that_continues_behind_its_bracket_is_left_to_re2",
        ),
    ),
    Mutant(
        "a group of no blanks may have a tab",
        "agent/parsing/delimited.py",
        '_BLANK: Final = b" \\t\\n\\f\\r"\n',
        '_BLANK: Final = b" \\n\\f\\r"\n',
        (
            "tests/unit/agent/parsing/test_delimited.py::test_what_re2_does_not_match_does_not_match",
        ),
    ),
    Mutant(
        "a group takes the literal's characters before its stop",
        "agent/parsing/delimited.py",
        "np.maximum(scan.next(group.after[group.stop]) - group.stop, begin)",
        "np.maximum(scan.next(group.after[group.stop]), begin)",
        ("tests/unit/agent/parsing/test_delimited.py::test_groups_end_where_re2_ends_them",),
    ),
    Mutant(
        "a stop that a literal repeats is taken for the next group's stop",
        "agent/parsing/delimited.py",
        """            if byte == self._stop:
                self._index = self._index + 1
""",
        "",
        ("tests/unit/agent/parsing/test_delimited.py::test_groups_end_where_re2_ends_them",),
    ),
    Mutant(
        "the first of the last lines is believed to begin a record",
        "agent/parsing/multiline.py",
        "joints.begins[1:].any()",
        "joints.begins.any()",
        (
            "tests/unit/agent/parsing/test_look_back.py"
            "::test_the_last_lines_decide_where_whole_records_end",
        ),
    ),
    Mutant(
        "a plain line of a container may begin with any word",
        "agent/parsing/containers.py",
        "        and _IS_OF_TIME[np.frombuffer(times.buffers()[2], np.uint8)].all()\n",
        "",
        ("tests/unit/agent/parsing/test_plain_cri.py::test_lines_are_taken_apart_as_by_re2",),
    ),
    Mutant(
        "texts of containers are decoded before their parts are joined",
        "agent/batches/parsers.py",
        "    return ContainerParser(recipe.container, "
        "_decoding(recipe, without_fields(schema)), schema)\n",
        """    build = _BUILDERS[recipe.parser]
    inner = build(recipe, without_fields(without_mark(schema)))
    parser = ContainerParser(recipe.container, inner, without_mark(schema))
    return ReplacingParser(parser, recipe.encoding)
""",
        (
            "tests/unit/agent/batches/test_press.py::"
            "test_a_character_that_a_runtime_divided_is_whole_again",
        ),
    ),
    Mutant(
        "a member that has the field's own name loses to its alias",
        "agent/parsing/aliases.py",
        "    found |= {name: each for name, each in value.items() if name not in aliases.names}\n",
        "",
        (
            "tests/unit/agent/parsing/test_json_lines.py::"
            "test_members_are_found_by_the_aliases_of_fields",
        ),
    ),
    Mutant(
        "a wrong name of a JSON time is not noticed",
        "agent/parsing/time_members.py",
        "        if kind is None and path[0] not in removed:\n            continue\n",
        "",
        ("tests/unit/agent/parsing/test_json_lines.py::test_a_time_that_is_no_field_is_refused",),
    ),
    Mutant(
        "a time inside an object is looked for in the outermost object",
        "agent/parsing/time_members.py",
        "        value = value.get(name)\n",
        "        value = value.get(path[-1], value.get(name))\n",
        ("tests/unit/agent/parsing/test_json_lines.py::test_times_inside_objects_are_found",),
    ),
    Mutant(
        "microseconds since 1970 count as milliseconds",
        "agent/parsing/timestamps.py",
        '    "epoch_us": Epoch(1_000_000, 18),\n',
        '    "epoch_us": Epoch(1_000, 18),\n',
        ("tests/unit/agent/parsing/test_timestamps.py",),
    ),
    Mutant(
        "a record with the time of reading has no mark",
        "agent/parsing/text_fields.py",
        "            columns.append(pa.array(event_ms == NO_TIME))\n",
        "            columns.append(pa.array(event_ms != event_ms))\n",
        (
            "tests/unit/agent/batches/test_press.py::"
            "test_a_time_that_cannot_be_read_is_the_time_of_reading_if_this_is_set",
        ),
    ),
    Mutant(
        "settings that the program refuses now are replayed",
        "agent/delivery/replay.py",
        "        if not self._presses.can_press(recipe):\n",
        "        if False:\n",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_settings_that_the_program_refuses_now_do_not_stop_the_agent",
        ),
    ),
    Mutant(
        "a column without lines stops the parser of times",
        "agent/parsing/timestamps.py",
        "        if not len(values):\n            return",
        "        if len(values) < 0:\n            return",
        (
            "tests/unit/agent/batches/test_press.py::"
            "test_lines_that_are_all_too_long_are_rejected_by_a_source_with_times",
        ),
    ),
    Mutant(
        "all rows have the fields of the first file's path",
        "agent/parsing/added_fields.py",
        "column.take(pa.array(owner))",
        "column.take(pa.array(owner * 0))",
        (
            "tests/unit/agent/parsing/test_added_fields.py::test_each_row_has_the_fields_of_its_own_file",
        ),
    ),
    Mutant(
        "bytes are promised again while the brokers are asked what they have of them",
        "agent/files/reading.py",
        "    return is_open and not tracked.is_replaying\n",
        "    return is_open\n",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_promised_bytes_are_not_promised_again_while_brokers_are_asked",
        ),
    ),
    Mutant(
        "what is missing is decided before late batches can have come",
        "agent/delivery/search.py",
        "return self.is_over or (self._asked_anew and open_ <= self._logs.read_up())",
        "return self.is_over or open_ <= self._logs.read_up()",
        ("tests/unit/agent/test_reading_back.py::test_late_batches_are_waited_for",),
    ),
    Mutant(
        "a hole in a log is taken for what the brokers do not have",
        "agent/delivery/search.py",
        """            return Certainty.UNCERTAIN, f", and {hole}"
""",
        """            return Certainty.LOST, f", and {hole}"
""",
        ("tests/model/test_agent_read_back.py::test_only_what_expired_unread_is_uncertain",),
    ),
    Mutant(
        "with brokers away what is missing is lost",
        "agent/delivery/search.py",
        """        return self._open <= self._logs.read_up()
""",
        """        return True
""",
        ("tests/unit/agent/test_reading_back.py::test_without_brokers_nothing_is_decided",),
    ),
    Mutant(
        "partitions begin where they end now, though something was on its way to them",
        "agent/loop/beginning.py",
        """    if state.intents():
        return []
""",
        "",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_no_partition_begins_at_its_end_while_something_is_on_its_way",
        ),
    ),
    Mutant(
        "only the data topic is read back",
        "agent/delivery/read_back.py",
        (
            "    found = {TopicPartition(rejected.name, routing.of_file(intent.file, "
            "rejected.partitions))}\n"
        ),
        """    found: set[TopicPartition] = set()
    del rejected
""",
        (
            "tests/unit/agent/delivery/test_read_back.py::test_every_record_lies_in_reach",
            "tests/unit/agent/test_reading_back.py::"
            "test_rejected_records_that_are_found_count_as_rejected",
        ),
    ),
    Mutant(
        "of a file that is spread only the partition of the first byte is read back",
        "agent/delivery/read_back.py",
        """        begin = intent.first >> routing.SPREAD_BITS << routing.SPREAD_BITS
""",
        """        begin = intent.first
""",
        ("tests/unit/agent/delivery/test_read_back.py::test_every_record_lies_in_reach",),
    ),
    Mutant(
        "a record that was refused is lost though a process before may have sent it",
        "agent/delivery/refused.py",
        "if each.was_sent or self._progress.is_of_before(each.flight.intent.sequence):",
        "if each.was_sent:",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_what_a_process_before_may_have_sent_is_read_back_too",
        ),
    ),
    Mutant(
        "a record that was refused is lost though an attempt before was not answered",
        "agent/delivery/refused.py",
        "if each.was_sent or self._progress.is_of_before(each.flight.intent.sequence):",
        "if self._progress.is_of_before(each.flight.intent.sequence):",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_what_an_earlier_attempt_brought_is_acknowledged",
        ),
    ),
    Mutant(
        "a record that readers drop counts as arrived",
        "agent/delivery/refused.py",
        """            kept = first >= self._marks.move(file, tp, end)
""",
        """            kept = first >= 0
""",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_a_record_is_there_where_readers_keep_it",
        ),
    ),
    Mutant(
        "what lies behind a refused record is sent before the mark is durable",
        "agent/loop/loop.py",
        """        if not self._refused.has_unwritten:
            self._progress.sent(self.outbound.pump())
""",
        """        self._progress.sent(self.outbound.pump())
""",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_nothing_behind_it_is_sent_before_that_mark_is_durable",
        ),
    ),
    Mutant(
        "a refused record is declared before the checkpoint passes its intent",
        "agent/delivery/refused.py",
        """        self._apart[refusal.flight.intent.sequence].append(apart)
""",
        """        self._tracker.news.set_apart.append(apart)
""",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_killed_before_its_intent_is_passed_nothing_was_declared",
        ),
    ),
    Mutant(
        "however many refused records are undecided, reading goes on",
        "agent/loop/loop.py",
        """        if not self.outbound.has_room or self._refused.is_full:
""",
        """        if not self.outbound.has_room:
""",
        ("tests/unit/agent/delivery/test_refused.py::test_with_many_undecided_nothing_is_read",),
    ),
    Mutant(
        "a batch that the producer took back was never sent",
        "agent/delivery/outbound.py",
        "again.append(replace(parcel, was_sent=parcel.was_sent or delivery.attempts > 0))",
        "again.append(parcel)",
        (
            "tests/unit/agent/delivery/test_outbound.py::"
            "test_what_was_sent_in_a_larger_batch_or_taken_back_may_have_arrived",
        ),
    ),
    Mutant(
        "a batch that was sent a second time was sent once",
        "agent/delivery/outbound.py",
        "was_sent = parcel.was_sent or delivery.attempts > 1",
        "was_sent = parcel.was_sent or delivery.attempts > 2",
        (
            "tests/unit/agent/delivery/test_outbound.py",
            "tests/unit/agent/delivery/test_refused.py::"
            "test_what_an_earlier_attempt_brought_is_acknowledged",
        ),
    ),
    Mutant(
        "with a refused record its neighbours are lost after a crash",
        "agent/delivery/read_back.py",
        """    changes = np.flatnonzero(np.diff(is_dropped[low:high])) + low + 1
""",
        """    is_dropped = np.full(len(is_dropped), is_dropped[low:high].any())
    changes = np.flatnonzero(np.diff(is_dropped[low:high])) + low + 1
""",
        ("tests/unit/agent/delivery/test_refused.py::test_after_a_crash_its_neighbours_are_sent",),
    ),
    Mutant(
        "what is found of an intent is settled and counts nowhere",
        "agent/delivery/inquiry.py",
        ("            flight.outcome = self._presses.arrived(asked.recipe, whole.file, records)\n"),
        """            found = self._presses.arrived(asked.recipe, whole.file, records)
            flight.outcome = replace(found, counts=Counts())
""",
        ("tests/unit/agent/test_reading_back.py::test_what_is_found_counts_and_the_rest_is_sent",),
    ),
    Mutant(
        "parts that are not sent are not kept until the checkpoint passes them",
        "agent/delivery/inquiry.py",
        """            changes.put_intents(self._kept)
""",
        "",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_parts_that_arrived_are_promised_until_the_checkpoint_passes_them",
        ),
    ),
    Mutant(
        "the whole intent stays beside its parts",
        "agent/delivery/inquiry.py",
        """            changes.forget_intents(self._divided)
""",
        "",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_an_intent_of_which_a_part_is_found_is_divided",
        ),
    ),
    Mutant(
        "a record is sent behind later ones of its file, where readers drop it",
        "agent/delivery/inquiry.py",
        """            if would_be:
""",
        """            if would_be and not asked.intent.length:
""",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_a_record_that_readers_would_drop_is_not_sent",
        ),
    ),
    Mutant(
        "a part is sent though lines end elsewhere for this version of the program",
        "agent/delivery/inquiry.py",
        """            if {part.first, part.end} <= ends:
""",
        """            if part.first >= asked.intent.first:
""",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_lines_that_end_elsewhere_for_this_version_are_not_cut",
        ),
    ),
    Mutant(
        "records that overlap have arrived",
        "agent/delivery/read_back.py",
        """    sound = np.diff(np.append(at, len(begins))) == 1
""",
        """    sound = np.diff(np.append(at, len(begins))) >= 1
""",
        ("tests/unit/agent/delivery/test_read_back.py::test_records_that_overlap_are_doubtful",),
    ),
    Mutant(
        "repeats of a record are two records",
        "agent/delivery/read_back.py",
        """    new[1:] = (first[1:] != first[:-1]) | (end[1:] != end[:-1])
""",
        """    new[1:] = first[1:] >= first[:-1]
""",
        ("tests/unit/agent/delivery/test_read_back.py::test_repeats_are_one_record",),
    ),
    Mutant(
        "a part that is sent has the time of now",
        "agent/delivery/inquiry.py",
        ("            intent = replace(whole, first=part.first, end=part.end, crc=crc_of(data))\n"),
        (
            "            intent = replace(whole, first=part.first, end=part.end, "
            "crc=crc_of(data))\n"
            "            intent = replace(intent, read_ms=intent.read_ms + int(self._past_at "
            "* 1000))\n"
        ),
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_an_intent_of_which_a_part_is_found_is_divided",
            "tests/unit/agent/test_reading_back.py",
        ),
    ),
    Mutant(
        "parts of a divided intent come behind what was promised behind it",
        "agent/state/database.py",
        """            file: iter(sorted(own, key=lambda intent: intent.first))
""",
        """            file: iter(sorted(own, key=lambda intent: intent.sequence))
""",
        (
            "tests/unit/agent/state/test_database.py::"
            "test_parts_of_a_divided_intent_stand_where_it_stood",
        ),
    ),
    Mutant(
        "of what is sent again the last time counts for the floor",
        "agent/delivery/progress.py",
        """                self._sent.setdefault(intent, {}).setdefault(tp, lowest)
""",
        """                self._sent.setdefault(intent, {})[tp] = lowest
""",
        (
            "tests/unit/agent/delivery/test_progress.py::"
            "test_what_is_sent_again_may_lie_where_it_was_sent_first",
        ),
    ),
    Mutant(
        "floors rise while intents of before the start wait",
        "agent/delivery/progress.py",
        """        if self._before or not self._moved:
""",
        """        if not self._moved:
""",
        (
            "tests/unit/agent/delivery/test_progress.py::"
            "test_floors_stand_still_while_old_intents_wait",
        ),
    ),
    Mutant(
        "the last acknowledged offset is the floor",
        "agent/delivery/progress.py",
        """            floor = lowest.get(tp, self.offsets.get(tp, -1) + 1)
""",
        """            floor = self.offsets.get(tp, -1) + 1
""",
        (
            "tests/unit/agent/delivery/test_progress.py::"
            "test_a_batch_that_was_sent_holds_the_floor_until_its_intent_is_passed",
        ),
    ),
    Mutant(
        "floors are raised in memory only",
        "agent/delivery/progress.py",
        """        changes.put_floors(raised)
""",
        "",
        ("tests/unit/agent/delivery/test_progress.py",),
    ),
    Mutant(
        "another Python is no other program for lines of JSON",
        "agent/batches/program_versions.py",
        """        names.append(f"python-{platform.python_version()}")
""",
        """        pass
""",
        ("tests/unit/agent/batches/test_recipe.py::test_what_a_program_is_named_by",),
    ),
    Mutant(
        "the rules of a zone are known by its name",
        "agent/batches/program_versions.py",
        """            return f"{crc_of((Path(folder) / name).read_bytes()):08x}"
""",
        """            return (Path(folder) / name).read_bytes() and name
""",
        ("tests/unit/agent/batches/test_recipe.py::test_new_rules_of_a_zone_are_another_program",),
    ),
    Mutant(
        "positions of a file are mixed in another way, and the program is called the same",
        "agent/batches/routing.py",
        """    table = [_mix(_mix(file) ^ int(step)) % partitions for step in found]
""",
        """    table = [_mix(file + int(step)) % partitions for step in found]
""",
        ("tests/unit/agent/batches/test_recipe.py::test_known_lines_become_known_records",),
    ),
    Mutant(
        "what another version of the program had promised is sent again",
        "agent/delivery/replay.py",
        "if recipe is None or recipe != at_present(recipe):",
        "if recipe is None:",
        ("tests/unit/agent/test_reading_back.py",),
    ),
    Mutant(
        "an over-long line is sent again whatever its bytes are by now",
        "agent/delivery/evidence.py",
        "return Evidence(head, prefix_crc, tail) if crc == intent.crc else None",
        "return Evidence(head, prefix_crc, tail)",
        (
            "tests/unit/agent/delivery/test_promises.py::"
            "test_an_overlong_line_with_other_bytes_is_not_sent_again",
        ),
    ),
    Mutant(
        "promised bytes are those that lie there now",
        "agent/delivery/evidence.py",
        "if len(data) != intent.length or crc_of(data) != intent.crc:",
        "if len(data) != intent.length:",
        (
            "tests/unit/agent/loop/test_loop.py::test_promised_bytes_that_are_gone_are_lost",
            "tests/unit/agent/test_seals.py::"
            "test_a_promise_that_cannot_be_kept_voids_what_was_noted",
        ),
    ),
    Mutant(
        "what the host has no more is uncertain though no broker has it",
        "agent/delivery/inquiry.py",
        """        elif verdict.certainty is Certainty.LOST:
            flight.lost_bytes = size
""",
        """        elif verdict.certainty is Certainty.LOST and evidence is not None:
            flight.lost_bytes = size
""",
        (
            "tests/unit/agent/loop/test_loop.py::test_promised_bytes_that_are_gone_are_lost",
            "tests/unit/agent/test_reading_back.py::"
            "test_bytes_that_are_gone_are_lost_but_for_what_is_found",
            "tests/unit/agent/test_reading_back.py",
        ),
    ),
    Mutant(
        "what is lost of an intent is settled without a word",
        "agent/delivery/inquiry.py",
        """            self._tracker.news.set_apart.append(apart)
""",
        """            del apart
""",
        ("tests/unit/agent/loop/test_loop.py::test_promised_bytes_that_are_gone_are_lost",),
    ),
    Mutant(
        "a file's partition follows its path",
        "agent/batches/routing.py",
        """    return _mix(file) % partitions
""",
        """    return _mix(file >> 32) % partitions
""",
        ("tests/unit/agent/batches/test_routing.py::test_a_file_stays_in_its_partition",),
    ),
    Mutant(
        "records without a key go where an empty key goes",
        "agent/batches/press.py",
        (
            "            return np.where(missing, _file_partitions(records, "
            "self.recipe.data), by_key)\n"
        ),
        """            return by_key
""",
        ("tests/unit/agent/batches/test_press.py::test_null_keys_follow_their_file",),
    ),
    Mutant(
        "a turn is one transaction for each statement",
        "agent/state/database.py",
        """                self._connection.executemany(statement, rows)
            self._connection""",
        """                self._connection.executemany(statement, rows)
                self._connection.execute("COMMIT")
                self._connection.execute("BEGIN IMMEDIATE")
            self._connection""",
        ("tests/unit/agent/state/test_database.py::test_a_transaction_is_all_or_nothing",),
    ),
    Mutant(
        "last acknowledged offsets are not durable",
        "agent/delivery/progress.py",
        """            changes.put_offsets(self._unwritten.items())
""",
        "",
        (
            "tests/unit/agent/delivery/test_offsets.py::"
            "test_the_last_acknowledged_offset_is_durable_with_the_checkpoint",
        ),
    ),
    Mutant(
        "last acknowledged offsets are durable a checkpoint later",
        "agent/delivery/progress.py",
        """            changes.put_offsets(self._unwritten.items())
            self.offsets.update(self._unwritten)
""",
        """            changes.put_offsets(self.offsets.items())
            self.offsets.update(self._unwritten)
""",
        (
            "tests/unit/agent/delivery/test_offsets.py::"
            "test_the_last_acknowledged_offset_is_durable_with_the_checkpoint",
        ),
    ),
    Mutant(
        "the number of the last delta is known until the agent ends",
        "agent/accounts/deltas.py",
        """        changes.put_meta("number", number)
""",
        "",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_deltas_have_numbers_without_holes_and_count_what_was_passed",
            "tests/unit/agent/loop/test_loop.py::"
            "test_buckets_of_another_size_begin_a_chain_of_their_own",
        ),
    ),
    Mutant(
        "a start forgets what was counted and is in no delta yet",
        "agent/accounts/deltas.py",
        "            self._counts.put(key, each)\n",
        "            pass\n",
        (
            "tests/unit/agent/accounts/test_deltas.py::"
            "test_what_is_in_no_delta_yet_is_counted_after_a_crash_as_before",
        ),
    ),
    Mutant(
        "sums that are in a delta stay durable",
        "agent/accounts/deltas.py",
        "        changes.clear_sums()\n",
        "",
        ("tests/unit/agent/accounts/test_deltas.py::test_what_is_in_a_delta_is_in_no_other",),
    ),
    Mutant(
        "sums that are in a delta stay in memory",
        "agent/accounts/deltas.py",
        "        self._counts.clear()\n",
        "",
        ("tests/unit/agent/accounts/test_deltas.py::test_what_is_in_a_delta_is_in_no_other",),
    ),
    Mutant(
        "the number of a bucket's last delta is not durable",
        "agent/accounts/deltas.py",
        "        changes.put_touched(numbered.touched.items())\n",
        "",
        ("tests/unit/agent/accounts/test_deltas.py::test_what_is_in_a_delta_is_in_no_other",),
    ),
    Mutant(
        "a seal's number is used once more",
        "agent/accounts/deltas.py",
        "            self._use(seal.number, changes)\n",
        "",
        ("tests/unit/agent/accounts/test_deltas.py::test_what_is_in_a_delta_is_in_no_other",),
    ),
    Mutant(
        "two deltas of one transaction name the same one before them",
        "agent/accounts/deltas.py",
        """            {**self._previous(keys), **self._touched},
""",
        """            self._previous(keys),
""",
        (
            "tests/unit/agent/accounts/test_deltas.py::"
            "test_two_deltas_of_one_transaction_follow_each_other",
        ),
    ),
    Mutant(
        "a loss that a start finds again is declared again",
        "agent/accounts/accounts.py",
        (
            "        self._declared = {(x.file, x.first, x.end, x.certainty) for x in "
            "state.losses()}\n"
        ),
        (
            "        self._declared = {(x.file, x.first, x.end, x.certainty) for x in "
            "state.losses()[:0]}\n"
        ),
        (
            "tests/unit/agent/accounts/test_accounts.py::"
            "test_a_loss_that_a_start_finds_again_is_not_declared_again",
        ),
    ),
    Mutant(
        "the same loss is declared again",
        "agent/accounts/accounts.py",
        """        self._declared.add(declared)
""",
        "",
        ("tests/unit/agent/accounts/test_accounts.py::test_a_range_is_declared_once",),
    ),
    Mutant(
        "a seal is sent without what it vouches for in deltas",
        "agent/accounts/accounts.py",
        """        self._deltas.cut(now_ms, changes)
        self._noted = [""",
        "        self._noted = [",
        (
            "tests/unit/agent/test_seals.py::"
            "test_what_a_seal_vouches_for_is_in_deltas_of_lower_numbers",
        ),
    ),
    Mutant(
        "the moment that a seal names is that behind its look",
        "agent/loop/loop.py",
        """            self._accounts.note_sizes(*noted, self._sealed, self.tracker)
""",
        """            noted = self._clock.time_ms(), noted[1]
            self._accounts.note_sizes(*noted, self._sealed, self.tracker)
""",
        ("tests/unit/agent/test_seals.py::test_a_seal_names_the_moment_before_its_look",),
    ),
    Mutant(
        "a seal vouches for what was read, not for what lay there",
        "agent/accounts/sealing.py",
        """            targets[tracked.file] = max(tracked.size, tracked.promised)
""",
        """            targets[tracked.file] = tracked.read_position
""",
        (
            "tests/unit/agent/accounts/test_sealing.py::"
            "test_a_seal_waits_for_every_byte_that_lay_there",
        ),
    ),
    Mutant(
        "a seal vouches for a file that may be another one",
        "agent/accounts/sealing.py",
        "        is_in_doubt = tracked.state is FileState.OPEN and not tracked.verified\n",
        "        is_in_doubt = False\n",
        ("tests/unit/agent/accounts/test_sealing.py::test_nothing_is_said_of_a_file_in_doubt",),
    ),
    Mutant(
        "a seal that waits for long is named at once",
        "agent/accounts/accounts.py",
        "final=final, since=since))",
        "final=final))",
        (
            "tests/unit/agent/loop/test_unfinished.py::"
            "test_a_file_that_holds_back_a_seal_for_long_is_named",
        ),
    ),
    Mutant(
        "a file that holds back a seal is logged at each look",
        "agent/loop/held_seals.py",
        "        self._named = set(found)\n",
        "",
        (
            "tests/unit/agent/loop/test_unfinished.py::"
            "test_a_file_that_holds_back_a_seal_for_long_is_named",
        ),
    ),
    Mutant(
        "doubts that come after the look do not void what was noted",
        "agent/accounts/sealing.py",
        """    if doubts != noted.doubts:
        return True
""",
        "",
        ("tests/unit/agent/test_seals.py::test_generations_that_nobody_saw_void_what_was_noted",),
    ),
    Mutant(
        "a topic is sealed though a file of it cannot be read",
        "agent/accounts/accounts.py",
        """            if sealing.held_back_by(topic, tracker.unreadable):
                continue
""",
        "",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_an_unreadable_file_is_named_and_holds_the_seal_back",
        ),
    ),
    Mutant(
        "what the clock said before it was set back is forgotten with any seal",
        "agent/accounts/set_backs.py",
        """        if self._noted.get(topic) == self._count:
            self._greatest.pop(topic, None)
""",
        """        self._greatest.pop(topic, None)
""",
        (
            "tests/unit/agent/accounts/test_set_backs.py::"
            "test_what_it_said_before_it_was_set_back_holds_until_a_seal_that_was_noted_later",
        ),
    ),
    Mutant(
        "a topic that was asked for has its last word, whatever is on its way",
        "agent/accounts/leaving.py",
        "at_rest = self.is_asked and sealing.is_complete(noted, files)",
        "at_rest = self.is_asked",
        (
            "tests/unit/agent/accounts/test_leaving.py::"
            "test_only_a_topic_at_rest_gets_its_last_word",
        ),
    ),
    Mutant(
        "a last word counts as said before it is durable",
        "agent/accounts/leaving.py",
        """        return self._kept & self.done
""",
        """        return set(self.done)
""",
        ("tests/unit/agent/accounts/test_leaving.py::test_what_is_not_durable_yet_is_not_done",),
    ),
    Mutant(
        "another cluster is known by another name",
        "agent/loop/beginning.py",
        """    if state.cluster_id and cluster.id and state.cluster_id != cluster.id:
""",
        """    if state.cluster_id and cluster.id and state.cluster != cluster.name:
""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_lines_on_their_way_to_another_cluster_refuse_to_start",
        ),
    ),
    Mutant(
        "lines on their way to a topic that was made again are sent to the new one",
        "agent/loop/beginning.py",
        "if before.topic_id and source.topic_id and before.topic_id != source.topic_id:",
        "if before.topic_id and not source.topic_id:",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_what_was_on_its_way_to_a_topic_made_again_can_be_given_up",
        ),
    ),
    Mutant(
        "a batch that lies where the last acknowledged one lay is in the same log",
        "agent/cluster/topics.py",
        "delivery.error is None and 0 <= delivery.base_offset <= offsets.get(delivery.tp, -1)",
        "delivery.error is None and 0 <= delivery.base_offset < offsets.get(delivery.tp, -1)",
        (
            "tests/unit/agent/cluster/test_topics.py::"
            "test_a_batch_below_what_was_acknowledged_lies_in_another_log",
        ),
    ),
    Mutant(
        "the partitions of a topic that was made again are taken for the old one's",
        "agent/cluster/connection.py",
        """        found.destinations.append(each if others else replace(each, recipe=recipe))
""",
        """        found.destinations.append(replace(each, recipe=recipe))
""",
        (
            "tests/unit/agent/cluster/test_connection.py::"
            "test_new_partitions_are_seen_and_a_topic_made_again_is_not_mixed_in",
        ),
    ),
    Mutant(
        "an over-long line has the length of what was read of it",
        "agent/batches/framed_lines.py",
        """        length=intent.length,
""",
        """        length=len(reading.data),
""",
        (
            "tests/unit/agent/loop/test_loop.py::test_an_overlong_line_is_rejected_with_its_whole_length",
        ),
    ),
    Mutant(
        "a line as long as allowed is rejected",
        "agent/batches/press.py",
        "line_columns.sizes(lines.values) > self.recipe.line_bytes",
        "line_columns.sizes(lines.values) >= self.recipe.line_bytes",
        ("tests/unit/agent/batches/test_press.py::test_lines_longer_than_allowed_are_rejected",),
    ),
    Mutant(
        "what is not UTF-8 is left out",
        "agent/parsing/lines.py",
        '.decode("utf-8", "replace").encode()',
        '.decode("utf-8", "ignore").encode()',
        (
            "tests/unit/agent/parsing/test_replacing.py::"
            "test_what_is_replaced_is_a_function_of_bytes_and_recipe",
            "tests/unit/agent/parsing/test_replacing.py::"
            "test_each_maximal_part_becomes_one_character",
        ),
    ),
    Mutant(
        "marks are counted in rows of what was parsed, not of the lines",
        "agent/parsing/replacing.py",
        "pa.array(marks[parsed.rows])",
        "pa.array(marks[: len(parsed.rows)])",
        ("tests/unit/agent/parsing/test_replacing.py",),
    ),
    Mutant(
        "a line in which the program wrote U+FFFD itself is marked",
        "agent/parsing/replacing.py",
        """        marks[rows] = True
""",
        """        marks[rows] = True
        marks |= ["\\ufffd".encode() in line for line in repaired.to_pylist()]
""",
        (
            "tests/unit/agent/parsing/test_replacing.py::"
            "test_a_raw_line_is_delivered_with_what_is_not_text_replaced_and_marked",
            "tests/unit/agent/parsing/test_replacing.py::test_text_is_left_as_it_is",
            "tests/unit/agent/parsing/test_replacing.py",
        ),
    ),
    Mutant(
        "a promise whose row was changed is kept as it says now",
        "agent/state/database.py",
        (
            '            raise self._damaged(f"the row of intent {row[0]} does not have its '
            'checksum")\n'
        ),
        """            del crc
""",
        ("tests/unit/agent/state/test_database.py::test_a_changed_promise_is_noticed",),
    ),
    Mutant(
        "a half-made state is an empty one",
        "agent/state/database.py",
        """            leftover.unlink(missing_ok=True)
""",
        """            leftover.touch()
""",
        ("tests/unit/agent/state/test_database.py::test_a_half_made_database_is_made_anew",),
    ),
    Mutant(
        "rejected bytes are acknowledged ones",
        "agent/delivery/progress.py",
        """            tracked.tally.acknowledged += outcome.delivered_bytes
            tracked.tally.rejected += outcome.rejected_bytes
""",
        (
            "            tracked.tally.acknowledged += outcome.delivered_bytes + "
            "outcome.rejected_bytes\n"
            "            tracked.tally.rejected += outcome.rejected_bytes\n"
        ),
        (
            "tests/unit/agent/loop/test_loop.py::test_lines_arrive_in_order_and_the_ledger_adds_up",
            "tests/unit/agent/loop/test_loop.py",
        ),
    ),
    Mutant(
        "an older copy that is adopted goes on under the ids that the newer state had",
        "agent/state/renewal.py",
        "changes = _new_ids(state) if is_older else Changes()",
        "changes = Changes()",
        (
            "tests/unit/agent/state/test_renewal.py::"
            "test_what_the_newer_state_may_have_sent_is_read_again_under_new_ids",
        ),
    ),
    Mutant(
        "a state that was moved loses what it had promised and counted",
        "agent/state/renewal.py",
        "changes = _new_ids(state) if is_older else Changes()",
        "changes = _new_ids(state)",
        (
            "tests/unit/agent/state/test_renewal.py::test_a_state_that_is_the_newest_goes_on_as_it_is",
        ),
    ),
    Mutant(
        "what the older copy had counted is said once more",
        "agent/state/renewal.py",
        "    changes.clear_sums()\n",
        "",
        (
            "tests/unit/agent/state/test_renewal.py::"
            "test_what_the_newer_state_may_have_sent_is_read_again_under_new_ids",
        ),
    ),
    Mutant(
        "a value of a file's row that was changed is believed",
        "agent/state/database.py",
        'raise self._damaged(f"the row of file {row[0]} does not have its checksum")',
        "return _tracked(values)",
        ("tests/unit/agent/state/test_database.py::test_a_changed_value_is_noticed",),
    ),
    Mutant(
        "records are sent in the turn before their promise is written",
        "agent/loop/loop.py",
        """        if self._write(self._unwritten):
            taken, self._unwritten = self._unwritten.taken, None
            self._presses.press(taken, self.outbound, now)
""",
        """        self._presses.press(self._unwritten.taken, self.outbound, now)
        self._progress.sent(self.outbound.pump())
        if self._write(self._unwritten):
            self._unwritten = None
""",
        ("tests/unit/agent/loop/test_loop.py::test_nothing_is_sent_before_its_intent_is_durable",),
    ),
    Mutant(
        "a file that had ended is read on under a new id",
        "agent/state/renewal.py",
        "read_on = [each for each in files if each.state is FileState.OPEN]",
        "read_on = [each for each in files if each.state is not FileState.CLOSED]",
        (
            "tests/unit/agent/state/test_renewal.py::"
            "test_a_file_that_had_ended_keeps_its_end_and_what_was_promised_of_it",
        ),
    ),
    Mutant(
        "what was counted is durable only when it is in a delta",
        "agent/accounts/deltas.py",
        "            changes.put_sums((key, known[key]) for key in touched)\n",
        "            del known\n",
        (
            "tests/unit/agent/accounts/test_deltas.py::"
            "test_what_was_counted_is_durable_with_each_checkpoint",
        ),
    ),
    Mutant(
        "of a bucket's sum only the last part is durable",
        "agent/accounts/deltas.py",
        "changes.put_sums((key, known[key]) for key in touched)",
        "changes.put_sums((key, sums) for each in counts for key, sums in each.items())",
        (
            "tests/unit/agent/accounts/test_deltas.py::"
            "test_what_was_counted_is_durable_with_each_checkpoint",
        ),
    ),
    Mutant(
        "whatever is acknowledged is passed, in whichever order",
        "agent/delivery/progress.py",
        """        while tracked.flights and tracked.flights[0].is_done:
            flight, tracked.flights = tracked.flights[0], tracked.flights[1:]
""",
        """        for flight in [each for each in tracked.flights if each.is_done]:
            tracked.flights = tuple(x for x in tracked.flights if x is not flight)
""",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_what_no_attempt_brought_is_lost_after_the_wait",
        ),
    ),
    Mutant(
        "readings of different moments are pressed with the moment of the first",
        "agent/delivery/presses.py",
        "    return (a.recipe, a.read_ms) == (b.recipe, b.read_ms)",
        "    return a.recipe == b.recipe",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_promises_of_different_moments_are_each_sent_again_with_their_own",
        ),
    ),
    Mutant(
        "of several intents that wait the highest place is the floor",
        "agent/delivery/progress.py",
        "                lowest[tp] = min(behind, lowest.get(tp, behind))\n",
        "                lowest[tp] = max(behind, lowest.get(tp, behind))\n",
        (
            "tests/unit/agent/delivery/test_progress.py::"
            "test_of_several_intents_that_wait_the_lowest_place_is_the_floor",
        ),
    ),
    Mutant(
        "parts of a divided intent hold no floor",
        "agent/delivery/inquiry.py",
        "            self._progress.divided([intent.sequence])\n",
        "",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_parts_that_arrived_hold_the_floor_until_the_checkpoint_passes_them",
        ),
    ),
    Mutant(
        "the watermark of before the wait is enough",
        "agent/delivery/search.py",
        "            self._logs.ask_anew()\n",
        "",
        (
            "tests/unit/agent/delivery/test_search.py::"
            "test_the_watermark_is_asked_for_anew_once_nothing_can_arrive_any_more",
        ),
    ),
    Mutant(
        "what a broker refuses is decided without waiting for an earlier attempt",
        "agent/delivery/refused.py",
        "        self._past_at = self._asked_at + self._wait_s\n",
        "        self._past_at = self._asked_at\n",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_what_no_attempt_brought_is_lost_after_the_wait",
        ),
    ),
    Mutant(
        "an earlier attempt is waited for from the start on, not from the refusal",
        "agent/delivery/refused.py",
        "                self._asked_at = now\n",
        "",
        (
            "tests/unit/agent/delivery/test_refused.py::"
            "test_what_no_attempt_brought_is_lost_after_the_wait",
        ),
    ),
    Mutant(
        "what was sent by an unknown recipe is read back nowhere",
        "agent/delivery/inquiry.py",
        "            places = set() if recipe is None else reach_of_any(recipe)\n",
        "            places = set()\n",
        (
            "tests/unit/agent/test_reading_back.py::"
            "test_what_was_given_up_is_read_back_where_its_topic_is_the_same",
        ),
    ),
    Mutant(
        "of another version's intents nothing is read back",
        "agent/delivery/inquiry.py",
        "            places = reach(recipe, intent)\n",
        "            places = reach(recipe, intent) if recipe == at_present(recipe) else set()\n",
        ("tests/unit/agent/test_reading_back.py::test_what_is_found_counts_and_the_rest_is_sent",),
    ),
    Mutant(
        "what came back is sent behind what waited",
        "agent/delivery/outbound.py",
        "        self._queue.extendleft(reversed(again))\n",
        "        self._queue.extend(again)\n",
        (
            "tests/unit/agent/delivery/test_outbound.py::"
            "test_what_came_back_is_sent_before_what_waited",
        ),
    ),
    Mutant(
        "what came back is sent again in reverse",
        "agent/delivery/outbound.py",
        "        self._queue.extendleft(reversed(again))\n",
        "        self._queue.extendleft(again)\n",
        (
            "tests/unit/agent/delivery/test_outbound.py::"
            "test_a_refused_record_is_found_and_all_others_arrive_once_in_order",
        ),
    ),
    Mutant(
        "times further ahead are believed, and the program is called the same",
        "agent/batches/press.py",
        "AHEAD_MS_MAX = 3_600_000\n",
        "AHEAD_MS_MAX = 7_200_000\n",
        ("tests/unit/agent/batches/test_recipe.py::test_known_lines_become_known_records",),
    ),
    Mutant(
        "a loss of before the start is declared again once it is in a delta",
        "agent/accounts/accounts.py",
        "for x in state.losses()}",
        "for x in state.losses(undeclared=True)}",
        (
            "tests/unit/agent/accounts/test_accounts.py::"
            "test_a_loss_that_a_start_finds_again_is_not_declared_again",
        ),
    ),
    Mutant(
        "damage is noticed only where it is read",
        "agent/state/database.py",
        """    if verdict != "ok":
        raise StateRefused(f"the state {path} is damaged""",
        """    if not verdict:
        raise StateRefused(f"the state {path} is damaged""",
        (
            "tests/unit/agent/state/test_database.py::"
            "test_damage_that_nothing_reads_at_the_start_is_noticed_there",
        ),
    ),
    Mutant(
        "a loss is declared from the last seal on, though the clock was set back behind it",
        "agent/accounts/accounts.py",
        "return min(first, self._bucket(unseen.oldest_ms))",
        "return first",
        (
            "tests/unit/agent/files/test_rotations.py::"
            "test_a_declared_span_begins_with_the_oldest_file_that_was_left_alone",
        ),
    ),
    Mutant(
        "no agent looks for messages that it sent before its state was restored",
        "agent/program.py",
        "    if state.is_new:\n",
        "    if state.is_new or clock:\n",
        (
            "tests/unit/agent/cluster/test_connection.py::"
            "test_only_a_new_agent_does_not_search_for_its_messages",
        ),
    ),
    Mutant(
        "every process takes the state for one that it has made",
        "agent/state/database.py",
        "        return kind(connection, str(path), is_new=is_new)\n",
        "        return kind(connection, str(path), is_new=True)\n",
        (
            "tests/unit/agent/state/test_database.py::"
            "test_a_state_is_new_only_for_the_process_that_made_it",
        ),
    ),
)
