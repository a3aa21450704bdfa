"""Mutants of the rules by which the loader plans, decodes, writes and commits."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a load tells its rows to nobody",
        "loader/runs/topic_run.py",
        "notes = [delta.note(newest)] if missing else []",
        "notes = []",
        (
            "tests/unit/loader/audit_topic/test_load_notes.py::"
            "test_each_load_tells_its_rows_files_and_duration",
        ),
    ),
    Mutant(
        "a loader that keeps few manifests keeps a hundred",
        "loader/state/folding.py",
        "        every = min(CHECKPOINT_EVERY, max(CHECKPOINT_EVERY_LEAST, keep))\n",
        "        every = CHECKPOINT_EVERY\n",
        ("tests/unit/loader/state/test_folding.py::test_who_keeps_few_manifests_folds_them_early",),
    ),
    Mutant(
        "the file with the columns comes after the rows",
        "loader/state/commit.py",
        """    if manifest.columns is not None:
        yield Replace(manifest.columns.staged, manifest.columns.path)
""",
        """    for move in moves(manifest):
        yield from _finish_move(manifest, move, given_up)
    if manifest.columns is not None:
        yield Replace(manifest.columns.staged, manifest.columns.path)
""",
        (
            "tests/unit/loader/state/test_commit.py::test_the_columns_come_before_the_rows",
            "tests/model/test_loader_commit.py::test_answers_of_the_commit_lost",
        ),
    ),
    Mutant(
        "new files come into place before the old ones are gone",
        "loader/state/commit.py",
        "    for folder in sorted({*removed, *changed}, key=",
        """    for move in waiting:
        yield from _finish_move(manifest, move, given_up)
    for folder in sorted({*removed, *changed}, key=""",
        ("tests/model/test_loader_commit.py::test_files_are_rewritten_beside_a_load",),
    ),
    Mutant(
        "a late loader stops at a file that a later load has removed",
        "loader/state/commit.py",
        "                if (yield from _is_removed(manifest, move.target)):\n",
        "                if False:\n",
        ("tests/model/test_loader_commit.py::test_files_are_rewritten_beside_a_load",),
    ),
    Mutant(
        "a removed file is still a file of the output",
        "loader/state/live.py",
        "        found.pop(path, None)\n",
        "        pass\n",
        (
            "tests/unit/loader/state/test_live.py::"
            "test_an_output_has_what_loads_add_and_no_later_load_removes",
        ),
    ),
    Mutant(
        "an hour whose only file is gone gets a mark",
        "loader/runs/hour_marking.py",
        "        complete = self._sound(complete, files)\n",
        "",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_an_hour_whose_only_file_is_gone_is_not_marked",
        ),
    ),
    Mutant(
        "a slow collector's answers are thrown away",
        "loader/runs/hour_marking.py",
        "                self._away = error\n                break\n",
        "                raise error\n",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_a_slow_collector_marks_what_it_has_answered",
        ),
    ),
    Mutant(
        "a topic without records makes each run read the audit topic from its beginning",
        "loader/runs/run.py",
        "    needing = [run for run in begun if run.needs_audit_topics]\n",
        "    needing = begun\n",
        ("tests/unit/loader/runs/test_run.py::test_a_topic_without_records_needs_no_old_messages",),
    ),
    Mutant(
        "a damaged checkpoint ends folding",
        "loader/state/live.py",
        "                damaged = damaged or error\n",
        "                raise\n",
        ("tests/unit/loader/state/test_folding.py::test_a_damaged_checkpoint_is_not_used",),
    ),
    Mutant(
        "a late loader takes a folded number",
        "loader/state/commit.py",
        "    if mine and (yield from chain.oldest_kept(manifest.topic)) > manifest.number:\n",
        "    if False:\n",
        (
            "tests/unit/loader/state/test_folding.py::"
            "test_a_late_loader_does_not_take_a_folded_number",
            "tests/model/test_loader_commit.py::test_manifests_are_folded_beside_a_late_loader",
        ),
    ),
    Mutant(
        "a reader takes a folded manifest",
        "loader/state/chain.py",
        "    if (yield from oldest_kept(topic)) > load:\n",
        "    if False:\n",
        ("tests/unit/loader/state/test_folding.py::test_a_reader_does_not_take_a_folded_manifest",),
    ),
    Mutant(
        "manifests go although no checkpoint stands before the oldest one that is kept",
        "loader/state/folding.py",
        "    due = Checkpoint(newest.number, _oldest(known, newest.number - keep))\n",
        "    due = Checkpoint(newest.number, max(1, newest.number - keep + 1))\n",
        (
            "tests/unit/loader/state/test_folding.py::"
            "test_every_kept_manifest_has_its_files_and_its_tables",
        ),
    ),
    Mutant(
        "manifests are deleted before their checkpoint is there",
        "loader/state/folding.py",
        "    path = layout.checkpoint(topic, *due)\n",
        """    for number in range(1, due.oldest):
        yield Delete(layout.manifest(topic, number))
    path = layout.checkpoint(topic, *due)
""",
        ("tests/model/test_loader_commit.py::test_manifests_are_folded_beside_a_late_loader",),
    ),
    Mutant(
        "tables' files go that a kept manifest names",
        "loader/state/folding.py",
        'if number is None or number >= kept.number or f"{folder}/{name}" in paths:',
        "if number is None or number >= kept.number:",
        (
            "tests/unit/loader/state/test_folding.py::"
            "test_every_kept_manifest_has_its_files_and_its_tables",
        ),
    ),
    Mutant(
        "the recount does not compare the newest checkpoint",
        "audit/recount/committed_files.py",
        "            faults += _compared(output, newest, named)\n",
        "            pass\n",
        (
            "tests/unit/audit/recount/test_committed_files.py::"
            "test_a_checkpoint_that_names_other_files_is_named",
        ),
    ),
    Mutant(
        "a reload begins without marks",
        "loader/runs/topic_reload.py",
        "            tables = read_tables(store, found.before)\n",
        "            tables = read_tables(store, None)\n",
        ("tests/unit/loader/runs/test_reload.py::test_repeats_stay_repeats",),
    ),
    Mutant(
        "a reload knows only the names that the first tables had",
        "loader/runs/topic_reload.py",
        "{**tables.locations, **names_since(store, name, load)}",
        "tables.locations",
        (
            "tests/unit/loader/runs/test_reload.py::test_files_that_were_closed_since_have_their_names",
        ),
    ),
    Mutant(
        "a reload reads without the manifest before it",
        "loader/reloading/beginning.py",
        "    if max(before, 1) < oldest:\n",
        "    if False:\n",
        (
            "tests/unit/loader/reloading/test_beginning.py::test_manifests_that_are_not_kept_are_named",
        ),
    ),
    Mutant(
        "a reload does not look whether the records are the same",
        "loader/reloading/hours.py",
        "        if was.all != now.all:\n",
        "        if False:\n",
        (
            "tests/unit/loader/runs/test_reload.py::test_other_records_than_were_committed_are_refused",
            "tests/unit/loader/reloading/test_hours.py::test_other_records_are_refused",
        ),
    ),
    Mutant(
        "a reload passes over offsets that are gone",
        "loader/reloading/beginning.py",
        "    if first > at and plan.cover(at, first, gaps) is None:\n",
        "    if False:\n",
        ("tests/unit/loader/runs/test_reload.py::test_offsets_that_are_gone_are_refused",),
    ),
    Mutant(
        "a reload turns rows into rejects",
        "loader/reloading/hours.py",
        "        elif lost > 0 and not may_reject:\n",
        "        elif False:\n",
        (
            "tests/unit/loader/runs/test_reload.py::test_rows_become_rejects_only_if_the_operator_says_so",
        ),
    ),
    Mutant(
        "the audit does not hear that rejects became rows",
        "loader/runs/topic_reload.py",
        "        if not change:\n",
        "        if True:\n",
        ("tests/unit/loader/runs/test_reload.py::test_rejects_become_rows",),
    ),
    Mutant(
        "a reload forgets the messages of the load before",
        "loader/runs/reload.py",
        "        self._run.publish()\n",
        "",
        (
            "tests/unit/loader/runs/test_reload.py::test_messages_of_a_load_that_ended_early_are_published_first",
        ),
    ),
    Mutant(
        "a reload writes records of other hours",
        "loader/slices/slice_load.py",
        "            keep=walked.keep & chosen,\n",
        "            keep=walked.keep,\n",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_only_records_of_the_chosen_hours_are_written_and_counted",
        ),
    ),
    Mutant(
        "a reload leaves the files of rejects",
        "loader/runs/reload.py",
        "live(self._newest(), COUNTED)",
        "live(self._newest())",
        ("tests/unit/loader/runs/test_reload.py::test_rejects_become_rows",),
    ),
    Mutant(
        "the lineage of a file ends where files were put together",
        "loader/reloading/lineage.py",
        "        if manifest.removed:\n",
        "        if False:\n",
        ("tests/unit/loader/runs/test_reload.py::test_files_that_were_put_together_are_reloaded",),
    ),
    Mutant(
        "a reload stops at gaps that the loads passed over",
        "loader/reloading/beginning.py",
        "            gaps[each.partition] = gaps.get(each.partition, ()) + each.gaps\n",
        "            gaps[each.partition] = ()\n",
        (
            "tests/unit/loader/reloading/test_beginning.py::test_reading_begins_before_the_first_load_with_its_marks",
            "tests/unit/loader/runs/test_reload.py::test_gaps_that_the_loads_passed_over_are_no_obstacle",
        ),
    ),
    Mutant(
        "an hour keeps its mark although a reload changed its rows",
        "loader/runs/topic_reload.py",
        " if was[hour].rows == now[hour].rows]",
        "]",
        ("tests/unit/loader/runs/test_reload.py::test_a_mark_stays_unless_rows_change",),
    ),
    Mutant(
        "a reload stops at the file that it is to replace",
        "loader/state/commit.py",
        " if source is None and given_up(move.target):",
        " if False:",
        (
            "tests/unit/loader/runs/test_reload.py::test_a_file_that_is_gone_comes_back",
            "tests/unit/loader/state/test_commit.py::test_files_that_are_given_up_may_be_gone_or_damaged",
        ),
    ),
    Mutant(
        "a reload deletes a staged file whose target has other bytes",
        "loader/state/commit.py",
        " if source is None and given_up(",
        " if given_up(",
        ("tests/unit/loader/state/test_commit.py::test_a_staged_file_is_never_given_up",),
    ),
    Mutant(
        "removed files are left after the last move",
        "loader/state/commit.py",
        ", key=lambda each: (each in targets, each)):",
        ", key=lambda each: (each not in targets, each)):",
        ("tests/unit/loader/state/test_commit.py::test_a_directory_that_gets_no_file_comes_first",),
    ),
    Mutant(
        "a damaged file is rewritten",
        "loader/rewriting/group_rewrite.py",
        "        if (len(data), google_crc32c.value(data)) != (file.length, file.crc32c):\n",
        "        if len(data) != file.length:\n",
        ("tests/unit/loader/rewriting/test_group_rewrite.py::test_a_damaged_file_stays",),
    ),
    Mutant(
        "rewritten rows are not counted again",
        "loader/rewriting/group_rewrite.py",
        "        if (made.rows, made.checksum) != (sum(each.rows for each in files), total):\n",
        "        if False:\n",
        (
            "tests/unit/loader/rewriting/test_group_rewrite.py::"
            "test_files_with_other_rows_than_were_committed_stay",
        ),
    ),
    Mutant(
        "a rewriting load forgets the messages of the load before",
        "loader/runs/topic_rewrite.py",
        "            schema_ids={},\n",
        '            schema_ids={},\n            audit={**newest.audit, "deltas": []},\n',
        (
            "tests/unit/loader/runs/test_rewriting.py::"
            "test_messages_of_a_load_that_ended_early_are_published_after_a_compaction",
        ),
    ),
    Mutant(
        "files that another loader has converted meanwhile are a problem",
        "loader/runs/topic_rewrite.py",
        "            self._attempt.check()\n",
        "            pass\n",
        ("tests/unit/loader/runs/test_rewriting.py::test_another_load_during_the_conversion",),
    ),
    Mutant(
        "rows of a new schema do not wait until older files have its columns",
        "loader/runs/topic_run.py",
        "            if self.convert(attempt.schema()):\n",
        "            if False:\n",
        (
            "tests/unit/loader/runs/test_rewriting.py::"
            "test_files_get_the_columns_of_a_new_schema_before_its_first_row",
        ),
    ),
    Mutant(
        "the members of a union are compared by their places",
        "loader/rewriting/alike.py",
        "            if chosen_member(member, new) != place or not _alike(member, after[place]):\n",
        "            if not _alike(member, after[place]):\n",
        ("tests/unit/loader/rewriting/test_alike.py::test_not_alike",),
    ),
    Mutant(
        "a text in JSON needs no rewriting, whatever its type",
        "loader/rewriting/alike.py",
        "        return _same_text(old.type, new.type, set())\n",
        "        return True\n",
        ("tests/unit/loader/rewriting/test_alike.py::test_not_alike",),
    ),
    Mutant(
        "the text of a type that contains itself is a string like any other",
        "loader/reading/projection.py",
        """    if isinstance(avro, Recursive):
        return True
""",
        "",
        ("tests/unit/loader/reading/test_projection.py::test_a_text_follows_avros_resolution",),
    ),
    Mutant(
        "a value may be nested as deeply as it likes",
        "schemas/strict.py",
        "            if self._depth > DEPTH_MAX:\n",
        "            if False:\n",
        (
            "tests/unit/schemas/codec/test_hostile.py::"
            "test_values_that_contain_themselves_are_read_up_to_a_depth",
        ),
    ),
    Mutant(
        "what rests on a pair of records that turned out bad is kept",
        "schemas/codec/json_resolution.py",
        "            for key in list(self._records)[before:]:\n",
        "            for key in [pair]:\n",
        (
            "tests/unit/schemas/codec/test_json_resolution.py::"
            "test_nothing_rests_on_a_pair_of_records_that_turned_out_bad",
        ),
    ),
    Mutant(
        "what a number means makes no difference",
        "loader/rewriting/alike.py",
        "    return is_same and same_meaning and bool(",
        "    return is_same and bool(",
        ("tests/unit/loader/rewriting/test_alike.py::test_not_alike",),
    ),
    Mutant(
        "files are rewritten to an older version",
        "loader/runs/conversion.py",
        "    newer = [each for each in unlike if _is_newer(each, schema)]\n",
        "    newer: list[SchemaChoice] = []\n",
        (
            "tests/unit/loader/runs/test_rewriting.py::"
            "test_files_are_never_rewritten_to_an_older_version",
        ),
    ),
    Mutant(
        "a dropped field loses its values in rewritten files",
        "loader/rewriting/rewriter.py",
        " if each.name not in self._used | OWN_NAMES]\n",
        " if each.name == OWN_NAMES]\n",
        (
            "tests/unit/loader/rewriting/test_group_rewrite.py::"
            "test_columns_that_the_newest_schema_lacks_keep_their_values",
        ),
    ),
    Mutant(
        "who lost a race does not look again which files must be rewritten",
        "loader/runs/topic_run.py",
        "            self.forget_conversion()",
        "            pass",
        (
            "tests/unit/loader/runs/test_rewriting.py::"
            "test_who_lost_a_race_looks_again_which_files_must_be_rewritten",
        ),
    ),
    Mutant(
        "a field that comes back lies beside the column of the old field",
        "loader/rewriting/rewriter.py",
        '        return name if CARRIED in name else f"{name}{CARRIED}{self._old_id}"\n',
        "        return name\n",
        ("tests/unit/loader/runs/test_rewriting.py::test_a_dropped_field_comes_back",),
    ),
    Mutant(
        "a rewriting rounds numbers",
        "schemas/codec/promotion.py",
        "    return made, _rounded(column, made)\n",
        "    return made, []\n",
        ("tests/unit/loader/rewriting/test_group_rewrite.py::test_a_number_is_never_rounded",),
    ),
    Mutant(
        "a subject that was made again counts as rolled back",
        "loader/runs/conversion.py",
        " and choice.id > schema.id\n",
        "\n",
        ("tests/unit/loader/runs/test_rewriting.py::test_a_subject_that_was_made_again",),
    ),
    Mutant(
        "a record that rows lack is null with its required fields",
        "loader/reading/projection.py",
        "        return lambda batch: (repeated(nothing, batch.num_rows), None)\n",
        "        return lambda batch: (pa.nulls(batch.num_rows, field.type), None)\n",
        (
            "tests/unit/loader/rewriting/test_group_rewrite.py::"
            "test_records_with_required_fields_may_be_missing",
        ),
    ),
    Mutant(
        "a compaction drops the columns that its first file lacks",
        "loader/rewriting/file_columns.py",
        "    merged = pa.unify_schemas(schemas)\n",
        "    merged = schemas[0]\n",
        (
            "tests/unit/loader/rewriting/test_group_rewrite.py::"
            "test_files_with_other_carried_columns_become_one_file",
        ),
    ),
    Mutant(
        "a run that fails ends the resident loader",
        "loader/runs/resident.py",
        "        except SkidwayError as error:\n",
        "        except OSError as error:\n",
        ("tests/unit/loader/runs/test_resident.py::test_a_run_that_fails_ends_nothing",),
    ),
    Mutant(
        "a refused configuration is tried again for ever",
        "loader/runs/resident.py",
        "        except (Interrupted, ConfigurationRefused):\n",
        "        except Interrupted:\n",
        ("tests/unit/loader/runs/test_resident.py::test_a_refused_configuration_ends_the_program",),
    ),
    Mutant(
        "a loader that stays is ready only after its first run",
        "loader/runs/resident.py",
        '        systemd.ready("the first run has not ended yet")\n',
        "",
        (
            "tests/unit/loader/runs/test_resident.py::"
            "test_it_is_ready_before_its_first_run_has_ended",
        ),
    ),
    Mutant(
        "a Spark that has died is asked again",
        "loader/spark/runner.py",
        "        if self._session is not None and not session.is_alive(self._session):\n",
        "        if False:\n",
        ("tests/unit/loader/spark/test_runner.py::test_spark_is_started_again_after_it_died",),
    ),
    Mutant(
        "a file that was not rewritten is forgotten",
        "loader/runs/topic_rewrite.py",
        " if each.id in left and each.id != schema.id), schema)\n",
        " if False), schema)\n",
        (
            "tests/unit/loader/runs/test_rewriting.py::"
            "test_a_file_that_cannot_be_rewritten_is_a_problem_and_no_obstacle",
        ),
    ),
    Mutant(
        "who lost a race takes the winner's log for another one",
        "loader/runs/topic_run.py",
        "            self._topic = _not_behind(self._topic, self.newest)\n",
        "",
        (
            "tests/unit/loader/runs/test_rewriting.py::"
            "test_a_loser_of_a_race_may_be_behind_the_winner",
        ),
    ),
    Mutant(
        "an alias is no reason to rewrite",
        "loader/rewriting/alike.py",
        " or not known.keys().isdisjoint(each.aliases):\n",
        ":\n",
        ("tests/unit/loader/rewriting/test_alike.py::test_a_renamed_field_needs_rewriting",),
    ),
    Mutant(
        "an int is four bytes in files, and a long eight",
        "audit/output/column_types.py",
        "    if types.is_integer(arrow) or types.is_time(arrow):\n",
        "    if types.is_time(arrow):\n",
        (
            "tests/unit/audit/output/test_column_types.py::"
            "test_a_compatible_change_does_not_change_the_type",
        ),
    ),
    Mutant(
        "the columns of a directory require what older files lack",
        "audit/output/column_types.py",
        "    return field.with_type(arrow).with_nullable(is_nullable or field.nullable)\n",
        "    return field.with_type(arrow)\n",
        (
            "tests/unit/audit/output/test_column_types.py::"
            "test_in_a_directory_every_field_may_be_null",
        ),
    ),
    # These mutants concern gaps, that is, missing offsets in a partition.
    Mutant(
        "offsets that expired are passed as a gap that nobody named",
        "loader/planning/plan.py",
        "    gap = cover(position, bounds.log_start, gaps)\n",
        "    gap = cover(position, bounds.log_start, gaps)\n"
        '    gap = gap or Gap(position, bounds.log_start, "expired")\n',
        ("tests/unit/loader/planning/test_plan.py::test_expired_offsets_stop_the_partition",),
    ),
    Mutant(
        "of a partition's gaps that the mirror named the last one alone is known",
        "loader/runs/session.py",
        "(*known, Gap(gap.first, gap.end, gap.reason))",
        "(*known[:0], Gap(gap.first, gap.end, gap.reason))",
        (
            "tests/unit/loader/runs/test_session.py::"
            "test_the_mirror_itself_names_the_gaps_that_may_be_passed",
        ),
    ),
    Mutant(
        "a hole that named gaps cover in part is passed as a whole",
        "loader/planning/plan.py",
        "        if at >= end:\n",
        "        if reasons:\n",
        ("tests/unit/loader/planning/test_plan.py::test_gaps_cover_a_hole_together",),
    ),
    Mutant(
        "gaps that were named ahead by the manifest before are forgotten",
        "loader/planning/plan.py",
        "        *(previous.ahead if previous else ()),\n",
        "        *(previous.gaps if previous else ()),\n",
        ("tests/unit/loader/planning/test_plan.py::test_a_gap_that_was_named_once_stays_named",),
    ),
    Mutant(
        "a slice passes a hole in the log that nobody named",
        "loader/slices/slice_load.py",
        "            self._gaps.append(gap)\n            return None\n",
        "            self._gaps.append(gap)\n"
        "        if gap is not None or base >= self._piece.end:\n            return None\n",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_a_hole_over_the_end_of_a_slice_ends_its_range",
        ),
    ),
    Mutant(
        "a gap behind the end of a range is said to have been passed",
        "loader/slices/slice_load.py",
        "tuple(gap for gap in self._gaps if gap.first < result.end)",
        "tuple(self._gaps)",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_a_gap_behind_the_end_of_a_range_is_not_noted",
        ),
    ),
    Mutant(
        "a log that ends early counts as covered",
        "loader/slices/slice_load.py",
        "if self._position < self._piece.end and self._result.stop is None:",
        "if False:",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_a_log_that_ends_early_is_not_taken_for_covered",
        ),
    ),
    Mutant(
        "a log that got shorter than what was loaded is waited for",
        "loader/planning/plan.py",
        "    if bounds.high_watermark < position:\n",
        "    if bounds.high_watermark < bounds.log_start:\n",
        (
            "tests/unit/loader/planning/test_plan.py::test_a_log_that_got_shorter_stops_the_partition",
        ),
    ),
    Mutant(
        "of the batch below the CRC alone is compared, and not the leader epoch",
        "loader/planning/plan.py",
        """    if below is None or (header.base_offset, header.crc, header.leader_epoch) == (
        below.base_offset,
        below.crc,
        below.epoch,
    ):""",
        """    if below is None or (header.base_offset, header.crc) == (
        below.base_offset,
        below.crc,
    ):""",
        ("tests/unit/loader/planning/test_plan.py::test_another_batch_below_is_a_divergence",),
    ),
    Mutant(
        "a compacted batch is loaded as if nothing were missing",
        "loader/slices/slice_load.py",
        "if not header.is_control and header.count != header.last_offset_delta + 1:",
        "if False:",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_a_compacted_batch_ends_the_range_by_name",
        ),
    ),
    # These mutants concern partition leaders that do not answer, and partitions that a topic has
    # lost.
    Mutant(
        "all leaders are asked at once: a silent one keeps back every partition",
        "loader/planning/bounds.py",
        "leaders.setdefault(cluster.leader(tp), []).append(tp)",
        "leaders.setdefault(tp.topic, []).append(tp)",
        (
            "tests/unit/loader/runs/test_session.py::"
            "test_a_leader_that_does_not_answer_keeps_back_its_own_partitions_only",
        ),
    ),
    Mutant(
        "a manifest forgets a loaded partition that the topic does not have now",
        "loader/planning/plan.py",
        "absent = {*before, *away} - {each.partition for each in bounds}",
        "absent = {*away} - {each.partition for each in bounds}",
        (
            "tests/unit/loader/planning/test_plan.py::test_a_partition_that_is_no_longer_there_stops_by_name",
        ),
    ),
    Mutant(
        "a partition whose leader is silent begins anew in the manifest",
        "loader/planning/plan.py",
        "    end = was.end if was else 0\n",
        "    end = was.end if was and number not in away else 0\n",
        (
            "tests/unit/loader/planning/test_plan.py::"
            "test_a_partition_whose_leader_is_silent_stands_still_by_name",
        ),
    ),
    # This mutant concerns how long a load waits for the announcement of a file by its agent.
    Mutant(
        "each load that misses an announcement begins the wait anew",
        "loader/state/waiting.py",
        "        self._store.create_if_absent(path, str(now_ms).encode(), self._folder)\n",
        "        self._store.delete(path)\n"
        "        self._store.create_if_absent(path, str(now_ms).encode(), self._folder)\n",
        ("tests/unit/loader/state/test_waiting.py::test_the_wait_begins_once",),
    ),
    # These mutants concern several loads in one run of the loader.
    Mutant(
        "a run ends behind its first load although its limit left offsets",
        "loader/runs/topic_run.py",
        "return _After.ON if plan.has_more(whole, planned, manifest) else _After.WAIT",
        "return _After.WAIT",
        ("tests/crash/loader/test_load.py::test_a_first_load_is_made_in_several",),
    ),
    Mutant(
        "a load that is limited leaves out the partitions that have little",
        "loader/planning/plan.py",
        "each.first + max(1, size * offsets // total)",
        "each.first + size * offsets // total",
        (
            "tests/unit/loader/planning/test_plan.py::test_limited_loads_take_everything_and_each_moves_on",
        ),
    ),
    Mutant(
        "a partition that ended before its limit asks for another load",
        "loader/planning/plan.py",
        "ends.get(each.partition) == limits[each.partition] < each.end",
        "ends.get(each.partition, 0) <= limits[each.partition] < each.end",
        (
            "tests/unit/loader/planning/test_plan.py::"
            "test_a_partition_that_ended_early_asks_for_no_further_load",
        ),
    ),
    # These mutants concern marks. A mark says up to which byte a file is loaded.
    Mutant(
        "what ends at the mark is a new record",
        "audit/counts/marks.py",
        "    repeat = end <= before\n",
        "    repeat = end < before\n",
        ("tests/unit/audit/counts/test_marks.py::test_columns_walk_as_the_sequential_rule",),
    ),
    Mutant(
        "what begins at the mark is a straddle",
        "audit/counts/marks.py",
        "straddle = ~repeat & (first < before)",
        "straddle = ~repeat & (first <= before)",
        ("tests/unit/audit/counts/test_marks.py::test_columns_walk_as_the_sequential_rule",),
    ),
    Mutant(
        "the mark is the end of the record before, and not the highest of all",
        "audit/counts/marks.py",
        "    return before[ordered][highest]\n",
        "    return before\n",
        ("tests/unit/audit/counts/test_marks.py::test_columns_walk_as_the_sequential_rule",),
    ),
    Mutant(
        "straddles do not move the mark",
        "audit/counts/marks.py",
        "highest = np.maximum.reduceat(end, begins).tolist()",
        "highest = np.maximum.reduceat(np.where(straddle, first, end), begins).tolist()",
        ("tests/unit/audit/counts/test_marks.py::test_columns_walk_as_the_sequential_rule",),
    ),
    Mutant(
        "a straddle is loaded as a row",
        "loader/slices/slice_load.py",
        "        candidates = walked.keep & ~located.given_up & timed\n",
        "        candidates = ~walked.repeat & ~located.given_up & timed\n",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_a_straddle_is_rejected_and_counts_once",
        ),
    ),
    Mutant(
        "the marks of a slice that has to run again are those before all slices",
        "audit/counts/marks.py",
        "            again[index] = known\n",
        "            again[index] = {key: marks[key] for key in known if key in marks}\n",
        ("tests/model/test_loader_marks.py::test_slices_give_the_rows_of_the_sequential_rule",),
    ),
    Mutant(
        "a slice is compared with the last of its marks only where all files overlap",
        "audit/counts/marks.py",
        "if any(part.lowest[key] < mark for key, mark in known.items()):",
        "if known and all(part.lowest[key] < mark for key, mark in known.items()):",
        ("tests/model/test_loader_marks.py::test_slices_give_the_rows_of_the_sequential_rule",),
    ),
    Mutant(
        "a slice runs again once at most",
        "loader/slices/join.py",
        "            if given[piece] != known\n",
        "            if not given[piece] and known\n",
        (
            "tests/unit/loader/slices/test_join.py::test_what_a_second_run_sees_first_may_be_a_repeat_too",
        ),
    ),
    Mutant(
        "what was written behind a slice that ended early is used",
        "loader/slices/join.py",
        "        if results[piece].stop is not None:\n            break\n",
        "",
        (
            "tests/model/test_loader_marks.py::"
            "test_a_file_without_announcement_ends_the_partition_in_the_same_place",
        ),
    ),
    Mutant(
        "a record that a slice stops at is not told to the joiner",
        "loader/slices/slice_load.py",
        "        self._result.lowest[key] = min(first, self._result.lowest.get(key, first))\n"
        "        self._end(",
        "        self._end(",
        ("tests/unit/loader/slices/test_join.py::test_what_looked_unknown_may_be_a_repeat",),
    ),
    Mutant(
        "a partition's batch below is that of its first slice",
        "loader/slices/join.py",
        "        below[-1] if below else None,",
        "        below[0] if below else None,",
        (
            "tests/unit/loader/slices/test_join.py::"
            "test_why_and_where_the_last_slice_ended_is_what_is_said_of_the_partition",
        ),
    ),
    Mutant(
        "a partition ended as its first slice did",
        "loader/slices/join.py",
        "        results[-1].stop,",
        "        results[0].stop,",
        (
            "tests/unit/loader/slices/test_join.py::"
            "test_why_and_where_the_last_slice_ended_is_what_is_said_of_the_partition",
        ),
    ),
    Mutant(
        "a batch of which nothing was taken is the one below",
        "loader/slices/slice_load.py",
        "if each.base_offset < result.end]",
        "if each.base_offset <= result.end]",
        (
            "tests/unit/loader/slices/test_slice_load.py::"
            "test_the_batch_in_which_nothing_was_taken_is_not_the_one_below",
        ),
    ),
    Mutant(
        "the last batch of a chunk is forgotten",
        "loader/slices/slice_load.py",
        "                    del self._headers[:-1]  #",
        "                    del self._headers[:]  #",
        (
            "tests/unit/loader/slices/test_slice_load.py::"
            "test_a_chunk_that_ends_a_range_leaves_its_last_batch_below",
        ),
    ),
    Mutant(
        "a range goes on behind its end",
        "loader/slices/slice_load.py",
        "            if self._position >= self._piece.end or self._result.stop:",
        "            if self._position > self._piece.end or self._result.stop:",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_what_is_behind_a_range_does_not_end_it",
        ),
    ),
    Mutant(
        "what is behind a range is read on where a gap ends it",
        "loader/slices/slice_load.py",
        "                self._position = self._piece.end  # the range ends with a listed gap\n"
        "                break\n",
        "                self._position = self._piece.end  # the range ends with a listed gap\n"
        "                continue\n",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_what_is_behind_a_range_does_not_end_it",
        ),
    ),
    Mutant(
        "records without an announcement wait also where none is waited for",
        "loader/slices/slice_load.py",
        "job.unannounced, patient=job.patient)",
        "job.unannounced, patient=True)",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_announcements_are_waited_for_as_long_as_is_set",
        ),
    ),
    Mutant(
        "a batch behind a range is looked at where a gap ends it",
        "loader/slices/slice_load.py",
        "            if stop is None and header.base_offset >= self._piece.end:",
        "            if stop is None and header.base_offset > self._piece.end:",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_what_is_behind_a_range_does_not_end_it",
        ),
    ),
    Mutant(
        "a range that cannot be taken ends below its first offset",
        "loader/slices/slice_load.py",
        "        at = max(header.base_offset, self._piece.first)",
        "        at = header.base_offset",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_a_compacted_batch_ends_the_range_by_name",
        ),
    ),
    Mutant(
        "a repeat of what was given up is rejected once more",
        "loader/slices/slice_load.py",
        "        _note(faults, walked.keep & located.given_up, NOT_ANNOUNCED)",
        "        _note(faults, located.given_up, NOT_ANNOUNCED)",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_what_is_rejected_for_good_is_rejected_once",
        ),
    ),
    Mutant(
        "a repeat without an hour is rejected once more",
        "loader/slices/slice_load.py",
        "        _note(faults, walked.keep & ~timed, NO_HOUR)",
        "        _note(faults, ~timed, NO_HOUR)",
        (
            "tests/unit/loader/slices/test_slice_load.py::test_what_is_rejected_for_good_is_rejected_once",
        ),
    ),
    Mutant(
        "a batch below is compared only while all of it is there",
        "loader/planning/batch_below.py",
        "    if bounds.log_start > below.last_offset:",
        "    if bounds.log_start >= below.last_offset:",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_batch_below_is_compared_as_long_as_a_record_of_it_is_there",
        ),
    ),
    Mutant(
        "gaps that were named are forgotten before they are passed",
        "loader/runs/manifest_draft.py",
        "    ahead = tuple(gap for gap in named if gap.end > end)",
        "    ahead = tuple(gap for gap in named if gap.end < end)",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_gaps_that_were_named_are_kept_until_they_are_passed",
        ),
    ),
    Mutant(
        "a load that reads no batch forgets the one below",
        "loader/runs/manifest_draft.py",
        "    end, below = planned.first, planned.below\n",
        "    end, below = planned.first, None\n",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_load_that_passes_nothing_but_a_gap_keeps_the_batch_below",
        ),
    ),
    Mutant(
        "a load that ends in a gap forgets the batch below",
        "loader/runs/manifest_draft.py",
        "        below = result.below or below\n",
        "        below = result.below\n",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_load_that_ends_in_a_gap_keeps_the_batch_below",
        ),
    ),
    Mutant(
        "a partition that is kept back passes the gap in front of it",
        "loader/planning/batch_below.py",
        "replace(planned, first=at, end=at, gap=None, refused=refused)",
        "replace(planned, end=at, gap=None, refused=refused)",
        (
            "tests/unit/loader/runs/test_topic_load.py::test_a_partition_that_is_kept_back_passes_no_gap",
        ),
    ),
    Mutant(
        "a partition that is kept back says that it passed the gap in front of it",
        "loader/planning/batch_below.py",
        "replace(planned, first=at, end=at, gap=None, refused=refused)",
        "replace(planned, first=at, end=at, refused=refused)",
        (
            "tests/unit/loader/runs/test_topic_load.py::test_a_partition_that_is_kept_back_passes_no_gap",
        ),
    ),
    Mutant(
        "an output that is reached by another name is another one",
        "loader/runs/manifest_draft.py",
        'newest.producer if newest else f"{parts.store.url}/{self._topic.name}"',
        'f"{parts.store.url}/{self._topic.name}"',
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_an_output_that_is_reached_by_another_name_goes_on_under_its_first",
        ),
    ),
    # These mutants concern the commit of a load.
    Mutant(
        "whoever does not know whether his manifest was made takes it for his",
        "loader/state/commit.py",
        "            return winner == manifest.uuid\n",
        "            return created is Created.UNCLEAR\n",
        ("tests/model/test_loader_commit.py::test_answers_of_the_commit_lost",),
    ),
    Mutant(
        "the number is another loader's where the answer of the own manifest was lost",
        "loader/state/commit.py",
        "            return winner == manifest.uuid\n",
        "            return False\n",
        (
            "tests/unit/loader/state/test_commit.py::test_a_lost_answer_is_looked_up",
            "tests/model/test_loader_commit.py::test_answers_of_the_commit_lost",
        ),
    ),
    Mutant(
        "a staging directory is deleted before its files are moved",
        "loader/state/commit.py",
        """    if mine:
        yield from finish(manifest)
    yield Delete(manifest.staging)
    return mine
""",
        """    yield Delete(manifest.staging)
    if mine:
        yield from finish(manifest)
    return mine
""",
        ("tests/model/test_loader_commit.py::test_two_loaders_race_for_each_number",),
    ),
    Mutant(
        "a move is looked at target first",
        "loader/state/commit.py",
        """        source: int | None = yield Length(move.source)
        target: int | None = yield Length(move.target)
""",
        """        target: int | None = yield Length(move.target)
        source: int | None = yield Length(move.source)
""",
        (
            "tests/model/test_loader_commit.py::test_two_loaders_race_for_each_number",
            "tests/model/test_loader_commit.py::test_a_loader_killed_between_any_two_operations",
        ),
    ),
    Mutant(
        "a start takes the moves of the newest load for done",
        "loader/state/commit.py",
        "    yield from finish(newest, given_up)\n    yield Delete(newest.staging)\n",
        "    yield Delete(newest.staging)\n",
        ("tests/model/test_loader_commit.py::test_a_loader_killed_between_any_two_operations",),
    ),
    Mutant(
        "a start tidies up what a loader is staging just now",
        "loader/state/commit.py",
        "    yield from finish(newest, given_up)\n    yield Delete(newest.staging)\n",
        "    for name in left:\n"
        '        yield Delete(f"{layout.stagings(topic)}/{name}")\n'
        "    yield from finish(newest, given_up)\n    yield Delete(newest.staging)\n",
        (
            "tests/unit/loader/state/test_commit.py::"
            "test_a_start_keeps_staging_of_a_load_without_manifest",
            "tests/model/test_loader_commit.py::test_two_loaders_race_for_each_number",
        ),
    ),
    Mutant(
        "a first load begins over rows whose manifests are gone",
        "loader/state/commit.py",
        "    if newest is None:\n        raise StateRefused(\n",
        "    if newest is not None and newest.number < 1:\n        raise StateRefused(\n",
        (
            "tests/unit/loader/state/test_commit.py::test_rows_without_any_manifest_are_not_loaded_over",
        ),
    ),
    Mutant(
        "a hole among the manifests is taken for a load that was never made",
        "loader/state/chain.py",
        "gone = next(number for number in count(oldest) if number not in numbers)",
        "gone = newest + 1",
        ("tests/unit/loader/state/test_commit.py::test_a_missing_manifest_stops_by_name",),
    ),
    Mutant(
        "names of staged files are not synced before the manifest",
        "loader/state/commit.py",
        "    yield Sync((manifest.staging,))\n",
        "",
        ("tests/unit/loader/state/test_commit.py",),
    ),
    Mutant(
        "names of staged files are synced once the manifest stands",
        "loader/state/commit.py",
        "    yield Sync((manifest.staging,))\n"
        "    mine = not lost and (yield from _create(manifest))\n",
        "    mine = not lost and (yield from _create(manifest))\n"
        "    yield Sync((manifest.staging,))\n",
        (
            "tests/unit/loader/state/test_commit.py::"
            "test_the_names_of_staged_files_are_durable_before_the_manifest",
        ),
    ),
    Mutant(
        "names of staged files are synced before the files are looked at",
        "loader/state/commit.py",
        """    wrong = yield from _wrong_length(manifest)
    lost = bool(wrong) and (yield from taken(manifest.topic, manifest.number))
    if wrong and not lost:
        raise StateRefused(wrong)
    yield Sync((manifest.staging,))
""",
        """    yield Sync((manifest.staging,))
    wrong = yield from _wrong_length(manifest)
    lost = bool(wrong) and (yield from taken(manifest.topic, manifest.number))
    if wrong and not lost:
        raise StateRefused(wrong)
""",
        (
            "tests/unit/loader/state/test_commit.py::"
            "test_the_names_of_staged_files_are_durable_before_the_manifest",
        ),
    ),
    Mutant(
        "a start looks at every file of every load",
        "loader/state/commit.py",
        "    yield from finish(newest, given_up)\n    yield Delete(newest.staging)\n",
        "    for number in range(1, newest.number):\n"
        "        yield from finish((yield from chain.read(topic, number)))\n"
        "    yield from finish(newest, given_up)\n    yield Delete(newest.staging)\n",
        (
            "tests/unit/loader/state/test_commit.py::"
            "test_a_start_looks_at_the_newest_load_and_at_what_is_staged_only",
        ),
    ),
    Mutant(
        "a staged file that is shorter than its task wrote is committed",
        "loader/state/commit.py",
        "        if length != file.length:\n",
        "        if length is None or length > file.length:\n",
        (
            "tests/unit/loader/state/test_commit.py::"
            "test_a_staged_file_of_another_length_is_never_committed",
        ),
    ),
    Mutant(
        "a load is committed only where every partition moved",
        "loader/runs/topic_load.py",
        "        if all(each.first == each.end for each in ranges):",
        "        if any(each.first == each.end for each in ranges):",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_partition_that_is_away_keeps_its_place_and_holds_no_other_back",
        ),
    ),
    Mutant(
        "a manifest forgets partitions that are away",
        "loader/runs/topic_load.py",
        "[*ranges, *self._plan.missing()]",
        "ranges",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_partition_that_is_away_keeps_its_place_and_holds_no_other_back",
        ),
    ),
    Mutant(
        "a snapshot of the marks lacks those of its own load",
        "loader/runs/manifest_draft.py",
        "        tables.add(added)\n",
        "",
        (
            "tests/unit/loader/runs/test_topic_load.py::test_marks_hold_however_many_loads_there_were",
        ),
    ),
    Mutant(
        "a topic that was made again is loaded into the old one's output",
        "loader/planning/topic_plan.py",
        "        plan.check_identity(self._newest, self._topic.source)\n",
        "",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_an_output_is_of_one_topic_and_one_size_of_buckets",
        ),
    ),
    Mutant(
        "a load in which nothing moved is committed",
        "loader/runs/topic_load.py",
        "        if all(each.first == each.end for each in ranges):\n"
        "            return None, results\n",
        "",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_announcements_are_waited_for_as_long_as_is_set",
        ),
    ),
    Mutant(
        "gaps inside of a range are not in its manifest",
        "loader/runs/manifest_draft.py",
        "        end, gaps = result.end, gaps + result.gaps",
        "        end = result.end",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_gaps_inside_of_a_range_stand_in_its_manifest",
        ),
    ),
    Mutant(
        "a load's chain of a bucket begins anew",
        "loader/runs/manifest_draft.py",
        "number for key, number in known.items()}",
        "0 for key in known}",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_load_names_the_delta_of_before_that_touched_its_buckets",
        ),
    ),
    Mutant(
        "a commit that failed with its own manifest there is a lost race",
        "loader/state/commit.py",
        "    if winner is not None and winner != manifest.uuid:\n",
        "    if winner is not None:\n",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_commit_that_fails_otherwise_says_why_and_deletes_nothing",
        ),
    ),
    Mutant(
        "the batch below is asked for at an offset that has expired",
        "loader/planning/batch_below.py",
        "max(below.base_offset, bounds.log_start))",
        "below.base_offset)",
        (
            "tests/unit/loader/runs/test_topic_load.py::"
            "test_a_batch_below_is_compared_as_long_as_a_record_of_it_is_there",
        ),
    ),
    # These mutants concern two loaders that run at the same time.
    Mutant(
        "who lost every race fails although all is loaded",
        "loader/runs/topic_run.py",
        "        if not any(_moves(each) for each in whole):\n",
        "        if self._races < RACES_MAX and not any(_moves(each) for each in whole):\n",
        (
            "tests/unit/loader/runs/test_races.py::test_who_lost_every_race_is_good_once_all_is_loaded",
        ),
    ),
    Mutant(
        "who loses every race with work left is good",
        "loader/runs/topic_run.py",
        "            raise LostRace(_never_won(self._topic))\n",
        "            self.outcome.notes.append(_never_won(self._topic))\n"
        "            return _After.END\n",
        ("tests/unit/loader/runs/test_races.py::test_who_loses_every_race_with_work_left_fails",),
    ),
    Mutant(
        "who lost a race goes on behind the manifest that it began with",
        "loader/runs/topic_run.py",
        "            self._races += 1\n            self.begin()\n",
        "            self._races += 1\n",
        (
            "tests/unit/loader/runs/test_races.py::test_who_lost_every_race_is_good_once_all_is_loaded",
        ),
    ),
    Mutant(
        "each load numbers its messages anew",
        "loader/runs/manifest_draft.py",
        "delta.last_number(newest))",
        "0)",
        ("tests/crash/loader/test_load.py::test_killed_and_begun_again",),
    ),
    # These mutants concern agents' announcements of files.
    Mutant(
        "records of a file that is not announced are rows without a host",
        "loader/slices/locations.py",
        "        missing.append(lost and awaited)\n",
        "        missing.append(lost and awaited and key in given_up)\n",
        ("tests/crash/loader/test_load.py::test_records_wait_for_the_announcement_of_their_file",),
    ),
    Mutant(
        "a range ends behind the first record that waits, and not before it",
        "loader/slices/slice_load.py",
        "            end = int(np.argmax(wanted))\n",
        "            end = int(np.argmax(wanted)) + 1\n",
        (
            "tests/unit/loader/slices/test_slice_load.py::"
            "test_a_range_ends_before_a_file_that_is_not_announced",
        ),
    ),
    Mutant(
        "a repeat waits for an announcement",
        "loader/slices/slice_load.py",
        "wanted = located.missing & ~walked.repeat",
        "wanted = located.missing",
        ("tests/unit/loader/slices/test_slice_load.py::test_a_repeat_needs_no_announcement",),
    ),
    Mutant(
        "the last announcement of a file holds",
        "loader/audit_topic/feed.py",
        "known.setdefault(key, (message.host, message.path))",
        "known[key] = message.host, message.path",
        ("tests/unit/loader/audit_topic/test_feed.py::test_the_first_announcement_holds",),
    ),
    Mutant(
        "lines that were rejected have no announcement of their own topic's files",
        "loader/audit_topic/feed.py",
        "base = source.topic.removesuffix(REJECTED_SUFFIX)",
        "base = source.topic",
        (
            "tests/unit/loader/audit_topic/test_feed.py::test_rejected_lines_are_of_the_files_of_their_topic",
        ),
    ),
    Mutant(
        "seals are passed over like agents' deltas",
        "loader/audit_topic/feed.py",
        "case None | (head.SEAL, Tier.AGENT):",
        "case None:",
        ("tests/unit/loader/audit_topic/test_feed.py::test_what_is_read_is_what_all_messages_say",),
    ),
    Mutant(
        "the numbers of outputs are passed over",
        "loader/audit_topic/feed.py",
        "case (head.DELTA | head.SEAL, Tier.HDFS):",
        "case (head.SEAL, Tier.HDFS):",
        ("tests/unit/loader/runs/test_epochs.py::test_one_above_the_highest_that_was_heard",),
    ),
    # This mutant breaks the rule that all buckets have one size.
    Mutant(
        "an output goes on in buckets of another size",
        "loader/planning/plan.py",
        'newest.audit.get("bucket_ms", bucket_ms) == bucket_ms',
        'bucket_ms % newest.audit.get("bucket_ms", bucket_ms) == 0',
        ("tests/unit/loader/planning/test_plan.py::test_a_changed_bucket_size_is_refused",),
    ),
    # These mutants concern an audit topic that was deleted and created again.
    Mutant(
        "a position holds for an audit topic that was made again",
        "loader/audit_topic/feed.py",
        "{'' if topic_id is None else topic_id.hex}",
        "{'' if topic_id is None else ''}",
        (
            "tests/unit/loader/audit_topic/test_feed.py::"
            "test_an_audit_topic_made_again_and_longer_than_before_is_read_from_its_start",
        ),
    ),
    Mutant(
        "what the old audit topic said stays known when the topic is made again",
        "loader/audit_topic/feed.py",
        "    feed.expect(keys.values())\n",
        "",
        (
            "tests/unit/loader/audit_topic/test_feed.py::"
            "test_what_an_audit_topic_said_is_forgotten_when_it_is_made_again",
        ),
    ),
    # This mutant concerns a feed (the reader of the audit topic) that several runs use.
    Mutant(
        "a feed goes on although a topic needs older announcements",
        "loader/audit_topic/feed.py",
        "        reaches_back = min(ahead, default=-1) >= 0\n",
        "        reaches_back = bool(ahead)\n",
        (
            "tests/unit/loader/audit_topic/test_feed.py::"
            "test_a_topic_that_needs_older_messages_gets_them",
        ),
    ),
    # These mutants concern small loads in the loader's own process.
    Mutant(
        "an attempt here and an attempt on Spark have the same number",
        "loader/spark/own_process.py",
        "FIRST_ATTEMPT: Final = 1 << 32\n",
        "FIRST_ATTEMPT: Final = 0\n",
        ("tests/unit/loader/spark/test_own_process.py::test_no_two_attempts_have_the_same_number",),
    ),
    Mutant(
        "the offsets of one slice decide, and not those of the load",
        "loader/spark/runner.py",
        "offsets = sum(piece.end - piece.first for piece, _ in work)",
        "offsets = max((piece.end - piece.first for piece, _ in work), default=0)",
        ("tests/unit/loader/spark/test_own_process.py::test_the_offsets_of_all_slices_decide",),
    ),
    # These mutants concern the epoch with which the loader of a new output sends its messages to
    # the audit.
    Mutant(
        "a new output begins with epoch 1, whatever was heard of it",
        "loader/runs/manifest_draft.py",
        "newest.epoch if newest else parts.feed.next_epoch(producer)",
        "newest.epoch if newest else 1",
        (
            "tests/unit/loader/runs/test_epochs.py::"
            "test_an_output_that_was_removed_is_never_complete_with_less",
        ),
    ),
    Mutant(
        "a new output's epoch comes from the clock",
        "loader/runs/manifest_draft.py",
        "newest.epoch if newest else parts.feed.next_epoch(producer)",
        "newest.epoch if newest else now",
        ("tests/unit/loader/runs/test_epochs.py::test_one_above_the_highest_that_was_heard",),
    ),
    Mutant(
        "a new output has the highest epoch that was heard, and not one above it",
        "loader/audit_topic/feed.py",
        "return 1 + max(self.newest(producer)[0], self._epochs_unheard())",
        "return max(1, self.newest(producer)[0], self._epochs_unheard())",
        ("tests/unit/loader/runs/test_epochs.py::test_one_above_the_highest_that_was_heard",),
    ),
    Mutant(
        "what expired from the audit topic had no epochs",
        "loader/audit_topic/feed.py",
        "if not self.unread and all(self.begins.get(key) == 0 for key in own):",
        "if not self.unread:",
        (
            "tests/unit/loader/runs/test_epochs.py::"
            "test_what_expired_from_the_audit_topic_may_have_had_higher_epochs",
        ),
    ),
    Mutant(
        "messages that could not be understood had no epochs",
        "loader/audit_topic/feed.py",
        "        feed.unread = True\n",
        "",
        (
            "tests/unit/loader/runs/test_epochs.py::test_what_cannot_be_read_may_have_had_a_higher_epoch",
        ),
    ),
    Mutant(
        "what expired while the audit topic was read counts as heard",
        "loader/audit_topic/feed.py",
        "begins = {keys[tp]: max(begin, left[tp][0]) for",
        "begins = {keys[tp]: begin for",
        (
            "tests/unit/loader/runs/test_epochs.py::"
            "test_what_expires_while_it_is_read_counts_as_not_heard",
        ),
    ),
    Mutant(
        "an epoch is chosen by what was heard before the tasks ran",
        "loader/runs/manifest_draft.py",
        "            parts.read_on()  # `next_epoch` must know all published epochs\n",
        "            pass\n",
        (
            "tests/unit/loader/runs/test_epochs.py::test_what_is_published_while_it_is_loaded_is_heard",
        ),
    ),
    Mutant(
        "an output is an older copy by its numbers alone, whatever its epoch",
        "loader/runs/topic_run.py",
        "return self._parts.feed.newest(newest.producer) > delta.last_key(newest)",
        "return self._parts.feed.newest(newest.producer)[1] > delta.last_key(newest)[1]",
        (
            "tests/unit/loader/runs/test_epochs.py::test_an_output_of_a_lower_epoch_is_an_older_copy",
        ),
    ),
    Mutant(
        "who lost the race to begin an output keeps the epoch that it chose",
        "loader/runs/manifest_draft.py",
        "epoch = newest.epoch if newest else parts",
        "epoch = newest.epoch if newest and newest.number > 1 else parts",
        (
            "tests/unit/loader/runs/test_epochs.py::"
            "test_of_two_that_begin_an_output_the_manifest_decides",
        ),
    ),
    Mutant(
        "what a loader counts of a lower epoch behind a higher one is passed over in silence",
        "audit/judgement/counting_places.py",
        "        if heard[key] > first:\n",
        "        if key.tier is not Tier.HDFS and heard[key] > first:\n",
        (
            "tests/unit/loader/runs/test_epochs.py::"
            "test_a_lower_epoch_behind_a_higher_one_is_never_passed_over",
        ),
    ),
    Mutant(
        "a union's members are taken by their numbers",
        "loader/reading/projection.py",
        """        else:
            return lambda batch: _resolved(*resolve(batch.column(at)))
""",
        "",
        ("tests/unit/loader/reading/test_projection.py::test_inside_of_fields_avros_rules_hold",),
    ),
    Mutant(
        "a cast may change a value",
        "loader/reading/projection.py",
        "for found in (_changed(written, column), time_faults(column)):",
        "for found in (time_faults(column),):",
        (
            "tests/unit/loader/reading/test_projection.py::"
            "test_a_cast_that_would_change_a_value_sets_its_row_apart",
        ),
    ),
    Mutant(
        "a stream's first batch begins elsewhere when it is repeated",
        "loader/datasource/stream_reader.py",
        "            planned, lost = ranges.within(topic, ends.begins, ends.offsets)\n",
        """            begins = progress.firsts(from_json(start), name, ends.topic_id)
            planned, lost = ranges.within(topic, begins, ends.offsets)
""",
        (
            "tests/unit/loader/datasource/test_stream_reader.py::"
            "test_the_first_batch_that_is_repeated_is_the_same_batch",
            "tests/model/test_stream.py::test_a_killed_stream_gives_each_record_once",
        ),
    ),
    Mutant(
        "a stream's initial positions move on until its first batch",
        "loader/datasource/stream_reader.py",
        "        if self._initial is None:\n",
        "        if True:\n",
        (
            "tests/unit/loader/datasource/test_stream_reader.py::test_a_new_stream_begins_at_the_end",
        ),
    ),
    Mutant(
        "a stream that never had a record has no positions in its checkpoint",
        "loader/datasource/progress.py",
        "    return ends if is_initial or _places(ends) != _places(start) else start\n",
        "    return ends if _places(ends) != _places(start) else start\n",
        (
            "tests/unit/loader/datasource/test_progress.py::"
            "test_positions_say_where_their_batch_begins",
        ),
    ),
    Mutant(
        "a partition that is added to a stream is read from where it ends",
        "loader/datasource/ranges.py",
        "        first = firsts.get(number, 0)\n",
        "        first = firsts.get(number, end)\n",
        (
            "tests/unit/loader/datasource/test_progress.py::"
            "test_later_partitions_are_read_from_their_start",
            "tests/model/test_stream.py::test_a_killed_stream_gives_each_record_once",
        ),
    ),
    Mutant(
        "a stream goes on in a topic that was made again",
        "loader/datasource/progress.py",
        "        elif not was.is_of(now[name]):\n",
        "        elif False:\n",
        (
            "tests/unit/loader/datasource/test_progress.py::test_a_topic_made_again_is_noticed",
            "tests/unit/loader/datasource/test_stream_reader.py::"
            "test_a_stream_stops_at_a_topic_made_again",
        ),
    ),
    Mutant(
        "a query passes over expired offsets in silence",
        "loader/datasource/ranges.py",
        "    if first < bounds.log_start and first < end:\n",
        "    if False:\n",
        (
            "tests/unit/loader/datasource/test_progress.py::test_what_is_missing_is_named",
            "tests/unit/loader/datasource/test_batch_reader.py::test_expired_offsets_fail_a_query",
        ),
    ),
    Mutant(
        "a task reads on in silence where records expired before it read them",
        "loader/datasource/range_read.py",
        '            losses.report([f"{sentence}query began, and has expired"], fails=fails)\n',
        "            pass\n",
        (
            "tests/unit/loader/datasource/test_batch_reader.py::"
            "test_records_that_expire_during_a_query_fail_it",
        ),
    ),
    Mutant(
        "a task reads a topic that was made again after the plan",
        "loader/datasource/range_read.py",
        "    if not part.topic_id or now == part.topic_id:\n",
        "    if True:\n",
        (
            "tests/unit/loader/datasource/test_batch_reader.py::"
            "test_a_topic_made_again_fails_a_query",
        ),
    ),
    Mutant(
        "a query by time gives the older rows of a batch",
        "loader/datasource/rows.py",
        "            is_in &= batch.timestamps >= self._since\n",
        "            pass\n",
        ("tests/unit/loader/datasource/test_batch_reader.py::test_time_bounds_are_exact",),
    ),
    Mutant(
        "rows move into an hour that is still marked as complete",
        "loader/state/commit.py",
        "        if folder in changed:\n",
        "        if False:\n",
        (
            "tests/model/test_loader_commit.py::test_an_hour_is_marked_beside_a_load",
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_rows_of_a_marked_hour_take_its_mark_first",
        ),
    ),
    Mutant(
        "the next start takes the mark away that a load has just set",
        "loader/state/commit.py",
        "        if left is not None:\n            paths.add(path)\n",
        "        paths.add(path)\n",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_an_hour_is_marked_when_the_audit_calls_it_complete",
        ),
    ),
    Mutant(
        "an hour is marked before its rows have moved",
        "loader/state/commit.py",
        "    removed, waiting = _by_folder(manifest.removed), moves(manifest)\n",
        "    for each in manifest.success:\n"
        "        yield Replace(each.staged, each.path)\n"
        "    removed, waiting = _by_folder(manifest.removed), moves(manifest)\n",
        (
            "tests/model/test_loader_commit.py::"
            "test_an_hour_is_marked_beside_a_load_and_a_rewriting",
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_an_hour_is_marked_when_the_audit_calls_it_complete",
        ),
    ),
    Mutant(
        "an hour is marked by an answer that does not cover all rows",
        "loader/runs/hour_marking.py",
        "            if answer.heard != wanted:\n",
        "            if False:\n",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_an_hour_is_not_marked_before_the_audit_has_heard_of_all_rows",
        ),
    ),
    Mutant(
        "an hour is marked by a verdict that does not compare rows",
        "loader/complete_hours/collector.py",
        '    is_about_rows &= bool(topics) and all(HDFS in each["tiers"] for each in topics)\n',
        "    is_about_rows &= bool(topics)\n",
        (
            "tests/unit/loader/complete_hours/test_collector.py::"
            "test_an_hour_is_complete_if_the_audit_says_so_of_its_rows",
        ),
    ),
    Mutant(
        "a doubt about the whole topic takes marks away",
        "loader/runs/hour_marking.py",
        "        return [x for x, y in answers.items() if not y.is_complete and y.lacks]\n",
        "        return [x for x, y in answers.items() if not y.is_complete]\n",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_a_mark_goes_when_the_audit_takes_its_word_back",
        ),
    ),
    Mutant(
        "a retired output marks hours by the rows of others",
        "loader/complete_hours/collector.py",
        '    is_about_rows = output is not None and output["retired"] is False\n',
        "    is_about_rows = True\n",
        (
            "tests/unit/loader/complete_hours/test_collector.py::"
            "test_an_hour_is_complete_if_the_audit_says_so_of_its_rows",
        ),
    ),
    Mutant(
        "an hour that is compacted loses its mark",
        "loader/runs/topic_rewrite.py",
        "        return kept | new\n",
        "        return new\n",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_a_marked_hour_that_is_compacted_keeps_its_mark",
        ),
    ),
    Mutant(
        "an hour with a damaged file is marked",
        "loader/runs/topic_rewrite.py",
        "        unfit = {_hour(each) for each in results if each.made is None}\n",
        "        unfit = set[str]()\n",
        (
            "tests/unit/loader/runs/test_hour_marking.py::"
            "test_a_damaged_file_keeps_its_hour_from_being_marked",
        ),
    ),
    Mutant(
        "the collector's answer has not the output's newest message",
        "audit/collector/hours.py",
        "    newest = max(known, key=lambda key: key.epoch)\n",
        "    newest = min(known, key=lambda key: key.epoch)\n",
        (
            "tests/unit/audit/collector/test_hours.py::"
            "test_the_answer_says_up_to_which_message_an_output_was_heard",
        ),
    ),
    Mutant(
        "a killed run is shown as running while its last word is young",
        "loader/runs/running.py",
        "        return RUNNING if alive else KILLED\n",
        "        return RUNNING if alive or now_ms - note.said <= SILENT_MS else KILLED\n",
        ("tests/unit/loader/runs/test_running.py::test_a_killed_run_is_never_shown_as_running",),
    ),
    Mutant(
        "a number that another process got is taken for the run",
        "loader/state/process.py",
        "        return state not in _ENDED and started == self.started\n",
        "        return state not in _ENDED\n",
        ("tests/unit/loader/state/test_process.py::test_a_number_that_another_process_got",),
    ),
    Mutant(
        "the notes of killed runs stay for ever",
        "loader/state/run_notes.py",
        "        if name.removesuffix(PARTIAL_SUFFIX) not in living:\n",
        "        if False:\n",
        ("tests/unit/loader/state/test_run_notes.py::test_the_notes_of_dead_runs_are_deleted",),
    ),
    Mutant(
        "a note is written at each word of the run",
        "loader/state/run_notes.py",
        "        if self._count and now_s < self._next_s:\n",
        "        if False:\n",
        ("tests/unit/loader/state/test_run_notes.py::test_a_note_is_written_at_a_bounded_rate",),
    ),
    Mutant(
        "the notes of runs lie where a topic's folder may lie",
        "loader/state/layout.py",
        'RUNS: Final = f"{STATE}/_runs"\n',
        'RUNS: Final = f"{STATE}/runs"\n',
        ("tests/unit/loader/state/test_run_notes.py::test_notes_are_no_topic",),
    ),
    Mutant(
        "the rate is the average since the start",
        "loader/runs/pace.py",
        "            self._steps.popleft()\n",
        "            break\n",
        ("tests/unit/loader/runs/test_pace.py::test_the_rate_is_that_of_the_last_seconds",),
    ),
    Mutant(
        "slices that run again count as done",
        "loader/runs/run_progress.py",
        "            ended = min(max(len(slices) - of + done, 0), len(slices))\n",
        "            ended = len(slices) if of < len(slices) else done\n",
        ("tests/unit/loader/runs/test_run_progress.py::test_slices_that_run_again_are_not_done",),
    ),
    Mutant(
        "marks of a closed file go before the loads have reached the fence",
        "loader/state/closures.py",
        "        if ahead or not self.is_fenced:\n",
        "        if not self.is_fenced:\n",
        (
            "tests/unit/loader/state/test_closures.py::"
            "test_a_file_goes_when_all_is_loaded_that_was_there_after_its_seal",
            "tests/model/test_loader_closures.py::test_dropped_marks_give_the_same_rows",
        ),
    ),
    Mutant(
        "the fence is what the seals name, without the watermark",
        "loader/state/closures.py",
        "Fence(named, max(watermarks.get(partition, 0), named))",
        "Fence(named, named)",
        (
            "tests/unit/loader/runs/test_closing.py::"
            "test_a_late_repeat_before_the_fence_is_a_repeat",
            "tests/model/test_loader_closures.py::test_dropped_marks_give_the_same_rows",
        ),
    ),
    Mutant(
        "the fence is the watermark, whatever the seals name",
        "loader/state/closures.py",
        "Fence(named, max(watermarks.get(partition, 0), named))",
        "Fence(named, watermarks.get(partition, 0))",
        ("tests/unit/loader/state/test_closures.py::test_a_mirror_must_reach_what_seals_name",),
    ),
    Mutant(
        "a seal counts at any time after the closure",
        "loader/state/closures.py",
        "            if heard.time_ms < closed.time_ms + GRACE_MS:\n",
        "            if heard.time_ms < closed.time_ms:\n",
        (
            "tests/unit/loader/state/test_closures.py::"
            "test_a_seal_that_proves_too_little_moves_no_file[too early]",
        ),
    ),
    Mutant(
        "the agent's clock alone decides when a closed file is settled",
        "loader/state/closures.py",
        " and now_ms >= closed.heard_ms + SETTLED_MS\n",
        "\n",
        ("tests/unit/loader/state/test_closures.py::test_the_loaders_clock_counts_too",),
    ),
    Mutant(
        "a seal counts wherever it lies in the log",
        "loader/state/closures.py",
        "            if key in fresh and key not in heard.follows:\n",
        "            if False:\n",
        ("tests/unit/loader/state/test_closures.py::test_a_seal_counts_only_behind_the_closure",),
    ),
    Mutant(
        "a copy of the newest seal counts as a later seal",
        "loader/audit_topic/endings.py",
        "known[agent].key < key:",
        "known[agent].key <= key:",
        (
            "tests/unit/loader/audit_topic/test_feed.py::"
            "test_the_newest_seal_counts_from_where_it_was_first_read",
        ),
    ),
    Mutant(
        "announcements that are read again bring dropped names back",
        "loader/audit_topic/feed.py",
        " if self.places[key].is_new(positions)}",
        "}",
        (
            "tests/unit/loader/runs/test_closing.py::"
            "test_messages_that_the_topic_has_heard_bring_no_name_back",
        ),
    ),
    Mutant(
        "a snapshot is the only file that knows of dropped marks",
        "loader/state/tables.py",
        " if end != NO_MARK}",
        "}",
        ("tests/unit/loader/state/test_tables.py::test_what_is_dropped_stays_dropped",),
    ),
    Mutant(
        "a forgotten bucket looks as if it was never counted",
        "loader/state/bucket_spans.py",
        "            numbers[(hours >= first) & (hours < end)] = UNKNOWN\n",
        "            pass\n",
        ("tests/unit/loader/state/test_bucket_spans.py::test_what_was_forgotten_breaks_the_chain",),
    ),
    Mutant(
        "a forgotten bucket names no delta as the previous one",
        "loader/state/bucket_spans.py",
        "UNKNOWN: Final = -1\n",
        "UNKNOWN: Final = 0\n",
        ("tests/unit/loader/state/test_bucket_spans.py::test_what_was_forgotten_breaks_the_chain",),
    ),
    Mutant(
        "the order of times decides which buckets are forgotten",
        "loader/state/bucket_spans.py",
        "key=lambda span: (span.touched, span.first))",
        "key=lambda span: span.first)",
        (
            "tests/unit/loader/state/test_bucket_spans.py::"
            "test_the_least_recently_touched_span_is_forgotten",
        ),
    ),
)
