"""Mutants of the rules that the counters and the collector follow, and of the rules by which a
verdict is made."""

from mutants.mutant import Mutant

_JUDGEMENT = "tests/unit/audit/judgement/"
_PAGES = "tests/unit/audit/collector/pages/"
_ANY_ORDER = (
    "tests/unit/audit/evidence/test_ledger.py::test_the_order_in_which_messages_come_changes_nothing",
)
_EACH_RULE = (
    f"{_JUDGEMENT}test_topic_judgement.py::test_each_rule_keeps_a_bucket_from_being_complete",
)
_EDITIONS = "tests/unit/audit/collector/test_editions.py::"
_WEB = "tests/unit/audit/collector/test_web.py::"
_METRICS = "tests/unit/audit/collector/test_metrics.py::"
_JUDGE = "tests/unit/audit/collector/test_judge.py::"
_TIMES = "tests/unit/audit/collector/test_judging_times.py::"
_REBUILDING = "tests/unit/audit/evidence/test_rebuilding.py::"
_QUESTION = "tests/unit/audit/reports/test_completeness_question.py::"
_BY_DIFFERENCE = "tests/model/test_audit_by_difference.py::"
_DIFFERENCE = (f"{_BY_DIFFERENCE}test_judging_by_difference_is_judging_everything",)
_COLUMNS = (f"{_BY_DIFFERENCE}test_judging_by_columns_is_judging_each_agent",)
_CASES_BY_COLUMNS = (
    f"{_JUDGEMENT}test_topic_judgement.py::"
    "test_each_rule_applies_to_buckets_that_are_judged_by_columns",
)
_MAY_STILL_COME = "test_what_may_still_come_keeps_a_topic_from_being_complete"

_EXPLANATION = "tests/unit/audit/explanation/test_explanation.py::"
_WHY = "tests/unit/audit/commands/test_why.py::"
_LATENCY_OF_WHY = f"{_WHY}test_json_says_how_long_after_its_end_a_tier_had_all_records"

MUTANTS = (
    # These mutants concern the dashboard's answers. The dashboard makes its answers from an
    # edition, that is, from the verdicts of one step of judging and from the store as it was in
    # this step.
    Mutant(
        "an answer mixes the evidence of one moment with the counts of another",
        "audit/collector/editions.py",
        "            chosen.ledger.hold()\n",
        "",
        (f"{_EDITIONS}test_an_answer_does_not_mix_two_moments",),
    ),
    Mutant(
        "an edition that nobody uses keeps the store's log from being used anew",
        "audit/collector/editions.py",
        "                each.ledger.let_go()\n                each.edition = None\n"
        "            self._checkpoint()\n            chosen = free[0]\n",
        "                each.edition = None\n            chosen = free[0]\n"
        "            chosen.ledger.let_go()\n",
        (f"{_EDITIONS}test_editions_do_not_let_the_log_of_the_store_grow",),
    ),
    Mutant(
        "an answer in parts leaves out the last of them",
        "audit/collector/addresses.py",
        "if end < count else None",
        "if end + ROWS_MAX < count else None",
        (
            f"{_WEB}test_a_large_bucket_is_told_in_parts_that_are_complete",
            f"{_WEB}test_many_hosts_are_told_in_parts_that_are_complete",
        ),
    ),
    Mutant(
        "a list that leaves out agents does not say where they are",
        "audit/reports/report.py",
        "None if len(few) == count else self.address(verdict)",
        "None",
        (f"{_WEB}test_a_large_bucket_is_told_in_parts_that_are_complete",),
    ),
    Mutant(
        "the page of a bucket shows any hosts",
        "audit/judgement/verdicts_of_agents.py",
        "for status in np.unique(statuses)[::-1].tolist():",
        "for status in np.unique(statuses).tolist():",
        (f"{_WEB}test_the_page_of_a_large_bucket_shows_the_gravest_hosts",),
    ),
    Mutant(
        "files that were announced since the last step are not known",
        "audit/evidence/announced.py",
        "            self._notes.pop(source, None)\n",
        "",
        (f"{_EDITIONS}test_a_file_that_a_second_agent_announces_is_known_at_once",),
    ),
    Mutant(
        "agents that were heard since the last step are not known",
        "audit/evidence/announced.py",
        "            self._agents.pop(source, None)\n",
        "",
        _DIFFERENCE,
    ),
    Mutant(
        "a retired place lacks records for a job that reads",
        "audit/judgement/bucket_columns.py",
        "            if place.is_retired:\n                continue\n            lack =",
        "            lack =",
        _COLUMNS,
    ),
    # These mutants concern the causes that `skidway audit why` shows first, and the results on the
    # dashboard's first page.
    Mutant(
        "rows that wait for the next load hide a loss",
        "audit/explanation/choice.py",
        "def lacks_only_rows(verdict: BucketVerdict) -> bool:\n",
        "def lacks_only_rows(verdict: BucketVerdict) -> bool:\n    return False\n\n\n"
        "def _lacks_only_rows(verdict: BucketVerdict) -> bool:\n",
        (f"{_WHY}test_rows_that_wait_for_a_load_hide_no_other_cause",),
    ),
    Mutant(
        "a deleted bucket is called complete after buckets got another length",
        "audit/commands/why.py",
        "    return [*shown, *deleted] or _whole(",
        "    return shown or _whole(",
        (f"{_WHY}test_a_deleted_bucket_of_another_length_is_not_called_complete",),
    ),
    Mutant(
        "a deleted bucket proves a host after buckets got another length",
        "audit/judgement/host_proofs.py",
        "        return sorted(found.union(deleted[-1:]))\n",
        "        return sorted(found)\n",
        (
            f"{_JUDGEMENT}test_host_proofs.py::test_a_deleted_bucket_is_no_proof_whatever_its_length",
        ),
    ),
    Mutant(
        "one acceptance covers a bucket with another cause",
        "audit/explanation/choice.py",
        "if not _can_be_accepted(each) or set(_signature(each)) != own:",
        "if not _can_be_accepted(each):",
        (f"{_WHY}test_one_acceptance_covers_all_buckets_with_the_same_causes",),
    ),
    Mutant(
        "one acceptance covers rejects with a cause that nobody was shown",
        "audit/explanation/choice.py",
        "        if not all(explained.issuperset(_signature(x)) for x in new):\n",
        "        if False:\n",
        (f"{_WHY}test_one_acceptance_covers_no_rejects_with_another_cause",),
    ),
    Mutant(
        "an acceptance covers the rejects of the minute, which nobody was shown",
        "audit/commands/why.py",
        "        shown = with_covered(first_explained(bad), judged)\n",
        "        shown = first_explained(bad)\n",
        (f"{_WHY}test_rejects_of_the_same_minute_are_explained_if_they_would_be_accepted",),
    ),
    Mutant(
        "the page of a bucket does not show the rejects that its command accepts",
        "audit/collector/web/dashboard.py",
        "        found = with_covered(asked, near)\n",
        "        found = asked\n",
        (f"{_WEB}test_a_bucket_is_shown_with_the_rejects_that_its_acceptance_covers",),
    ),
    Mutant(
        "the page of a bucket does not show the longer bucket that its command accepts",
        "audit/collector/web/dashboard.py",
        "        chosen = acceptable_with(bucket, known)\n",
        "        chosen = {x for x in known if x[0] == bucket}\n",
        (f"{_WEB}test_a_bucket_is_shown_with_the_longer_bucket_that_its_acceptance_covers",),
    ),
    Mutant(
        "the first page does not tell what a recount found",
        "audit/collector/pages/overview.py",
        "            if not x.is_good\n        ),",
        "            if False\n        ),",
        (f"{_PAGES}test_pages.py::test_a_recount_that_differs_is_told_on_the_first_page",),
    ),
    # These mutants concern old buckets that are deleted.
    Mutant(
        "a bucket is deleted although the share of rejects depends on it",
        "audit/collector/pruning.py",
        " and is_good(verdict) and not is_kept:\n",
        " and is_good(verdict):\n",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_a_bucket_stays_while_its_rejects_are_not_accepted",
        ),
    ),
    Mutant(
        "an acceptance of late counts covers smaller ones that come later",
        "audit/judgement/topic_judgement.py",
        "(agent, *key, tally.sums.count, tally.last, tally.links)",
        "(agent, *key)",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_an_acceptance_of_late_counts_covers_no_later_ones",
        ),
    ),
    Mutant(
        "a loss gives a deleted bucket a verdict of the judge",
        "audit/evidence/loss_buckets.py",
        "    return found is not None or any(\n",
        "    return found is not None or not all(\n",
        (f"{_JUDGE}test_a_deleted_bucket_does_not_come_back_by_a_loss",),
    ),
    Mutant(
        "rejects are not judged again when the bucket of their topic is deleted",
        "audit/collector/judge.py",
        "        sources = found.changed.keys() | found.gone.keys()\n",
        "        sources = found.changed.keys()\n",
        (f"{_JUDGE}test_rejects_are_judged_again_when_the_bucket_of_their_topic_is_deleted",),
    ),
    Mutant(
        "of lines whose counts were deleted, all were rejected",
        "audit/judgement/rules/rejects.py",
        "endswith(REJECTED_SUFFIX) and is_known:",
        "endswith(REJECTED_SUFFIX):",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_of_late_rejects_of_a_deleted_bucket_nobody_knows_the_share",
        ),
    ),
    Mutant(
        "the judge does not know that a bucket was deleted whose lines were rejected",
        "audit/collector/judge.py",
        "            if self._ledger.is_pruned(source, key):\n",
        "            if source == facts.source and self._ledger.is_pruned(source, key):\n",
        (f"{_JUDGE}test_rejects_are_judged_again_when_the_bucket_of_their_topic_is_deleted",),
    ),
    Mutant(
        "an acceptance that was taken back holds if a step had no time for its bucket",
        "audit/collector/topic_buckets.py",
        "        self.mark(self._accepted - dependence.accepted)\n",
        "",
        (f"{_JUDGE}test_an_acceptance_that_was_taken_back_holds_no_longer",),
    ),
    Mutant(
        "an old bucket is never judged again if all buckets change again and again",
        "audit/collector/judge.py",
        "        is_fair = self._steps % 2 == 0\n",
        "        is_fair = False\n",
        (f"{_JUDGE}test_an_old_bucket_is_judged_although_all_change_again_and_again",),
    ),
    Mutant(
        "a bucket that becomes due waits for newer buckets without a verdict",
        "audit/collector/judge.py",
        "        order = -waiting, ~became_due, is_young, ",
        "        order = -waiting, is_young, is_young, ",
        (f"{_JUDGE}test_a_bucket_that_becomes_due_is_judged_first",),
    ),
    Mutant(
        "a bucket that becomes due waits for old buckets that have just changed",
        "audit/collector/judge.py",
        "        waiting[is_early | (not is_fair)] = 0\n",
        "        waiting[:] = waiting if is_fair else 0\n",
        (f"{_JUDGE}test_a_bucket_that_becomes_due_is_judged_first",),
    ),
    Mutant(
        "a bucket that is never balanced keeps counts beside its row",
        "audit/collector/judge.py",
        "        elif self._ledger.additions(look.source, key):\n",
        "        elif is_narrow and self._ledger.additions(look.source, key):\n",
        (f"{_JUDGE}test_the_counts_of_a_due_bucket_are_in_one_row",),
    ),
    Mutant(
        "a bucket that is not due yet never gets another verdict",
        "audit/collector/judge.py",
        "np.where(is_young, YOUNG_PATIENT_STEPS, PATIENT_STEPS)\n",
        "np.where(is_young, 1 << 40, PATIENT_STEPS)\n",
        (f"{_JUDGE}test_a_loss_in_a_bucket_far_ahead_is_noticed",),
    ),
    Mutant(
        "many young buckets keep a bucket that became due out of a step",
        "audit/collector/judge.py",
        "        found.append(table[:, np.lexsort(order[::-1])[:STALE_MAX]])\n",
        "        found.append(table[:, -STALE_MAX:])\n",
        (f"{_JUDGE}test_due_buckets_come_before_many_younger_ones",),
    ),
    Mutant(
        "the history never gets a verdict if a newer bucket changes again and again",
        "audit/collector/topic_buckets.py",
        'rows["stale_since"][~stale] = 0\n',
        'rows["stale_since"][~stale | ~rows["is_noted"]] = 0\n',
        (
            f"{_JUDGE}test_the_history_gets_each_verdict_although_a_newer_bucket_changes_again_and"
            "_again",
        ),
    ),
    Mutant(
        "after two failures, ids that were rolled back are used again",
        "audit/evidence/ledger.py",
        "            del self._rows  # nobody may use it, even if making a new object fails\n",
        "",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_after_two_failures_no_rolled_back_id_is_used",
        ),
    ),
    Mutant(
        "a bucket that changed before its rows are merged is not judged again",
        "audit/evidence/ledger_changes.py",
        "        self._connection.executemany(_NOTE, before)\n",
        "",
        (
            "tests/unit/audit/evidence/test_ledger_changes.py::"
            "test_a_bucket_whose_rows_are_merged_has_not_changed",
        ),
    ),
    Mutant(
        "a span is complete although a larger bucket that began before it is not",
        "audit/evidence/ledger.py",
        "max(self.bucket_sizes(), default=bucket_ms)",
        "(self.bucket_ms() or bucket_ms)",
        (f"{_QUESTION}test_a_large_bucket_counts_in_each_span_that_it_touches",),
    ),
    Mutant(
        "a deleted bucket without later counts gets a command that accept refuses",
        "audit/explanation/explanation.py",
        "            and self._is_acceptable\n",
        "",
        (
            "tests/unit/audit/commands/test_why.py::"
            "test_a_deleted_bucket_of_another_length_is_not_called_complete",
        ),
    ),
    Mutant(
        "a span is complete although the size of a larger bucket in it was not stored",
        "audit/evidence/tally_rows.py",
        "        self._write_size(key[2])\n",
        "",
        (f"{_QUESTION}test_a_large_bucket_counts_in_each_span_that_it_touches",),
    ),
    Mutant(
        "a host is proven although a larger bucket that began long before is not complete",
        "audit/commands/hosts.py",
        "live.ledger.window_of(since_ms, FOREVER[1], bucket_ms)",
        "(since_ms - bucket_ms, FOREVER[1])",
        (
            "tests/unit/audit/test_cli.py::"
            "test_waiting_judges_a_larger_bucket_that_began_long_before",
        ),
    ),
    Mutant(
        "a span is complete although a bucket of another size was deleted in it",
        "audit/judgement/completeness.py",
        "*judgement.buckets(), *deleted[-BUCKETS_MAX:]}",
        "*judgement.buckets()}",
        (f"{_QUESTION}test_a_deleted_bucket_is_not_complete_whatever_its_size",),
    ),
    Mutant(
        "an hour is complete although a larger bucket that began before it is not",
        "audit/collector/hours.py",
        "for x in edition.ledger.bucket_sizes() if",
        "for x in [edition.ledger.bucket_ms()] if",
        (
            "tests/unit/audit/collector/test_hours.py::"
            "test_a_bucket_that_reaches_into_the_next_hour_belongs_to_both",
        ),
    ),
    Mutant(
        "a topic is complete up to a time beyond an overlapping bucket that is not complete",
        "audit/collector/topic_buckets.py",
        "    return min(end, int(bad[0])) if len(bad) else end\n",
        "    return end\n",
        (f"{_JUDGE}test_buckets_of_two_sizes_are_complete_up_to_the_first_that_is_not",),
    ),
    Mutant(
        "a whole judgement is complete beyond an overlapping bucket that is not complete",
        "audit/judgement/standing.py",
        "([] if first is None else [first])",
        "[]",
        (f"{_JUDGE}test_buckets_of_two_sizes_are_complete_up_to_the_first_that_is_not",),
    ),
    Mutant(
        "the note of a changed bucket fails when a rule leaves out records again",
        "audit/evidence/ledger_changes.py",
        'SELECT {columns} WHERE NOT EXISTS"',
        'SELECT {columns} WHERE 1 OR NOT EXISTS"',
        (
            "tests/unit/audit/evidence/test_ledger_changes.py::"
            "test_a_rule_leaves_out_records_of_a_bucket_again_and_again",
        ),
    ),
    Mutant(
        "a rebuild waits for a partition that was deleted",
        "audit/evidence/collection.py",
        "        if gone:\n            self._ledger.forget(gone)\n",
        "",
        (f"{_REBUILDING}test_a_rebuild_does_not_wait_for_messages_that_are_gone",),
    ),
    Mutant(
        "a rebuild waits for a topic that was made again and is empty",
        "audit/evidence/ledger.py",
        '            self._connection.execute("DELETE FROM rebuild WHERE end = 0")\n',
        "",
        (f"{_REBUILDING}test_a_rebuild_does_not_wait_for_messages_that_are_gone",),
    ),
    Mutant(
        "a rebuild does not wait for a partition that brokers do not name for a moment",
        "audit/evidence/collection.py",
        "if now - since >= GONE_AFTER_S]",
        "if now - since >= 0]",
        (f"{_REBUILDING}test_a_rebuild_waits_for_a_topic_that_comes_back",),
    ),
    Mutant(
        "a rebuild does not wait for topics of a cluster that names none",
        "audit/evidence/collection.py",
        "        if not any(map(topic.is_audit_topic, found)):\n",
        "        if False:\n",
        (f"{_REBUILDING}test_a_rebuild_waits_for_a_topic_that_comes_back",),
    ),
    Mutant(
        "a partition that comes back is read from where it was left",
        "audit/evidence/ledger.py",
        'for table in ("rebuild", "positions"):',
        'for table in ("rebuild",):',
        (f"{_REBUILDING}test_a_rebuild_waits_for_a_topic_that_comes_back",),
    ),
    Mutant(
        "when a rebuild begins, the last verdicts hold until the next judgement",
        "audit/collector/collector.py",
        "        if has_turned or self._clock",
        "        if self._clock",
        ("tests/unit/audit/collector/test_collector.py::test_a_rebuild_is_said_at_once",),
    ),
    Mutant(
        "an old bucket is deleted although it is neither complete nor accepted",
        "audit/collector/pruning.py",
        "is_old and is_good(verdict)",
        "is_old and verdict.due",
        (
            "tests/model/test_audit_pruning.py::test_a_ledger_that_deletes_old_buckets_never_says_more",
        ),
    ),
    Mutant(
        "a bucket is deleted although its counts changed after it was judged",
        "audit/evidence/pruning.py",
        "        if tallies is None or digest_of(tallies) != each.digest:\n",
        "        if tallies is None:\n",
        (
            "tests/unit/audit/evidence/test_pruning.py::test_a_bucket_that_changed_after_it_was_judged_is_kept",
        ),
    ),
    Mutant(
        "records that come after their bucket was deleted are all that the bucket has",
        "audit/judgement/topic_judgement.py",
        """        if bucket in self._facts.topic.pruned:
            return self._pruned(bucket)
""",
        "",
        (
            "tests/model/test_audit_pruning.py::test_a_ledger_that_deletes_old_buckets_never_says_more",
        ),
    ),
    Mutant(
        "an acceptance of late records covers as many of another host",
        "audit/judgement/topic_judgement.py",
        "(agent, *key, tally.sums.count, tally.last, tally.links)\n",
        "(tally.sums.count, tally.last, tally.links)\n",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_an_acceptance_of_late_counts_covers_no_counts_of_another_host",
        ),
    ),
    Mutant(
        "the newest seal of an agent is deleted like any other",
        "audit/evidence/pruning.py",
        "    SELECT max(block) FROM seals AS later\n",
        "    SELECT max(block) + 1 FROM seals AS later\n",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_the_last_seal_before_a_later_loss_is_kept",
        ),
    ),
    Mutant(
        "of settled messages, the first seal of a block is kept instead of the last",
        "audit/evidence/seal_blocks.py",
        "        return Block.of([self.last])\n",
        "        return Block.of([*unpack(self.last.number // BLOCK, self.packed)][:1])\n",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_of_settled_messages_the_last_seal_of_each_block_is_kept",
        ),
    ),
    Mutant(
        "seals that a loss needs are deleted when their messages are settled",
        "audit/evidence/ledger_rows.py",
        "if sender in epochs and not pruning.is_special(self._connection, epochs[sender][0]):\n",
        "if sender in epochs:\n",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_of_settled_messages_the_last_seal_of_each_block_is_kept",
        ),
    ),
    Mutant(
        "a message with a settled number is always a repetition",
        "audit/evidence/number_rows.py",
        'digest if time_ms <= settled.newest else b""',
        "digest",
        (
            "tests/unit/audit/evidence/test_number_rows.py::"
            "test_a_settled_number_that_comes_later_is_another_message",
        ),
    ),
    Mutant(
        "a message with the greatest number ends the collector at each start",
        "audit/evidence/number_rows.py",
        "                if key[0] == _LAST_BLOCK:\n                    break\n",
        "",
        (
            "tests/unit/audit/evidence/test_number_rows.py::"
            "test_a_message_with_the_greatest_number_does_not_end_the_settling",
        ),
    ),
    # These mutants concern a store that is rebuilt from the audit topics.
    Mutant(
        "a store that is being rebuilt is judged",
        "audit/judgement/topic_judgement.py",
        "        if self._facts.evidence.rebuilding:\n",
        "        if False:\n",
        (
            "tests/unit/audit/evidence/test_rebuilding.py::test_a_part_of_the_evidence_makes_nothing_complete",
        ),
    ),
    Mutant(
        "a store that is made anew is never being rebuilt",
        "audit/evidence/collection.py",
        "        if new:\n",
        "        if False:\n",
        (
            "tests/unit/audit/evidence/test_rebuilding.py::test_a_new_store_is_rebuilt_up_to_the_ends_that_the_collector_saw",
        ),
    ),
    Mutant(
        "a store is rebuilt as soon as anything was read",
        "audit/evidence/ledger.py",
        "(topic, partition) = (?, ?) AND end <= ?",
        "(topic, partition) = (?, ?) AND 0 <= ?",
        (
            "tests/unit/audit/evidence/test_rebuilding.py::test_a_new_store_is_rebuilt_up_to_the_ends_that_the_collector_saw",
        ),
    ),
    Mutant(
        "the position in an earlier topic of that name ends a rebuild",
        "audit/evidence/ledger_evidence.py",
        "max(end - coalesce(next_offset, 0), 1)",
        "max(end - coalesce(next_offset, 0), 0)",
        (
            "tests/unit/audit/evidence/test_rebuilding.py::test_a_topic_that_is_read_from_its_beginning_is_a_rebuild",
        ),
    ),
    Mutant(
        "what is read again after an upgrade is no rebuild",
        "audit/evidence/ledger.py",
        "WHERE unread_from.next_offset < positions.next_offset",
        "WHERE unread_from.next_offset > positions.next_offset",
        (f"{_JUDGEMENT}test_unread.py::test_a_version_that_has_the_schema_reads_from_there_on",),
    ),
    Mutant(
        "the judge judges a part of the evidence",
        "audit/collector/judge.py",
        "        if self._ledger.rebuilding:\n",
        "        if False:\n",
        (
            "tests/unit/audit/evidence/test_rebuilding.py::test_the_judge_and_the_report_say_that_the_store_is_rebuilt",
        ),
    ),
    # These mutants concern the numbers that senders give to their messages, and the progress that a
    # sender stores together with its messages.
    Mutant(
        "a counter's progress is durable before the deltas that stand for it",
        "audit/counter/state.py",
        """            self._save_progress(progress)
            database.executemany(
                "INSERT OR""",
        """            self._save_progress(progress)
            database.execute("COMMIT")
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR""",
        (
            "tests/unit/audit/counter/test_state.py::"
            "test_a_commit_is_there_whole_or_not_at_all_wherever_the_program_ends",
        ),
    ),
    Mutant(
        "a counter's deltas are durable before the progress that they stand for",
        "audit/counter/state.py",
        """            self._save_progress(progress)
            database.executemany(
                "INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?)",
                ((self._sources[k[0]], k[1], k[2], number) for k, number in touched.items()),
            )
            database.executemany(
                "INSERT INTO outbox (message) VALUES (?)", ((encode(delta),) for delta in deltas)
            )
            if deltas:
                database.execute("UPDATE meta SET number = ?", (deltas[-1].number,))
""",
        """            database.executemany(
                "INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?)",
                ((self._sources[k[0]], k[1], k[2], number) for k, number in touched.items()),
            )
            database.executemany(
                "INSERT INTO outbox (message) VALUES (?)", ((encode(delta),) for delta in deltas)
            )
            if deltas:
                database.execute("UPDATE meta SET number = ?", (deltas[-1].number,))
            database.execute("COMMIT")
            database.execute("BEGIN IMMEDIATE")
            self._save_progress(progress)
""",
        (
            "tests/unit/audit/counter/test_state.py::"
            "test_a_commit_is_there_whole_or_not_at_all_wherever_the_program_ends",
        ),
    ),
    Mutant(
        "a number is taken before its delta is there",
        "audit/counter/state.py",
        """            database.executemany(
                "INSERT INTO outbox (message) VALUES (?)", ((encode(delta),) for delta in deltas)
            )
            if deltas:
                database.execute("UPDATE meta SET number = ?", (deltas[-1].number,))
""",
        """            if deltas:
                database.execute("UPDATE meta SET number = ?", (deltas[-1].number,))
            database.execute("COMMIT")
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT INTO outbox (message) VALUES (?)", ((encode(delta),) for delta in deltas)
            )
""",
        (
            "tests/unit/audit/counter/test_state.py::"
            "test_a_commit_is_there_whole_or_not_at_all_wherever_the_program_ends",
        ),
    ),
    Mutant(
        "a bucket's chain names the delta before, and not the last one that touched the bucket",
        "audit/counter/counter.py",
        "        previous = self._state.touched(key for key, _ in self._counts.items())\n",
        "        known = self._state.touched(key for key, _ in self._counts.items())\n"
        "        previous = dict.fromkeys(known, self._state.number)\n",
        (
            "tests/unit/audit/counter/test_counter.py::test_a_chain_passes_over_deltas_of_other_buckets",
        ),
    ),
    Mutant(
        "a bucket is remembered with the number before that of its delta",
        "audit/counts/deltas.py",
        "        touched.update({(x.source, x.agent, x.bucket): last for x in delta.counts})\n",
        "        touched.update({(x.source, x.agent, x.bucket): last - 1 for x in delta.counts})\n",
        (
            "tests/unit/audit/counter/test_counter.py::test_numbers_have_no_holes_and_buckets_are_chained",
        ),
    ),
    Mutant(
        "a topic that goes away between two commits takes its counts along",
        "audit/counter/counter.py",
        "tp: TopicPartition) -> None:\n        self.commit()",
        "tp: TopicPartition) -> None:\n        self._progress.positions.clear()",
        (
            "tests/unit/audit/counter/test_counter.py::"
            "test_a_topic_that_was_away_between_two_commits_is_counted_once",
        ),
    ),
    Mutant(
        "a counter's new epoch keeps the marks of the one before",
        "audit/counter/state.py",
        'for table in ("partitions", "marks", "touched", "outbox"):',
        'for table in ("partitions", "touched", "outbox"):',
        ("tests/unit/audit/counter/test_counter.py::test_a_new_epoch_counts_everything_again",),
    ),
    Mutant(
        "a heartbeat overtakes the messages that it counts as said",
        "audit/topic/publisher.py",
        "if self._producer.pending_count or not self._publisher.is_idle:",
        "if self._producer.pending_count:",
        (
            "tests/unit/audit/topic/test_publisher.py::"
            "test_a_heartbeat_waits_until_everything_that_it_counts_as_said_is_published",
        ),
    ),
    Mutant(
        "a state is an older copy only where its epoch is older",
        "audit/topic/publisher.py",
        "if newest is None or (newest.epoch, newest.number) <= (epoch, number):",
        "if newest is None or newest.epoch <= epoch:",
        (
            "tests/unit/audit/topic/test_publisher.py::test_a_state_older_than_its_messages_is_refused",
        ),
    ),
    Mutant(
        "the batch below is counted once more behind an interruption",
        "audit/counter/continuity.py",
        "        return Step(Following(position))\n    return Step(\n",
        "        return Step(Following(position), counts=True)\n    return Step(\n",
        (
            "tests/unit/audit/counter/test_continuity.py::"
            "test_after_an_interruption_the_batch_below_is_compared_and_not_counted_again",
        ),
    ),
    Mutant(
        "a text is reckoned as if each character were a byte",
        "audit/counts/deltas.py",
        "        return _LONG_BYTES + 4 * len(value)",
        "        return _LONG_BYTES + len(value)",
        ("tests/unit/audit/counts/test_deltas.py::test_no_message_is_larger_than_its_limit",),
    ),
    Mutant(
        "offsets of a seal are not reckoned",
        "audit/counts/deltas.py",
        "_SEAL_BYTES * (1 + len(part.offsets))",
        "_SEAL_BYTES",
        ("tests/unit/audit/counts/test_deltas.py::test_no_message_is_larger_than_its_limit",),
    ),
    Mutant(
        "losses come before the counts of their delta",
        "audit/counts/deltas.py",
        "[*ranges, *gaps, *counts.to_messages(previous), *losses]",
        "[*losses, *ranges, *gaps, *counts.to_messages(previous)]",
        ("tests/unit/audit/counts/test_deltas.py::test_losses_come_behind_all_counts",),
    ),
    # These mutants concern a collector whose disk is full.
    Mutant(
        "what stood in a transaction before the disk was full is committed",
        "audit/database.py",
        '            connection.execute("ROLLBACK")\n',
        '            connection.execute("COMMIT")\n',
        (
            "tests/unit/audit/evidence/test_ledger.py::test_a_failed_transaction_leaves_nothing_behind",
        ),
    ),
    Mutant(
        "the collector's position is durable before the messages that it read",
        "audit/evidence/ledger.py",
        "            readable = [self._rows",
        """            self._connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
                ((tp.topic, tp.partition, *at) for tp, at in reached.items()),
            )
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN IMMEDIATE")
            readable = [self._rows
""",
        (
            "tests/unit/audit/evidence/test_ledger.py::test_a_full_disk_takes_nothing_and_loses_nothing",
        ),
    ),
    Mutant(
        "a full disk is taken for a damaged database",
        "audit/database.py",
        "        if code in _DAMAGED:\n",
        "        if code in _DAMAGED or code in _NO_ROOM:\n",
        (
            "tests/crash/audit/test_audit_programs.py::"
            "test_a_counter_without_room_ends_with_a_sentence_and_goes_on_with_room",
        ),
    ),
    # These mutants concern the size of buckets and the times at which they begin.
    Mutant(
        "a counter goes on in smaller buckets",
        "audit/counter/state.py",
        "        elif known != bucket_ms:\n",
        "        elif known < bucket_ms:\n",
        ("tests/unit/audit/counter/test_counter.py::test_a_changed_bucket_size_is_refused",),
    ),
    Mutant(
        "a time that no calendar has belongs to a bucket that no store can hold",
        "audit/counts/bucket.py",
        "    times = np.clip(timestamps_ms, *_span(size_ms))\n",
        "    times = timestamps_ms\n",
        ("tests/unit/audit/counts/test_bucket.py::test_absurd_times_have_the_outermost_buckets",),
    ),
    # These mutants concern topics that not all tiers count.
    Mutant(
        "a tier that never reported a topic is one that it does not have",
        "audit/judgement/rules/equation.py",
        "        if not places:\n            sums[Place",
        "        if not places and tier is Tier.BROKER:\n            sums[Place",
        (f"{_JUDGEMENT}rules/test_equation.py::test_other_topics_are_not_exempt",),
    ),
    Mutant(
        "whoever exempts a topic of one tier exempts it of all",
        "audit/judgement/policy.py",
        "return tuple(tier for tier in self.tiers if tier not in exempt)",
        "return tuple(tier for tier in self.tiers if not exempt or tier is Tier.AGENT)",
        (
            f"{_JUDGEMENT}rules/test_equation.py::test_a_topic_that_nobody_mirrors_or_loads_is_complete_without",
        ),
    ),
    # These mutants break the rule that a bucket is complete only if the agent of every expected
    # host has sealed it.
    Mutant(
        "a bucket is complete at its end, without any lateness",
        "audit/judgement/rules/topic_facts.py",
        "        return sum(bucket) + self.policy.lateness_ms\n",
        "        return sum(bucket)\n",
        _EACH_RULE,
    ),
    Mutant(
        "a seal behind the bucket's beginning is enough",
        "audit/judgement/rules/seals.py",
        "if until_ms < facts.due(bucket) and not _is_last_word(facts, agent, newest):",
        "if until_ms < bucket[0] and not _is_last_word(facts, agent, newest):",
        _EACH_RULE,
    ),
    Mutant(
        "a later seal that names a smaller W is ignored",
        "audit/judgement/expectation.py",
        "    return sorted(found)\n",
        "    return sorted(found, key=lambda seal: seal.sealed_until)\n",
        _EACH_RULE,
    ),
    Mutant(
        "a heartbeat is taken for a seal of all topics",
        "audit/judgement/rules/seals.py",
        "    until_ms = newest.vouched_until\n",
        "    until_ms = max(newest.vouched_until, facts.evidence.last_heard(agent))\n",
        ("tests/model/test_audit.py::test_never_falsely_complete_and_complete_in_the_end",),
    ),
    Mutant(
        "lines that came behind the newest seal are of later buckets",
        "audit/judgement/rules/seals.py",
        "    if any(touch > (newest.epoch, newest.at) for touch in touched):\n",
        "    if any(touch > (newest.epoch, newest.number) for touch in touched[1:]):\n",
        _EACH_RULE,
    ),
    Mutant(
        "a topic that an agent only named as its own counts as sealed",
        "audit/judgement/expectation.py",
        "        if seal.sealed_until == NEVER_SEALED:\n            continue\n",
        "",
        (
            "tests/unit/audit/judgement/test_hosts.py::"
            "test_a_topic_that_was_made_again_keeps_its_last_seal",
        ),
    ),
    Mutant(
        "a topic that an agent only named counts as sealed in its columns",
        "audit/judgement/agent_columns.py",
        "(x for x in reversed(seals) if x.sealed_until != NEVER_SEALED)",
        "reversed(seals)",
        (
            "tests/unit/audit/judgement/test_hosts.py::"
            "test_a_topic_that_was_never_sealed_is_the_host_s_all_the_same",
        ),
    ),
    Mutant(
        "of a host's agents the one with the greatest clock is the newest",
        "audit/judgement/newest_agents.py",
        "last = next((x for x in ranked if not _is_before_any(evidence, x, ranked)), ranked[0])",
        "last = ranked[0]",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_a_bucket_waits_for_the_agent_that_began_last_and_died_too",
        ),
    ),
    Mutant(
        "an agent that began later counts only if its clock says so",
        "audit/judgement/newest_agents.py",
        "        return any(mine.first > theirs.first for mine, theirs in both)\n    if evidence",
        "        return _began(evidence, agent) > _began(evidence, last)\n    if evidence",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_a_state_that_is_brought_back_counts_beside_the_one_that_began_later",
        ),
    ),
    Mutant(
        "of two machines that are called alike the one heard last stands for both",
        "audit/judgement/newest_agents.py",
        "if x != last and (x in later or x in beside)",
        "if x != last and x in later and x in beside",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_two_machines_that_are_called_alike_are_both_waited_for",
        ),
    ),
    Mutant(
        "agents that follow each other are taken for ones that speak by turns",
        "audit/evidence/overlaps.py",
        "theirs.first < mine.first < theirs.last < offset",
        "theirs.first < mine.first and theirs.last < offset",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_who_was_alive_side_by_side_does_not_depend_on_what_is_taken_at_once",
        ),
    ),
    Mutant(
        "an agent was there before its host got its name",
        "audit/judgement/newest_agents.py",
        "    return evidence.began_here.get(agent, 0)\n",
        "    return evidence.began.get(agent, 0)\n",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_a_machine_that_gets_the_name_of_a_dead_one_has_not_read_its_files",
        ),
    ),
    Mutant(
        "a message with an earlier name of the host counts as one with its present name",
        "audit/evidence/ledger_evidence.py",
        "            if host == found.hosts.get(agent):\n"
        "                found.offsets.setdefault(agent, {})[Log(*log)] = Offsets(first, last)\n",
        "            if host:\n"
        "                found.offsets.setdefault(agent, {})[Log(*log)] = Offsets(first, last)\n",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_the_order_in_which_messages_come_changes_nothing",
        ),
    ),
    Mutant(
        "a loss that only a clone declares is forgotten",
        "audit/evidence/ledger_rows.py",
        "            self._add_progress(sender, message, _place_of_clone(digest))\n",
        "",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_a_loss_that_only_a_clone_declares_counts",
        ),
    ),
    Mutant(
        "an agent is silent by the clock of its host alone",
        "audit/judgement/newest_agents.py",
        "    return min(behind_ms, ours_ms) >= silence_ms\n",
        "    return behind_ms >= silence_ms\n",
        (
            "tests/unit/audit/judgement/test_hosts.py::"
            "test_an_agent_is_silent_by_our_clock_too_before_it_counts_no_more",
        ),
    ),
    Mutant(
        "a silent agent of a living machine is not waited for",
        "audit/judgement/newest_agents.py",
        "return {agent for pair in evidence.overlaps if here.issuperset(pair) for agent in pair}",
        "return {max(pair) for pair in evidence.overlaps if here.issuperset(pair)}",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_an_agent_whose_machine_is_alive_is_waited_for_though_it_is_silent",
        ),
    ),
    Mutant(
        "who had a topic is not waited for when it was made again",
        "audit/judgement/expectation.py",
        "{agent for topic in self.namesakes for agent in topic.agents}",
        "{agent for topic in self.topics for agent in topic.agents}",
        (
            f"{_JUDGEMENT}test_topic_judgement.py::test_who_had_a_topic_is_waited_for_when_it_was_made_again",
        ),
    ),
    Mutant(
        "a roster of retired hosts alone expects nobody",
        "audit/judgement/roster.py",
        "        return not self._expected\n",
        "        return not self._entries\n",
        (
            "tests/unit/audit/judgement/test_roster.py::"
            "test_a_roster_without_a_host_that_must_report_says_nothing",
        ),
    ),
    Mutant(
        "equal counts are enough, whatever records they are of",
        "audit/judgement/rules/equation.py",
        "    return sums.count, sums.bytes, sums.checksum\n",
        "    return sums.count, sums.bytes, 0\n",
        _EACH_RULE,
    ),
    Mutant(
        "a bucket is counted in the tiers that have counted anything of it",
        "audit/judgement/rules/equation.py",
        "        for place, x in sums.items()\n        if not (",
        "        for place, x in sums.items()\n        if (x is None or x.count) and not (",
        _EACH_RULE,
    ),
    Mutant(
        "a message that is missing between two others is nobody's",
        "audit/judgement/rules/sender_numbers.py",
        "if numbers.missing is not None and not _overcome(facts, key, start):",
        "if numbers.missing == numbers.last and not _overcome(facts, key, start):",
        ("tests/model/test_audit.py::test_faults_never_make_a_bucket_falsely_complete",),
    ),
    Mutant(
        "a delta of a bucket that is missing is not missed where numbers have no holes",
        "audit/judgement/rules/sender_numbers.py",
        "        if not tally.chained:\n",
        "        if not tally.chained and facts.evidence.senders[key].missing is not None:\n",
        _EACH_RULE,
    ),
    Mutant(
        "one number with two contents is one message",
        "audit/judgement/rules/sender_numbers.py",
        "        if touched or not _sealed_usably(facts, key, bucket):\n",
        "        if touched and not _sealed_usably(facts, key, bucket):\n",
        _EACH_RULE,
    ),
    Mutant(
        "seals of a copied state vouch for what the other one has",
        "audit/judgement/expectation.py",
        "        if cloned_at is None or seal.number < cloned_at:\n",
        "        if cloned_at is None or seal.number != cloned_at:\n",
        ("tests/unit/audit/judgement/test_hosts.py::test_seals_that_may_be_a_copys_do_not_count",),
    ),
    Mutant(
        "two counters of one partition confirm each other",
        "audit/judgement/counting_places.py",
        "        if len(newest) > 1:\n",
        "        if len(newest) > 2:\n",
        _EACH_RULE,
    ),
    Mutant(
        "what lay between an agent's two epochs was sealed by the new one",
        "audit/judgement/rules/epochs.py",
        "        if before and not (proven and untouched):\n",
        "        if before and not (proven or untouched):\n",
        _EACH_RULE,
    ),
    # These mutants concern hosts that are proven to have been healthy since a given moment.
    Mutant(
        "a host is proven by its seal of the moment's bucket, however long ago that is",
        "audit/judgement/host_proofs.py",
        "        self._needed = max(sum(self._first), due_until)\n",
        "        self._needed = sum(self._first)\n",
        ("tests/unit/audit/judgement/test_host_proofs.py::test_what_is_missing_is_said",),
    ),
    Mutant(
        "a seal behind the moment is proof of its bucket",
        "audit/judgement/host_proofs.py",
        "        if until < needed or self._now_ms < needed:\n",
        "        if until < self._since_ms or self._now_ms < needed:\n",
        ("tests/unit/audit/judgement/test_host_proofs.py::test_what_is_missing_is_said",),
    ),
    Mutant(
        "a seal of a clock that is ahead is proof",
        "audit/judgement/host_proofs.py",
        "        if until > self._now_ms + self._policy.lateness_ms:\n",
        "        if self._since_ms > self._now_ms + self._policy.lateness_ms:\n",
        ("tests/unit/audit/judgement/test_host_proofs.py::test_what_is_missing_is_said",),
    ),
    Mutant(
        "a bucket that is short without lateness only is no proof against the host",
        "audit/judgement/host_proofs.py",
        "        yield at_once.agent(agent, each)\n",
        "",
        ("tests/unit/audit/judgement/test_host_proofs.py::test_what_is_missing_is_said",),
    ),
    Mutant(
        "one of a host's newest agents proves all of them",
        "audit/judgement/host_proofs.py",
        "        for agent in state.agents:\n",
        "        for agent in state.agents[:1]:\n",
        (
            "tests/unit/audit/judgement/test_host_proofs.py::test_each_of_a_hosts_newest_agents_must_prove_it",
        ),
    ),
    # These mutants concern the question whether a topic is complete before a given time.
    Mutant(
        "buckets in which nobody counted anything are complete",
        "audit/judgement/completeness.py",
        "        for each in sorted(inside | set(self._grid)):\n",
        "        for each in sorted(inside):\n",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "a bucket that the end of the span cuts is left out",
        "audit/judgement/completeness.py",
        "for start in range(first, until_ms, size)]",
        "for start in range(first, until_ms - size + 1, size)]",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "a topic is complete by what a collector knew that stopped reading long ago",
        "audit/judgement/completeness.py",
        "        if self._now_ms - heard_ms > self._policy.silence_ms:\n",
        "        if not heard_ms:\n",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "a sender of any cluster shows that all clusters are read",
        "audit/judgement/completeness.py",
        "if key.tier in (Tier.AGENT, Tier.BROKER) and numbers.cluster == source.cluster\n",
        "if numbers.cluster\n",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "a topic of which the audit never heard lacks nothing",
        "audit/judgement/completeness.py",
        "    if not heard:\n        yield Completeness",
        "    if not heard:\n        question.name or Completeness",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "a topic is complete though the cluster of some of its hosts was never heard",
        "audit/judgement/completeness.py",
        "if is_asked and (cluster, topic) not in heard and policy",
        "if is_asked and not heard and policy",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "a topic of agents is complete though its counter stands still",
        "audit/judgement/rules/without_origin.py",
        "        return\n    yield from _unheard(facts, bucket)\n",
        "        return\n",
        (f"{_JUDGEMENT}test_completeness.py::{_MAY_STILL_COME}",),
    ),
    Mutant(
        "the counter of another cluster shows that a topic is empty",
        "audit/judgement/rules/without_origin.py",
        "            and (tier is not Tier.BROKER or numbers.cluster == facts.source.cluster)\n",
        "",
        (
            f"{_JUDGEMENT}test_completeness.py::"
            "test_a_topic_that_no_counter_reported_needs_a_counter_of_its_cluster",
        ),
    ),
    Mutant(
        "what was accepted in one bucket is accepted in every empty bucket",
        "audit/judgement/completeness.py",
        "            is_between = min(starts) < verdict.bucket < max(starts)\n",
        "            is_between = bool(starts)\n",
        (
            f"{_JUDGEMENT}test_completeness.py::"
            "test_another_finding_is_accepted_in_empty_buckets_only_between_accepted_ones",
        ),
    ),
    Mutant(
        "a loss that was accepted holds back the empty buckets before it",
        "audit/judgement/completeness.py",
        "            if not is_between and finding.name not in self._losses:\n",
        "            if not is_between:\n",
        (
            f"{_JUDGEMENT}test_completeness.py::"
            "test_an_accepted_loss_is_accepted_in_empty_buckets_too",
        ),
    ),
    Mutant(
        "a loss that was accepted holds back the empty buckets of the topic of rejects",
        "audit/judgement/completeness.py",
        "        topic, *parents = facts.related\n",
        "        topic, parents = facts.topic, ()\n",
        (
            f"{_JUDGEMENT}test_completeness.py::"
            "test_an_accepted_loss_is_accepted_in_the_empty_buckets_of_the_topic_of_rejects",
        ),
    ),
    Mutant(
        "a loss that was accepted after the span holds back its empty buckets",
        "audit/evidence/ledger_evidence.py",
        "accepted_ends(self._acceptances(number, end, storable(last + 1)), losses, end)",
        "[]",
        (
            "tests/unit/audit/reports/test_completeness_question.py::"
            "test_a_loss_that_was_accepted_after_the_span_is_accepted_in_empty_buckets",
        ),
    ),
    Mutant(
        "the collector does not know losses that were accepted after the hour",
        "audit/evidence/ledger_evidence.py",
        "acceptances=accepted, loss_acceptances=later,",
        "acceptances=accepted, loss_acceptances=[],",
        (
            "tests/unit/audit/collector/test_hours.py::"
            "test_a_loss_that_was_accepted_after_the_hour_does_not_hold_back_its_empty_buckets",
        ),
    ),
    Mutant(
        "whatever was accepted in a topic is accepted in the topic of its rejects",
        "audit/judgement/completeness.py",
        "            if name.finding in self._losses:\n",
        "            if name.finding:\n",
        (
            f"{_JUDGEMENT}test_completeness.py::"
            "test_only_losses_are_accepted_for_the_topic_of_rejects",
        ),
    ),
    Mutant(
        "a name is judged by its other meaning without a note",
        "audit/reports/completeness_question.py",
        "    if topic and cluster in known and name not in judged:\n",
        "    if not cluster:\n",
        (
            "tests/unit/audit/test_cli.py::"
            "test_a_name_that_may_mean_a_topic_that_was_never_heard_of_gets_a_note",
        ),
    ),
    # These mutants concern topics that were deleted and created again.
    Mutant(
        "a seal of a topic made again says nothing of the topic before",
        "audit/judgement/rules/topic_facts.py",
        "usable_seals(self._evidence, self._expectation.namesakes, agent)",
        "usable_seals(self._evidence, self._expectation.topics, agent)",
        (
            f"{_JUDGEMENT}rules/test_seals.py::test_a_seal_of_a_topic_made_again_is_one_of_the_topic_before",
        ),
    ),
    Mutant(
        "a last word on a topic is one on the topic that was made again, too",
        "audit/judgement/rules/seals.py",
        "    return not spoke or any(topic.seals.get(agent) for topic in facts.related)\n",
        "    return not spoke or bool(facts.seals.get(agent))\n",
        (
            f"{_JUDGEMENT}rules/test_seals.py::test_a_last_word_on_a_topic_is_none_on_the_one_that_was_made_again",
        ),
    ),
    Mutant(
        "the collector reads an audit topic on that was made again meanwhile",
        "audit/evidence/collection.py",
        "                if again or tp not in self._begins:\n",
        "                if tp not in self._begins:\n",
        (
            "tests/unit/audit/evidence/test_collection.py::"
            "test_an_audit_topic_made_again_and_longer_than_before_loses_no_head",
        ),
    ),
    Mutant(
        "the store's position holds for an audit topic that was made again",
        "audit/evidence/collection.py",
        "if known is None or (known.topic_id and topic_id and known.topic_id != topic_id):",
        "if known is None:",
        (
            "tests/unit/audit/evidence/test_collection.py::"
            "test_an_audit_topic_made_again_and_longer_than_before_loses_no_head",
        ),
    ),
    # These mutants concern the checksums by which the audit compares records.
    Mutant(
        "a record's hash is that of its file and its length",
        "audit/counts/checksum.py",
        "    return _chain(_chain(_file_hash(agent, file), first), length)\n",
        "    return _chain(_file_hash(agent, file), length)\n",
        ("tests/model/test_audit.py::test_a_loss_and_a_double_in_one_bucket_do_not_cancel",),
    ),
    # These mutants break the rule that no incomplete bucket is reported as complete.
    Mutant(
        "what was said before the messages that are still there cannot matter",
        "audit/judgement/rules/sender_numbers.py",
        "    if numbers.first > 1 and start < numbers.first_time_ms + facts.ahead_ms:\n",
        "    if numbers.first > 1 and start < numbers.first_time_ms - facts.ahead_ms:\n",
        (
            f"{_JUDGEMENT}rules/test_sender_numbers.py::test_event_times_are_ahead_by_the_larger_of_the_agents_bound_and_ours",
            "tests/model/test_audit.py::"
            "test_a_rebuild_from_an_expired_topic_is_never_falsely_complete",
        ),
    ),
    Mutant(
        "a later epoch of an agent overcomes what is missing of the one before",
        "audit/judgement/rules/sender_numbers.py",
        "return bool(later) and start >= min(later).sealed_until + facts.ahead_ms",
        "return bool(later)",
        _EACH_RULE,
    ),
    Mutant(
        "a bucket is over when our clock says so, however far ahead it is of all others",
        "audit/judgement/clocks.py",
        "    return now_ms - ours_ahead_ms(evidence, policy)\n",
        "    return now_ms\n",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_a_bucket_is_not_taken_for_over_by_a_clock_that_is_ahead",
        ),
    ),
    Mutant(
        "blocks of buckets that nobody has judged count as complete",
        "audit/collector/judge.py",
        "complete_until=None if unjudged else look.topic.complete_until()",
        "complete_until=look.topic.complete_until()",
        (
            "tests/unit/audit/collector/test_judge.py::"
            "test_what_was_not_judged_yet_is_never_called_complete",
        ),
    ),
    Mutant(
        "a host is called what the message with the greatest clock says",
        "audit/evidence/sender_rows.py",
        """    WHERE (excluded.epoch, excluded.number, excluded.time, excluded.host)
    > (epoch, number, time, host)""",
        "    WHERE (excluded.time, excluded.host) > (time, host)",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_a_host_is_called_what_its_newest_message_says_whatever_its_clock_said",
        ),
    ),
    Mutant(
        "the ledger keeps of a bucket's chain the last link alone",
        "audit/evidence/tallies.py",
        "_SUMS: Final = [COUNT, BYTES, CHECKSUM, REJECTS, REPEATS, LINKS]",
        "_SUMS: Final = [COUNT, BYTES, CHECKSUM, REJECTS, REPEATS]",
        (
            "tests/model/test_audit_site.py::"
            "test_collectors_at_different_speeds_say_the_same_in_the_end",
        ),
    ),
    Mutant(
        "at the moment at which a bucket is due its sums are not compared",
        "audit/judgement/topic_judgement.py",
        "if tallies and self._facts.now_ms >= self._facts.due(bucket):",
        "if tallies and self._facts.now_ms > self._facts.due(bucket):",
        (
            "tests/unit/audit/judgement/test_topic_judgement.py::"
            "test_at_the_moment_at_which_it_is_due_a_bucket_is_judged",
        ),
    ),
    Mutant(
        "a missing number is made up for by a seal of its own epoch",
        "audit/judgement/rules/sender_numbers.py",
        "if x.epoch > key.epoch]",
        "if x.epoch >= key.epoch]",
        (
            "tests/unit/audit/judgement/rules/test_sender_numbers.py::"
            "test_a_seal_of_the_same_epoch_makes_up_for_no_missing_number",
        ),
    ),
    Mutant(
        "a later epoch makes up for a missing number up to its first seal",
        "audit/judgement/rules/sender_numbers.py",
        "start >= min(later).sealed_until + facts.ahead_ms",
        "start >= min(later).sealed_until",
        (
            "tests/unit/audit/judgement/rules/test_sender_numbers.py::"
            "test_only_an_agents_later_epoch_makes_up_for_a_missing_number",
        ),
    ),
    Mutant(
        "a seal that is too early proves a bucket beside a copy",
        "audit/judgement/rules/sender_numbers.py",
        "any(seal.vouched_until >= facts.due(bucket) for seal in seals)",
        "bool(seals)",
        (
            "tests/unit/audit/judgement/rules/test_sender_numbers.py::"
            "test_a_copy_that_runs_leaves_complete_what_was_sealed_before",
        ),
    ),
    Mutant(
        "what a copy touched is proven by a seal of before",
        "audit/judgement/rules/sender_numbers.py",
        "        if touched or not _sealed_usably(facts, key, bucket):",
        "        if not _sealed_usably(facts, key, bucket):",
        (
            "tests/unit/audit/judgement/rules/test_sender_numbers.py::"
            "test_a_copy_that_runs_leaves_complete_what_was_sealed_before",
        ),
    ),
    Mutant(
        "a counter's copy throws every bucket into doubt",
        "audit/judgement/rules/sender_numbers.py",
        "    if key.tier is not Tier.AGENT:\n        return True\n",
        "    if key.tier is not Tier.AGENT:\n        return False\n",
        (
            "tests/unit/audit/judgement/rules/test_sender_numbers.py::"
            "test_a_counters_copy_leaves_complete_what_it_did_not_touch",
        ),
    ),
    Mutant(
        "a gap of any counter explains what a place lacks",
        "audit/judgement/rules/equation.py",
        "    gaps = [note for note in facts.topic.gaps if note.sender in senders]\n",
        "    gaps = list(facts.topic.gaps)\n",
        (
            "tests/unit/audit/judgement/rules/test_equation.py::"
            "test_a_gap_is_no_reason_where_another_tier_is_short",
        ),
    ),
    # These mutants concern the epochs of senders. A sender begins a new epoch if its state is new
    # or was restored from a copy.
    Mutant(
        "an epoch of a counter is added to the one that it replaces",
        "audit/judgement/rules/equation.py",
        "sums[counting.place] = added(tallies, counting.senders)",
        "names = {x[:2] for x in counting.senders}\n"
        "            keys = [x for x in tallies if x[:2] in names]\n"
        "            sums[counting.place] = added(tallies, keys)",
        (
            f"{_JUDGEMENT}test_counting_places.py::test_a_higher_epoch_of_a_counter_replaces_the_lower",
        ),
    ),
    Mutant(
        "an epoch of an agent replaces the one before",
        "audit/judgement/rules/equation.py",
        '            sums[Place(tier, "")] = added(tallies, keys)\n',
        '            sums[Place(tier, "")] = added(tallies, sorted(keys)[-1:])\n',
        (f"{_JUDGEMENT}rules/test_epochs.py::test_an_agents_new_epoch_adds",),
    ),
    Mutant(
        "a counter that is replaced in some partitions counts in all of them",
        "audit/judgement/counting_places.py",
        "        if key in current and key in replaced:\n",
        "        if key in replaced and key not in current:\n",
        _EACH_RULE,
    ),
    Mutant(
        "an agent whose first epoch is gone began with the second",
        "audit/judgement/rules/epochs.py",
        "    if epochs and epochs[0].epoch > 1:",
        "    if epochs and epochs[0].epoch > 2:",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::"
            "test_an_epoch_before_the_first_that_is_there_has_left_no_trace",
        ),
    ),
    Mutant(
        "an epoch's last seal proves what it touched behind that",
        "audit/judgement/rules/epochs.py",
        "(until and tallies[old].last <= until[-1].at)",
        "bool(until)",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::"
            "test_what_an_epoch_touched_behind_its_last_seal_is_not_proven_by_it",
        ),
    ),
    Mutant(
        "an epoch is proven by its first seal, not by its last",
        "audit/judgement/rules/epochs.py",
        "bool(until) and until[-1].vouched_until >=",
        "bool(until) and until[0].vouched_until >=",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::"
            "test_what_an_epoch_touched_behind_its_last_seal_is_not_proven_by_it",
        ),
    ),
    Mutant(
        "epochs follow each other as they were heard",
        "audit/judgement/rules/topic_facts.py",
        "    for key in sorted(x for x in evidence.senders if x.tier is Tier.AGENT):",
        "    for key in (x for x in evidence.senders if x.tier is Tier.AGENT):",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::test_epochs_are_in_order_whichever_was_heard_first",
        ),
    ),
    # These mutants concern the seals that the agent sends.
    Mutant(
        "a topic whose source was taken out of the settings is not sealed any more",
        "agent/cluster/topics.py",
        "        for topic in self._former:\n            rejected",
        "        for topic in self._former & {x.data.topic for x in destinations}:\n"
        "            rejected",
        ("tests/unit/agent/loop/test_loop.py::test_a_topic_without_a_source_is_sealed_on",),
    ),
    Mutant(
        "a seal vouches for what was read, and not only for what is acknowledged",
        "agent/accounts/sealing.py",
        "        if is_in_doubt or tracked.position < target:\n",
        "        if is_in_doubt or max(tracked.position, tracked.size) < target:\n",
        (
            "tests/unit/agent/accounts/test_sealing.py::"
            "test_a_seal_waits_for_every_byte_that_lay_there",
            "tests/unit/agent/loop/test_loop.py::test_a_seal_vouches_only_for_what_is_acknowledged",
        ),
    ),
    Mutant(
        "a seal names the moment behind its look",
        "agent/loop/loop.py",
        """        noted = self._accounts.begin_seal(now, now_ms, changes)
        self.tracker.reconcile(now, now_ms)
""",
        """        self.tracker.reconcile(now, now_ms)
        noted = self._accounts.begin_seal(now, self._clock.time_ms(), changes)
""",
        ("tests/unit/agent/test_seals.py::test_a_seal_names_the_moment_before_its_look",),
    ),
    Mutant(
        "a seal overtakes the deltas of what it vouches for",
        "agent/accounts/accounts.py",
        """        self._deltas.cut(now_ms, changes)
        self._noted = [noted for noted in self._noted if noted not in ready]
""",
        """        self._noted = [noted for noted in self._noted if noted not in ready]
""",
        (
            "tests/unit/agent/test_seals.py::"
            "test_what_a_seal_vouches_for_is_in_deltas_of_lower_numbers",
        ),
    ),
    Mutant(
        "what was noted of a file holds although another one lies there by now",
        "agent/accounts/sealing.py",
        "    if doubts != noted.doubts:\n        return True\n",
        "    if doubts < noted.doubts:\n        return True\n",
        ("tests/unit/agent/accounts/test_sealing.py::test_nothing_is_said_of_a_file_in_doubt",),
    ),
    Mutant(
        "an unreadable file holds no seal back",
        "agent/accounts/accounts.py",
        """            if sealing.held_back_by(topic, tracker.unreadable):
                continue
            noted""",
        """            noted""",
        (
            "tests/unit/agent/loop/test_loop.py::"
            "test_an_unreadable_file_is_named_and_holds_the_seal_back",
        ),
    ),
    # These mutants concern repeated and rejected records.
    Mutant(
        "repeats are held against whoever saw them",
        "audit/judgement/rules/equation.py",
        "    return sums.count, sums.bytes, sums.checksum\n",
        "    return sums.count + sums.repeats, sums.bytes, sums.checksum\n",
        (f"{_JUDGEMENT}rules/test_equation.py::test_repeats_are_shown_and_are_no_fault",),
    ),
    Mutant(
        "what the loader rejected has not arrived",
        "audit/judgement/rules/equation.py",
        "    return sums.count, sums.bytes, sums.checksum\n",
        "    return sums.count - sums.rejects, sums.bytes, sums.checksum\n",
        (f"{_JUDGEMENT}rules/test_equation.py::test_the_loaders_rejects_count_as_arrived",),
    ),
    # These mutants concern last words, the final seals of agents that leave.
    Mutant(
        "the last word of a host that is still expected is proof for ever",
        "audit/judgement/rules/seals.py",
        "    if not newest.final or not facts.expectation.is_gone(agent):\n",
        "    if not newest.final:\n",
        (
            f"{_JUDGEMENT}rules/test_seals.py::test_the_last_word_of_an_expected_host_is_a_seal_like_any_other",
        ),
    ),
    Mutant(
        "a last word is said although bytes are under way",
        "agent/accounts/leaving.py",
        "        at_rest = self.is_asked and sealing.is_complete(noted, files)\n",
        "        at_rest = self.is_asked\n",
        (
            "tests/unit/agent/test_leaving.py::"
            "test_it_has_left_only_when_all_topics_rest_at_one_look",
            "tests/unit/agent/accounts/test_leaving.py::"
            "test_only_a_topic_at_rest_gets_its_last_word",
        ),
    ),
    Mutant(
        "a last word of before stands over what cannot be read",
        "agent/accounts/accounts.py",
        "                self.leaving.disturbed(topic)\n            else:\n",
        "                continue\n            else:\n",
        ("tests/unit/agent/test_leaving.py",),
    ),
    Mutant(
        "an agent that runs again leaves its last word standing",
        "agent/accounts/leaving.py",
        "again = {topic: word for topic, word in self.left.items() if topic not in self.done}",
        "again = {topic: word for topic, word in self.left.items() if topic in self._at_rest}",
        (
            "tests/unit/agent/test_leaving.py::"
            "test_no_last_word_of_before_stands_over_what_cannot_be_read",
        ),
    ),
    # These mutants concern lines that two agents of one host may both have delivered.
    Mutant(
        "what an agent counts before its first seal is not in doubt",
        "audit/judgement/rules/doublings.py",
        "        at = (before[-1].epoch, before[-1].at) if before else _BEGIN\n",
        "        at = (before or seals)[-1][:2] if before or seals else _BEGIN\n",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_what_a_new_agent_counted_while_it_read_again_is_in_doubt",
            "tests/model/test_audit_agents.py::"
            "test_no_complete_bucket_has_a_line_that_was_delivered_before",
        ),
    ),
    Mutant(
        "a doubt ends with any seal of the new agent",
        "audit/judgement/rules/doublings.py",
        "later = (x for x in seals if x[:2] > begin and x.sealed_until > reread.until_ms)",
        "later = (x for x in seals if x[:2] > begin)",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_without_a_seal_that_vouches_later_buckets_stay_in_doubt",
        ),
    ),
    Mutant(
        "a doubt never ends",
        "audit/judgement/rules/doublings.py",
        "            end = next((x[:2] for x in later), None)\n",
        "            end = next((x[:2] for x in later if x.final), None)\n",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_what_it_counts_behind_its_first_seal_is_not_in_doubt",
        ),
    ),
    Mutant(
        "a seal behind bytes that were set apart ends a doubt",
        "audit/judgement/rules/doublings.py",
        "            if end is not None and self._sets_apart(agent, begin, end):\n",
        "            if end is not None and self._sets_apart(agent, end, begin):\n",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_a_seal_behind_bytes_that_were_set_apart_vouches_for_nothing",
        ),
    ),
    Mutant(
        "an agent whose state is brought back has read nothing of the later one",
        "audit/evidence/rereading.py",
        "        if index + 1 < len(readers):\n",
        "        if 0 < index < len(readers) - 1:\n",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_a_state_that_is_brought_back_reads_again_what_the_new_agent_had",
        ),
    ),
    Mutant(
        "an id that took an older content's place holds a doubt open",
        "audit/evidence/rereading.py",
        "counting = [x for x in others if x.replaced_ms is None or x.replaced_ms <= heard_ms]",
        "counting = others",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::test_content_behind_what_was_seen_later_is_newer",
        ),
    ),
    Mutant(
        "every id behind another one is of newer lines",
        "audit/evidence/rereading.py",
        "counting = [x for x in others if x.replaced_ms is None or x.replaced_ms <= heard_ms]",
        "counting = [x for x in others if x.replaced_ms is None]",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_content_of_while_the_other_one_was_there_is_in_doubt",
        ),
    ),
    # These mutants concern the times in seals, and the clock of the audit itself.
    Mutant(
        "a seal vouches for what came after it was taken",
        "audit/evidence/evidence.py",
        "        return min(self.sealed_until, self.taken_ms)\n",
        "        return self.sealed_until\n",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_a_seal_vouches_for_nothing_that_came_after_it_was_taken",
        ),
    ),
    # These mutants concern the decoding of batches that were fetched.
    Mutant(
        "the records of a topic made again are read before its id is known",
        "audit/evidence/collection.py",
        "            self._refresh_at = now\n",
        "            pass\n",
        (
            "tests/unit/audit/evidence/test_collection.py::"
            "test_offsets_of_an_audit_topic_made_again_are_no_offsets_of_the_old_one",
        ),
    ),
    Mutant(
        "an answer without a topic id makes the collector forget the id",
        "audit/evidence/collection.py",
        "_id(found[name]) or self._known_id(name, known)",
        "_id(found[name])",
        (
            "tests/unit/audit/evidence/test_collection.py::"
            "test_an_answer_without_a_topic_id_does_not_hide_a_new_topic",
        ),
    ),
    Mutant(
        "records before the wanted offset are taken",
        "audit/evidence/collection.py",
        "                if offset >= begin and value is not None:\n",
        "                if value is not None:\n",
        ("tests/unit/audit/topic/test_topic.py::test_the_collector_leaves_out_what_is_not_wanted",),
    ),
    Mutant(
        "the marker of a transaction is counted as a record",
        "audit/topic/topic.py",
        'np.where(attributes & CONTROL != 0, 0, taken.headers["count"])',
        'taken.headers["count"]',
        ("tests/unit/audit/topic/test_topic.py::test_markers_of_transactions_are_no_records",),
    ),
    Mutant(
        "the time of the broker is the time of the sender",
        "audit/evidence/collection.py",
        "(None, time_ms) if is_appended else (time_ms, None)",
        "(time_ms, None)",
        (
            "tests/unit/audit/topic/test_topic.py::"
            "test_the_time_of_the_broker_is_no_time_of_the_sender",
        ),
    ),
    Mutant(
        "only the bytes of waiting batches are limited, and not their records",
        "audit/evidence/collection.py",
        "self._records >= WAITING_RECORDS_MAX or",
        "",
        ("tests/unit/audit/topic/test_topic.py::test_only_a_limited_number_of_records_waits",),
    ),
    Mutant(
        "records behind a damaged batch are stored, and the batch is never read",
        "audit/evidence/collection.py",
        "        self._begins[tp] = offset\n",
        "",
        (
            "tests/unit/audit/evidence/test_collection.py::"
            "test_a_damaged_batch_stops_only_its_partition",
        ),
    ),
    Mutant(
        "the base offset of a damaged batch is trusted",
        "audit/topic/topic.py",
        "yield TopicBatch(part.tp, begin, bytes(raw))",
        "yield TopicBatch(part.tp, max(begin, int.from_bytes(raw[:8])), bytes(raw))",
        ("tests/unit/audit/evidence/test_collection.py::test_a_damaged_header_moves_no_position",),
    ),
    Mutant(
        "a collector has caught up although a partition is blocked",
        "audit/evidence/collection.py",
        "self.has_caught_up = is_whole and not self.blocked",
        "self.has_caught_up = is_whole",
        (
            "tests/unit/audit/evidence/test_collection.py::"
            "test_a_partition_that_the_brokers_cannot_send_now_is_named",
        ),
    ),
    Mutant(
        "a damaged batch is never tried again",
        "audit/evidence/collection.py",
        "                self._fetcher.seek(tp, self._begins[tp])\n\n    def _known_id",
        "\n    def _known_id",
        ("tests/unit/audit/evidence/test_collection.py::test_a_damaged_batch_is_tried_again",),
    ),
    Mutant(
        "a seal was taken when we read it, and not when the broker had it",
        "audit/evidence/hearing.py",
        "if self.appended_ms is None else min(self.taken_ms, self.appended_ms)",
        "if self.appended_ms is None else max(self.taken_ms, self.appended_ms)",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_where_the_broker_writes_its_clock_no_seal_vouches_for_what_came_later",
        ),
    ),
    # These mutants concern senders whose clocks are wrong.
    Mutant(
        "of the windows within a transaction, only the last one counts",
        "audit/evidence/sender_columns.py",
        "            del readings[:-WINDOWS_KEPT]\n",
        "            del readings[:-1]\n",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_readings_do_not_depend_on_how_many_records_come_at_a_time",
        ),
    ),
    Mutant(
        "a sender is heard when its clock says so, however far ahead that is",
        "audit/evidence/sender_columns.py",
        "= np.minimum(heard_ms[self.places.at], self.places.taken_ms)\n",
        "= heard_ms[self.places.at]\n",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_a_counter_whose_clock_is_ahead_is_not_heard_before_it_speaks",
            "tests/unit/audit/judgement/test_clocks.py::test_a_host_that_died_with_its_clock_ahead_is_silent",
        ),
    ),
    Mutant(
        "what lay between two epochs ends where the new one's clock says, though it is behind",
        "audit/judgement/rules/epochs.py",
        "bucket[0] <= max(since[0].sealed_until, resumed_ms)",
        "bucket[0] <= since[0].sealed_until",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_what_lay_between_epochs_is_unknown_up_to_when_the_new_ones_seal_came",
        ),
    ),
    Mutant(
        "a replaced agent had read what was written before its clock was set back",
        "audit/judgement/newest_agents.py",
        "return min(began) if min(began) > heard_ms else heard_ms + silence_ms",
        "return min(began)",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_what_a_replaced_agent_had_unread_was_written_before_the_next_began",
        ),
    ),
    Mutant(
        "the clock alone says which of two agents delivered a line first",
        "audit/judgement/rules/doublings.py",
        "        if self._meets_its_group(agent, by_agent):\n",
        "        if len(by_agent) > 2 and self._meets_its_group(agent, by_agent):\n",
        (
            "tests/model/test_audit_agents.py::"
            "test_a_clock_set_back_while_two_agents_run_hides_no_line_that_has_a_time",
        ),
    ),
    # These mutants concern messages that newer versions of Skidway have sent.
    Mutant(
        "messages of a newer version that nobody can read are a remark",
        "audit/judgement/topic_judgement.py",
        "yield Finding(Status.UNKNOWN, words, Cause.NEWER_VERSION)",
        "yield Finding(Status.COMPLETE, words, Cause.NEWER_VERSION)",
        (
            "tests/unit/audit/judgement/test_unread.py::"
            "test_what_a_newer_version_said_leaves_nothing_complete",
        ),
    ),
    Mutant(
        "unread messages of a newer version are passed over like what is no message",
        "audit/evidence/ledger_rows.py",
        """            self._take_unread(error)
            return False
        except""",
        """            _log.warning("message_refused", reason=str(error))
            return True
        except""",
        (
            "tests/unit/audit/judgement/test_unread.py::"
            "test_what_a_newer_version_said_leaves_nothing_complete",
        ),
    ),
    Mutant(
        "a version that has the schema reads from the last unread message on",
        "audit/evidence/ledger.py",
        '"INSERT OR IGNORE INTO unread_from VALUES',
        '"INSERT OR REPLACE INTO unread_from VALUES',
        (
            "tests/unit/audit/judgement/test_unread.py::"
            "test_a_version_that_has_the_schema_reads_from_there_on",
        ),
    ),
    # These mutants concern lines that an agent declared lost.
    Mutant(
        "a loss counts where lines were counted only",
        "audit/judgement/topic_judgement.py",
        "tallies.keys() | lossy)\n",
        "tallies.keys())\n",
        (
            "tests/unit/audit/judgement/test_standing.py::test_a_loss_is_listed_where_no_line_arrived",
        ),
    ),
    Mutant(
        "the losses of an agent that nobody waits for are nobody's",
        "audit/judgement/topic_judgement.py",
        "        agents += [x for x in self._losers(judged, bucket) if x.findings]\n",
        "",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::test_whoever_is_waited_for_a_loss_stays",
        ),
    ),
    Mutant(
        "a lost line is never older than those that came between",
        "audit/judgement/rules/losses.py",
        "inside = _touched_between(tallies, agent, lost.note, lost.prior)",
        "inside = begin is None",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_a_loss_may_belong_to_all_that_was_touched_since_the_seal",
        ),
    ),
    Mutant(
        "a loss without an end may be of any bucket, however long sealed",
        "audit/judgement/rules/losses.py",
        "    if begin is None and prior is not None:\n",
        "    if begin is None and prior is not None and note.loss.end is not None:\n",
        (
            f"{_JUDGEMENT}rules/test_losses.py::test_an_open_ended_loss_leaves_what_was_sealed_before_it_complete",
        ),
    ),
    Mutant(
        "a loss of some buckets is one of all before them",
        "audit/judgement/rules/losses.py",
        "inside = (begin is None or start + size > begin) and start <= end",
        "inside = start <= end",
        (
            f"{_JUDGEMENT}rules/test_losses.py::test_an_open_ended_loss_leaves_what_was_sealed_before_it_complete",
        ),
    ),
    Mutant(
        "a loss of some buckets is one of all behind them",
        "audit/judgement/rules/losses.py",
        "inside = (begin is None or start + size > begin) and start <= end",
        "inside = begin is None or start + size > begin or start > end",
        (
            f"{_JUDGEMENT}rules/test_losses.py::test_a_loss_of_other_buckets_leaves_this_one_complete",
        ),
    ),
    Mutant(
        "a loss belongs to nothing that its own delta touched",
        "audit/judgement/rules/losses.py",
        "(key.epoch, tally.first) <= (note.epoch, note.number)",
        "(key.epoch, tally.first) < (note.epoch, note.number)",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_a_loss_may_belong_to_all_that_was_touched_since_the_seal",
        ),
    ),
    Mutant(
        "a loss belongs to all that anybody touched since the seal",
        "audit/judgement/rules/losses.py",
        "        if key[:2] == (Tier.AGENT, str(agent))\n",
        "",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_a_loss_belongs_to_nothing_that_its_agent_did_not_touch_since_the_seal",
        ),
    ),
    Mutant(
        "a loss ends where the last seal was, also where it was declared later",
        "audit/judgement/rules/losses.py",
        "max(note.time_ms, prior.sealed_until if prior is not None else note.time_ms)",
        "prior.sealed_until if prior is not None else note.time_ms",
        (
            "tests/unit/audit/judgement/rules/test_losses.py::"
            "test_a_loss_reaches_up_to_the_greatest_time_that_the_clock_said",
        ),
    ),
    Mutant(
        "a loss reaches back to the agent's first seal",
        "audit/judgement/rules/losses.py",
        "prior = before[-1] if before else None",
        "prior = before[0] if before else None",
        (
            "tests/unit/audit/judgement/rules/test_losses.py::"
            "test_an_open_ended_loss_leaves_what_was_sealed_before_it_complete",
        ),
    ),
    Mutant(
        "a loss at the begin of a window is in no window",
        "audit/judgement/topic_judgement.py",
        "for x in self._facts.topic.lossy if begin <= x[0] < end}",
        "for x in self._facts.topic.lossy if begin < x[0] < end}",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_a_loss_is_listed_in_the_window_that_has_its_bucket",
        ),
    ),
    # These mutants concern findings that a person has accepted.
    Mutant(
        "an acceptance leaves out the findings of agents whose lines are not lost",
        "audit/judgement/verdicts_of_agents.py",
        "np.flatnonzero(self._statuses() > Status.COMPLETE)",
        "np.flatnonzero(self._statuses() > Status.UNKNOWN)",
        (
            "tests/unit/audit/judgement/test_topic_judgement.py::"
            "test_each_rule_applies_to_buckets_that_are_judged_by_columns",
        ),
    ),
    Mutant(
        "an acceptance covers whatever is found in its bucket later",
        "audit/judgement/topic_judgement.py",
        "replace(x, acceptance=accepted.get((agent, x.name))) if accepted else x for x in ordered",
        "replace(x, acceptance=next(iter(accepted.values()))) if accepted else x for x in ordered",
        ("tests/unit/audit/topic/test_decisions.py::test_what_comes_later_is_not_covered",),
    ),
    Mutant(
        "an acceptance covers every finding of the same words",
        "audit/judgement/verdict.py",
        "        return self.key or self.reason\n",
        "        return self.reason\n",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_another_difference_of_the_same_words_is_not_covered",
        ),
    ),
    Mutant(
        "what was accepted is complete",
        "audit/judgement/topic_judgement.py",
        "max([x.status for x in marked], default=Status.COMPLETE)",
        "max([x.status for x in marked if not x.acceptance], default=Status.COMPLETE)",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_an_accepted_loss_stays_a_loss_and_holds_nothing_back",
        ),
    ),
    Mutant(
        "a decision holds again when it comes behind its revocation",
        "audit/topic/decisions.py",
        "    return [x for x in said if not isinstance(x, Revocation) and x.id not in revoked]\n",
        "    return [\n"
        "        x\n"
        "        for x in said\n"
        "        if not isinstance(x, Revocation)\n"
        "        and (x.id not in revoked or said[-1] == x)\n"
        "    ]\n",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_order_and_repetition_of_decisions_do_not_matter",
        ),
    ),
    Mutant(
        "a bucket that is too young is accepted before all of it is known",
        "audit/judgement/acceptances.py",
        "        if verdict.due and (names := unaccepted(verdict))\n",
        "        if (names := unaccepted(verdict))\n",
        ("tests/unit/audit/topic/test_decisions.py::test_what_is_not_there_cannot_be_accepted",),
    ),
    Mutant(
        "a doubt of lines is accepted with those that come later",
        "audit/judgement/rules/topic_facts.py",
        "    counted = [key for key in tallies if key.tier is Tier.AGENT]\n",
        "    counted = [key for key in tallies if key.tier is not Tier.AGENT]\n",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_of_lines_in_doubt_the_acceptance_is_of_those_that_were_there",
        ),
    ),
    # These mutants concern places (clusters or outputs) that an operator has retired.
    Mutant(
        "the silence of retired places is proof where nobody else can confirm a count",
        "audit/judgement/rules/equation.py",
        "yield Finding(Status.UNKNOWN, words, Cause.RETIRED, name)",
        "yield Finding(Status.COMPLETE, words, Cause.RETIRED, name)",
        (
            "tests/unit/audit/topic/test_decisions.py::test_a_count_that_nothing_confirms_is_not_complete",
        ),
    ),
    Mutant(
        "nobody waits for a newer output to take a topic of a retired one",
        "audit/judgement/rules/equation.py",
        "yield Finding(Status.INCOMPLETE, words, Cause.RETIRED, name)",
        "yield Finding(Status.COMPLETE, words, Cause.RETIRED, name)",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_a_topic_that_no_newer_output_has_yet_waits_for_one",
        ),
    ),
    Mutant(
        "a place that is retired is waited for all the same",
        "audit/judgement/counting_places.py",
        "if key.tier in gone and not place_of(key, evidence, retired).is_retired",
        "if key.tier in gone",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_a_topic_that_no_newer_output_has_yet_waits_for_one",
        ),
    ),
    Mutant(
        "what a retired place lacks is held against it",
        "audit/judgement/rules/equation.py",
        "    return Status.COMPLETE if place.is_retired else Status.INCOMPLETE\n",
        "    return Status.OPEN if place.is_retired else Status.INCOMPLETE\n",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_an_output_that_is_retired_keeps_nothing_incomplete",
        ),
    ),
    Mutant(
        "what a retired place has counted is not compared any more",
        "audit/judgement/rules/equation.py",
        "        for place, x in sums.items()\n        if not (",
        "        for place, x in sums.items()\n        if not place.is_retired and not (",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_an_output_that_is_retired_keeps_nothing_incomplete",
        ),
    ),
    Mutant(
        "whoever is called like a retired place is retired, too",
        "audit/judgement/retired_places.py",
        'return tier is Tier.HDFS and (tier, name.rpartition("/")[0]) in self._named',
        "return tier is Tier.HDFS and any(name.startswith(each) for _, each in self._named)",
        ("tests/unit/audit/topic/test_decisions.py::test_other_places_are_not_retired",),
    ),
    Mutant(
        "an agent's broken chain is a remark where its cluster is retired",
        "audit/judgement/rules/sender_numbers.py",
        "    if key.tier is Tier.AGENT or key not in facts.evidence.senders:",
        "    if key not in facts.evidence.senders:",
        (
            "tests/unit/audit/topic/test_decisions.py::test_a_broken_chain_of_a_retired_place_is_a_remark",
        ),
    ),
    Mutant(
        "a broken chain of a retired place keeps a bucket unknown",
        "audit/judgement/rules/sender_numbers.py",
        "            yield _remark(found) if _is_retired(facts, key) else found",
        "            yield found",
        (
            "tests/unit/audit/topic/test_decisions.py::test_a_broken_chain_of_a_retired_place_is_a_remark",
        ),
    ),
    Mutant(
        "a retired counter that is short holds back what has no origin",
        "audit/judgement/rules/equation.py",
        "    known.sort(key=lambda each: each[0].is_retired)  # retired places come last\n",
        "",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_origin_a_retired_counter_that_is_short_holds_nothing_back",
        ),
    ),
    # These mutants break the rule that losses are published at once.
    Mutant(
        "a loss is told once its bucket is due",
        "audit/judgement/verdict.py",
        "return residue is Status.LOST or (self.due and residue is not Status.COMPLETE)",
        "return self.due and residue is not Status.COMPLETE",
        (
            "tests/unit/audit/topic/test_decisions.py::test_a_lost_bucket_that_is_young_is_told_at_once",
        ),
    ),
    Mutant(
        "a loss is told without its path",
        "audit/judgement/rules/losses.py",
        'path = topic.paths.get((note.loss.agent, note.loss.file), "")',
        'path = topic.paths.get((note.loss.file, note.loss.agent), "")',
        (f"{_JUDGEMENT}rules/test_losses.py::test_a_loss_is_told_by_its_host_and_path",),
    ),
    # These mutants concern how late a line may be, and how far its event time may be ahead of the
    # clock. Both the audit and the agents have such limits.
    Mutant(
        "a loss reaches back by the agent's lateness, though ours is larger",
        "audit/judgement/rules/losses.py",
        "        begin -= max(facts.policy.lateness_ms, said.lateness_ms)\n",
        "        begin -= said.lateness_ms or facts.policy.lateness_ms\n",
        (
            f"{_JUDGEMENT}rules/test_losses.py::test_a_loss_reaches_back_by_the_larger_of_the_agents_lateness_and_ours",
        ),
    ),
    Mutant(
        "event times are ahead by our bound, though an agent's is larger",
        "audit/judgement/rules/topic_facts.py",
        "self.ahead_ms = max(policy.ahead_ms, max(said, default=0))",
        "self.ahead_ms = min(policy.ahead_ms, max(said, default=policy.ahead_ms))",
        (
            f"{_JUDGEMENT}rules/test_sender_numbers.py::test_event_times_are_ahead_by_the_larger_of_the_agents_bound_and_ours",
        ),
    ),
    Mutant(
        "a loss begins with the last seal, and not with its bucket",
        "agent/accounts/accounts.py",
        "return None if sealed_until is None else self._bucket(sealed_until)",
        "return None if sealed_until is None else sealed_until",
        (
            "tests/unit/agent/accounts/test_bounds.py::"
            "test_a_loss_begins_with_the_bucket_of_the_last_seal",
        ),
    ),
    # These mutants concern records without an origin.
    Mutant(
        "records without an origin need a seal",
        "audit/judgement/topic_judgement.py",
        "        if agent == NO_AGENT or Tier.AGENT not in self._facts.tiers:\n",
        "        if Tier.AGENT not in self._facts.tiers:\n",
        (
            f"{_JUDGEMENT}rules/test_without_origin.py::test_records_without_origin_are_audited_from_the_broker_on",
        ),
    ),
    Mutant(
        "records without an origin are complete though their counter stands still",
        "audit/judgement/rules/without_origin.py",
        "        if seen < due:\n",
        "        if seen < bucket[0]:\n",
        (
            f"{_JUDGEMENT}rules/test_without_origin.py::test_without_origin_a_bucket_waits_for_its_counter",
        ),
    ),
    Mutant(
        "a gap in a log leaves records without an origin complete",
        "audit/judgement/rules/without_origin.py",
        "if _is_current(facts, note.sender) and bucket[0] < note.time_ms + facts.ahead_ms:",
        "if _is_current(facts, note.sender) and bucket[0] + bucket[1] < note.time_ms:",
        (
            f"{_JUDGEMENT}rules/test_without_origin.py::test_without_origin_a_late_beginning_or_a_gap_leaves_it_unknown",
        ),
    ),
    Mutant(
        "records without origin are not compared",
        "audit/judgement/rules/equation.py",
        "        if not (agent == NO_AGENT and place.tier is Tier.AGENT)\n",
        "        if agent != NO_AGENT\n",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::test_records_without_origin_are_compared_too",
        ),
    ),
    Mutant(
        "where no broker is counted nobody need have been heard",
        "audit/judgement/rules/without_origin.py",
        "        if tier in facts.tiers and not facts.retired.holds_tier(tier):",
        "        if not facts.retired.holds_tier(tier):",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_origin_and_a_broker_tier_the_mirrors_counter_is_waited_for",
        ),
    ),
    Mutant(
        "a retired tier that never counted is the one that must have been heard",
        "audit/judgement/rules/without_origin.py",
        "        if tier in facts.tiers and not facts.retired.holds_tier(tier):",
        "        if tier in facts.tiers:",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_origin_the_counter_behind_a_retired_one_is_waited_for",
        ),
    ),
    Mutant(
        "where all counters are retired nobody need have been heard",
        "audit/judgement/rules/without_origin.py",
        "    return tuple(sorted(counters, key=lambda x: facts.evidence.heard_ms(x[:2]))[-1:])",
        "    return tuple(counters[:0])",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_origin_retired_counters_prove_nothing_by_being_silent",
        ),
    ),
    Mutant(
        "a partition that was counted from its second record on was counted from its start",
        "audit/judgement/rules/without_origin.py",
        "if covered.first > 0]",
        "if covered.first > 1]",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_origin_a_late_beginning_or_a_gap_touches_no_later_bucket",
        ),
    ),
    Mutant(
        "a gap touches no bucket that is ahead of it",
        "audit/judgement/rules/without_origin.py",
        "bucket[0] < note.time_ms + facts.ahead_ms:",
        "bucket[0] < note.time_ms:",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_origin_a_late_beginning_or_a_gap_touches_no_later_bucket",
        ),
    ),
    # This mutant concerns the mirroring of the audit topic.
    Mutant(
        "the audit topic is mirrored where a pattern names it",
        "broker/mirror/selection.py",
        "        if name == AUDIT_TOPIC\n        or (",
        "        if (",
        (
            "tests/unit/broker/mirror/test_source.py::"
            "test_the_audit_topic_is_mirrored_whatever_the_patterns_say",
        ),
    ),
    # These mutants concern the recount: which files and rows it counts, and what it reports.
    Mutant(
        "a recount does not list the directories",
        "audit/recount/recount.py",
        "        listing.look(output, committed.topic, named)\n",
        "",
        (
            "tests/unit/audit/recount/test_recount.py::test_a_file_beside_those_of_the_manifests_is_named",
        ),
    ),
    Mutant(
        "a recount does not list the rejects",
        "audit/recount/listing.py",
        '    for folder in (topic, f"{STATE}/{topic}/rejects"):\n',
        "    for folder in (topic,):\n",
        ("tests/unit/audit/recount/test_recount.py::test_a_copy_among_the_rejects_is_named",),
    ),
    Mutant(
        "a copy is not told with its original",
        "audit/recount/listing.py",
        "            kind = Kind.TWICE\n",
        "            kind = Kind.UNNAMED\n",
        (
            "tests/unit/audit/recount/test_recount.py::"
            "test_a_file_that_was_copied_is_named_with_its_original",
        ),
    ),
    Mutant(
        "a file is verified by its length only",
        "audit/recount/recount.py",
        "    elif has.crc32c != file.crc32c:\n",
        "    elif has.length and not has.crc32c:\n",
        ("tests/unit/audit/recount/test_recount.py::test_a_changed_byte_of_any_column_is_found",),
    ),
    Mutant(
        "a file that is gone has no rows, and that is all",
        "audit/recount/recount.py",
        "            return 0, (Kind.GONE, words)\n",
        "            return 0, (Kind.GONE, words) if file.kind not in COUNTED else None\n",
        (
            "tests/unit/audit/recount/test_recount.py::test_a_file_that_is_gone_or_no_parquet_is_named",
        ),
    ),
    Mutant(
        "a load that is committed while directories are listed is a fault",
        "audit/recount/recount.py",
        "        later.read()\n",
        "",
        (
            "tests/unit/audit/recount/test_recount.py::test_a_load_that_is_committed_meanwhile_is_no_fault",
        ),
    ),
    Mutant(
        "a file that is moved while it is looked for is gone",
        "audit/recount/recount.py",
        "    for path in (file.path, file.staged, file.path):\n",
        "    for path in (file.path, file.staged):\n",
        (
            "tests/unit/audit/recount/test_recount.py::test_a_file_that_is_moved_meanwhile_is_no_fault",
        ),
    ),
    Mutant(
        "hours of a loss in which nothing was counted are complete for the loader",
        "audit/collector/hours.py",
        "        for hour in _lossy(edition, topic, found):\n",
        "        for hour in ():\n",
        (
            "tests/unit/audit/collector/test_hours.py::"
            "test_an_hour_in_which_lines_may_be_lost_is_not_complete",
        ),
    ),
    Mutant(
        "a hole among the manifests is none for a recount",
        "audit/recount/committed_files.py",
        "        if load != last + 1:\n",
        "        if load < last + 1:\n",
        ("tests/unit/audit/recount/test_recount.py::test_a_missing_manifest_is_named",),
    ),
    Mutant(
        "a recount counts a file that a later load removed",
        "audit/recount/named_files.py",
        '"SELECT * FROM named WHERE removed IS NULL ORDER BY path"',
        '"SELECT * FROM named ORDER BY path"',
        (
            "tests/unit/audit/recount/test_recount.py::"
            "test_a_file_that_a_later_load_removed_is_not_counted",
        ),
    ),
    Mutant(
        "a recount does not notice a removed file that is still there",
        "audit/recount/named_files.py",
        "        if all(file.removed is not None for file in self.named(entry.path)):\n",
        "        if not self.named(entry.path):\n",
        (
            "tests/unit/audit/recount/test_recount.py::"
            "test_a_removed_file_that_is_still_there_is_named",
        ),
    ),
    Mutant(
        "a recount names removed files while the move of their replacements is unfinished",
        "audit/recount/listing.py",
        "        if known and is_moving(known[0].removed):\n",
        "        if known and known[0].removed is None:\n",
        (
            "tests/unit/audit/recount/test_recount.py::test_a_removal_that_is_not_finished_is_no_fault",
        ),
    ),
    Mutant(
        "a recount takes a file for gone although a later load removed the file",
        "audit/recount/recount.py",
        "        if kind in (Kind.GONE, Kind.UNREADABLE) and later.removes(file.path):\n",
        "        if kind is Kind.UNREADABLE and later.removes(file.path):\n",
        (
            "tests/unit/audit/recount/test_recount.py::"
            "test_a_file_that_is_removed_meanwhile_leaves_its_hour_to_the_next_recount",
        ),
    ),
    Mutant(
        "a recount judges an hour whose files a later load removed",
        "audit/recount/recount.py",
        "    found = [each for each in found if not _is_unjudged(each.bucket, result)]\n",
        "",
        (
            "tests/unit/audit/recount/test_recount.py::"
            "test_a_file_that_is_removed_meanwhile_leaves_its_hour_to_the_next_recount",
        ),
    ),
    # These mutants concern differences that a recount reports, and clocks that are wrong.
    Mutant(
        "lines that are not loaded yet are a difference of the rows",
        "audit/recount/recount.py",
        "            if not _is_unloaded(each, loaded)\n",
        "            if not _is_unloaded(each, {})\n",
        (
            "tests/unit/audit/recount/test_recount.py::test_lines_that_are_not_loaded_yet_are_no_difference",
        ),
    ),
    Mutant(
        "rows that are fewer than what hdfs counted are not loaded yet",
        "audit/recount/recount.py",
        "return rows.count < difference.counted.count and _content(rows) == _content(said)",
        "return rows.count < difference.counted.count and rows.count <= said.count",
        ("tests/unit/audit/recount/test_recount.py::test_a_row_too_few_or_too_many_is_found",),
    ),
    Mutant(
        "one program that differs makes the audit's own clock wrong",
        "audit/judgement/clocks.py",
        "if 2 * len(differing) > len(found):",
        "if differing:",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_a_sender_whose_clock_differs_is_named_with_its_host_and_by_how_much",
        ),
    ),
    Mutant(
        "a backlog that shrinks is a slow clock",
        "audit/judgement/clocks.py",
        "abs(earlier_ms - earliest_ms) > bound_ms",
        "False",
        ("tests/unit/audit/judgement/test_clocks.py::test_what_shrinks_is_a_backlog",),
    ),
    Mutant(
        "lines that a new epoch delivered before its first seal are beyond doubt",
        "audit/judgement/rules/epochs.py",
        "if first is not None and not (since and first > since[0][:2]):",
        "if False:",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::"
            "test_what_an_agent_delivered_in_a_new_epoch_before_its_first_seal_is_in_doubt",
        ),
    ),
    Mutant(
        "the first seal of a new epoch vouches from its look on, not from its own number",
        "audit/judgement/rules/epochs.py",
        "if first is not None and not (since and first > since[0][:2]):",
        "if first is not None and not (since and first > (since[0].epoch, since[0].at)):",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::"
            "test_what_an_agent_delivered_in_a_new_epoch_before_its_first_seal_is_in_doubt",
        ),
    ),
    Mutant(
        "an acceptance of a place that counted nothing covers what comes later",
        "audit/judgement/reasons.py",
        'return f"{words} ({counted.count}, {brief(counted.checksum)})"',
        "return words",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_of_a_place_that_counted_nothing_the_acceptance_is_of_what_others_had",
        ),
    ),
    Mutant(
        "a directory that goes away ends the listing of a whole output",
        "audit/output/hdfs.py",
        "            for status in self._listed(folders.pop()):",
        "            found = self._listed(folders.pop())\n"
        "            if not found:\n"
        "                return\n"
        "            for status in found:",
        (
            "tests/unit/audit/output/test_hdfs.py::"
            "test_a_directory_that_goes_away_meanwhile_hides_no_file_of_another",
        ),
    ),
    Mutant(
        "a recount holds the rows against an output's oldest epoch",
        "audit/recount/recount.py",
        "key.epoch == max(epochs)",
        "key.epoch == min(epochs)",
        (
            "tests/unit/audit/recount/test_recount.py::test_an_output_is_held_against_its_newest_epoch",
        ),
    ),
    Mutant(
        "a file of the same length is a copy",
        "audit/recount/listing.py",
        "        if like.crc32c == has.crc32c:",
        "        if like is not None:",
        ("tests/unit/audit/recount/test_recount.py::test_a_file_of_the_same_length_is_no_copy",),
    ),
    Mutant(
        "an output's epoch that is used again under a higher one is passed over",
        "audit/judgement/counting_places.py",
        "        findings += _used_again(older, newest, evidence)\n",
        "",
        (
            "tests/unit/audit/judgement/test_counting_places.py::test_an_epoch_that_is_used_again_is_never_passed_over",
        ),
    ),
    Mutant(
        "records that a retired place alone has of those that no agent counts are nobody's",
        "audit/judgement/rules/equation.py",
        "if not is_sealed and found.count >= expected.count:",
        "if False:",
        (
            f"{_JUDGEMENT}rules/test_equation.py::test_without_a_seal_what_a_retired_place_has_alone_is_missing",
        ),
    ),
    Mutant(
        "of as many records as a place counts, those that a retired place has are the same",
        "audit/judgement/rules/equation.py",
        "if not is_sealed and found.count >= expected.count:",
        "if not is_sealed and found.count > expected.count:",
        (
            f"{_JUDGEMENT}rules/test_equation.py::test_without_a_seal_what_a_retired_place_has_alone_is_missing",
        ),
    ),
    Mutant(
        "what a retired place has beside what an agent sealed is missing elsewhere",
        "audit/judgement/rules/equation.py",
        "if not is_sealed and found.count >= expected.count:",
        "if found.count >= expected.count:",
        (
            f"{_JUDGEMENT}rules/test_equation.py::test_what_a_retired_place_has_alone_of_an_agent_that_sealed_is_a_remark",
        ),
    ),
    Mutant(
        "who spoke of rejects alone has not spoken of the topic that was made again",
        "audit/judgement/rules/seals.py",
        "spoke = any(agent in topic.agents",
        "spoke = all(agent in topic.agents",
        (
            f"{_JUDGEMENT}rules/test_seals.py::"
            "test_who_spoke_of_rejects_alone_has_spoken_of_the_topic_that_was_made_again",
        ),
    ),
    Mutant(
        "what is no agent's finding needs no acceptance",
        "audit/judgement/topic_judgement.py",
        "            agents=agents,\n            findings=findings,\n            known",
        "            agents=agents,\n            known",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_a_host_that_never_reported_is_accepted_by_its_name_too",
        ),
    ),
    Mutant(
        "without origin the counter that was heard last stands for all of them",
        "audit/judgement/rules/without_origin.py",
        "        if tier in facts.tiers and not facts.retired.holds_tier(tier):\n",
        "        if False:\n",
        (
            f"{_JUDGEMENT}rules/test_without_origin.py::test_without_origin_no_counter_stands_for_another_one",
        ),
    ),
    Mutant(
        "without origin and a broker tier one mirror's counter stands for all of them",
        "audit/judgement/rules/without_origin.py",
        "for tier in (Tier.BROKER, Tier.MIRROR):",
        "for tier in (Tier.BROKER,):",
        (
            f"{_JUDGEMENT}rules/test_without_origin.py::test_without_origin_no_counter_stands_for_another_one",
        ),
    ),
    Mutant(
        "records are the same where their bytes and checksums are",
        "audit/judgement/rules/equation.py",
        "    return sums.count, sums.bytes, sums.checksum\n",
        "    return 0, sums.bytes, sums.checksum\n",
        (f"{_JUDGEMENT}rules/test_equation.py::test_tiers_agree_in_count_bytes_and_checksum",),
    ),
    Mutant(
        "records are the same where their counts and checksums are",
        "audit/judgement/rules/equation.py",
        "    return sums.count, sums.bytes, sums.checksum\n",
        "    return sums.count, 0, sums.checksum\n",
        (f"{_JUDGEMENT}rules/test_equation.py::test_tiers_agree_in_count_bytes_and_checksum",),
    ),
    Mutant(
        "the bucket of a loss has no size where nobody counted anything",
        "audit/evidence/ledger_evidence.py",
        "size = self._found.bucket_ms or DEFAULT_BUCKET_MS",
        "size = self._found.bucket_ms",
        (
            f"{_JUDGEMENT}test_declared_losses.py::"
            "test_a_loss_at_a_time_without_counts_has_a_bucket",
        ),
    ),
    Mutant(
        "a loss comes back in a bucket of its own after buckets got another length",
        "audit/evidence/loss_buckets.py",
        "        if _is_counted(connection, source, time_ms, sizes):\n"
        "            counted.add(time_ms)\n            continue\n",
        "",
        (
            f"{_JUDGEMENT}test_declared_losses.py::"
            "test_a_loss_that_nobody_accepted_gets_a_bucket_of_the_new_length",
        ),
    ),
    Mutant(
        "an accepted loss without counts comes back in a bucket of another length",
        "audit/evidence/loss_buckets.py",
        "        found |= kept or {",
        "        found |= {",
        (
            f"{_JUDGEMENT}test_declared_losses.py::"
            "test_an_accepted_loss_stays_accepted_if_buckets_get_another_length",
        ),
    ),
    Mutant(
        "an accepted loss comes back after its bucket was deleted",
        "audit/evidence/loss_buckets.py",
        "        for size in deleted_sizes\n",
        "        for size in ()\n",
        (
            f"{_JUDGEMENT}test_declared_losses.py::"
            "test_an_accepted_loss_does_not_come_back_after_all_buckets_were_deleted",
        ),
    ),
    Mutant(
        "a host is proven though a newer version said something, once anything is accepted",
        "audit/judgement/topic_judgement.py",
        "                findings=(each, *found.findings),\n",
        "",
        (
            "tests/unit/audit/judgement/test_unread.py::"
            "test_what_a_newer_version_said_is_covered_by_no_acceptance_of_before",
        ),
    ),
    Mutant(
        "without origin a loader that is heard stands for counters that are retired",
        "audit/judgement/rules/without_origin.py",
        "for p in facts.places if p.place.tier is not Tier.HDFS for",
        "for p in facts.places for",
        (
            f"{_JUDGEMENT}rules/test_without_origin.py::test_without_origin_retired_counters_prove_nothing_by_being_silent",
        ),
    ),
    Mutant(
        "an acceptance of silence ends as the agent falls behind further",
        "audit/judgement/rules/seals.py",
        "Finding(Status.UNKNOWN, words, Cause.CLOCK, name)",
        "Finding(Status.UNKNOWN, words, Cause.CLOCK)",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_a_host_whose_clock_is_far_behind_is_not_called_silent",
        ),
    ),
    Mutant(
        "a loss is of nothing that was touched between the look of a seal and the seal",
        "audit/judgement/rules/losses.py",
        "since = (prior.epoch, prior.at) if prior",
        "since = (prior.epoch, prior.number) if prior",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_a_loss_may_belong_to_what_was_touched_since_the_look_of_the_seal",
        ),
    ),
    Mutant(
        "an acceptance of a broken chain covers what is counted later",
        "audit/judgement/rules/sender_numbers.py",
        "Finding(Status.UNKNOWN, words, Cause.MESSAGES_MISSING, name, about=key)",
        "Finding(Status.UNKNOWN, words, Cause.MESSAGES_MISSING, about=key)",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_of_a_broken_chain_the_acceptance_is_of_what_was_counted_then",
        ),
    ),
    Mutant(
        "what an agent that is behind has not sealed is open for ever",
        "audit/judgement/rules/seals.py",
        "Finding(Status.UNKNOWN, words, Cause.CLOCK, name)",
        "Finding(Status.OPEN, words, Cause.CLOCK, name)",
        (
            "tests/unit/audit/judgement/test_clocks.py::"
            "test_a_host_whose_clock_is_far_behind_is_not_called_silent",
        ),
    ),
    Mutant(
        "an acceptance of a count that nothing confirms covers what is counted later",
        "audit/judgement/rules/equation.py",
        "yield Finding(Status.UNKNOWN, words, Cause.RETIRED, name)",
        "yield Finding(Status.UNKNOWN, words, Cause.RETIRED)",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_of_a_count_that_nothing_confirms_the_acceptance_is_of_what_was_counted_then",
        ),
    ),
    Mutant(
        "a loss has a bucket also where agents are not asked, in which nothing can be said of it",
        "audit/judgement/topic_judgement.py",
        "            lossy = set()\n",
        "            pass\n",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_where_agents_are_not_asked_their_losses_are_not",
        ),
    ),
    Mutant(
        "that two agents report under one host name keeps its buckets open",
        "audit/judgement/topic_judgement.py",
        "Finding(Status.COMPLETE, words, Cause.SAME_HOST_NAME)",
        "Finding(Status.OPEN, words, Cause.SAME_HOST_NAME)",
        (
            "tests/unit/audit/judgement/test_newest_agents.py::"
            "test_an_agent_whose_machine_is_alive_is_waited_for_though_it_is_silent",
        ),
    ),
    Mutant(
        "an acceptance of lines that two agents may have read covers those that come later",
        "audit/judgement/topic_judgement.py",
        "Finding(Status.UNKNOWN, reason, Cause.READ_TWICE, name)",
        "Finding(Status.UNKNOWN, reason, Cause.READ_TWICE)",
        (
            "tests/unit/audit/judgement/rules/test_doublings.py::"
            "test_what_a_new_agent_counted_while_it_read_again_is_in_doubt",
        ),
    ),
    Mutant(
        "lines of a new epoch before its first seal are beyond doubt if more came behind it",
        "audit/judgement/rules/epochs.py",
        "first = (new.epoch, tallies[new].first) if new in tallies",
        "first = (new.epoch, tallies[new].last) if new in tallies",
        (
            f"{_JUDGEMENT}rules/test_epochs.py::"
            "test_what_an_agent_delivered_in_a_new_epoch_before_its_first_seal_is_in_doubt",
        ),
    ),
    Mutant(
        "an epoch's seal by a clock that is ahead proves what came after it was taken",
        "audit/judgement/rules/epochs.py",
        "bool(until) and until[-1].vouched_until >=",
        "bool(until) and until[-1].sealed_until >=",
        (
            f"{_JUDGEMENT}rules/test_epochs.py::"
            "test_a_seal_ahead_of_us_proves_no_epoch_behind_the_moment_at_which_it_was_taken",
        ),
    ),
    Mutant(
        "a later epoch makes up for a missing number by our clock",
        "audit/judgement/rules/sender_numbers.py",
        "start >= min(later).sealed_until + facts.ahead_ms",
        "start >= min(later).vouched_until + facts.ahead_ms",
        (
            f"{_JUDGEMENT}rules/test_sender_numbers.py::test_a_later_epoch_makes_up_for_a_missing_number_by_the_agents_own_clock",
        ),
    ),
    Mutant(
        "after a clock was set back a loss reaches up to when we took what it said before",
        "audit/judgement/rules/losses.py",
        "end = max(note.time_ms, prior.sealed_until if prior",
        "end = max(note.time_ms, prior.vouched_until if prior",
        (
            f"{_JUDGEMENT}rules/test_losses.py::test_a_loss_reaches_up_to_the_greatest_time_that_the_clock_said",
        ),
    ),
    Mutant(
        "an acceptance of what no output has covers what no output has later",
        "audit/judgement/rules/equation.py",
        "            yield Finding(Status.INCOMPLETE, words, Cause.RETIRED, name)\n",
        "            yield Finding(Status.INCOMPLETE, words, Cause.RETIRED)\n",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_a_topic_that_no_newer_output_has_yet_waits_for_one",
        ),
    ),
    Mutant(
        "a seal vouches for what was delivered between its look and it",
        "audit/judgement/rules/seals.py",
        "if any(touch > (newest.epoch, newest.at) for touch in touched):",
        "if any(touch > (newest.epoch, newest.number) for touch in touched):",
        (
            f"{_JUDGEMENT}rules/test_seals.py::test_a_seal_vouches_for_nothing_that_came_between_its_look_and_it",
        ),
    ),
    Mutant(
        "an epoch's last seal proves what was delivered between its look and it",
        "audit/judgement/rules/epochs.py",
        "(until and tallies[old].last <= until[-1].at)",
        "(until and tallies[old].last <= until[-1].number)",
        (
            f"{_JUDGEMENT}rules/test_seals.py::test_a_seal_vouches_for_nothing_that_came_between_its_look_and_it",
        ),
    ),
    Mutant(
        "what lay between two epochs goes up to when we took the first seal",
        "audit/judgement/rules/epochs.py",
        "bucket[0] <= max(since[0].sealed_until, resumed_ms)",
        "bucket[0] <= max(since[0].vouched_until, resumed_ms)",
        (
            f"{_JUDGEMENT}rules/test_epochs.py::"
            "test_what_lay_between_two_epochs_goes_up_to_the_first_seal_by_its_own_clock",
        ),
    ),
    Mutant(
        "a loss is of no bucket that was touched behind it, too",
        "audit/judgement/rules/losses.py",
        "(key.epoch, tally.first) <= (note.epoch, note.number)",
        "(key.epoch, tally.last) <= (note.epoch, note.number)",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_what_was_touched_since_the_seal_may_have_been_touched_before_and_behind",
        ),
    ),
    Mutant(
        "a loss is of no bucket that was touched before the seal, too",
        "audit/judgement/rules/losses.py",
        "and (key.epoch, tally.last) > since",
        "and (key.epoch, tally.first) > since",
        (
            "tests/unit/audit/judgement/test_declared_losses.py::"
            "test_what_was_touched_since_the_seal_may_have_been_touched_before_and_behind",
        ),
    ),
    Mutant(
        "beside a copy a seal ahead of us vouches for what came after it was taken",
        "audit/judgement/rules/sender_numbers.py",
        "any(seal.vouched_until >= facts.due(bucket) for seal in seals)",
        "any(seal.sealed_until >= facts.due(bucket) for seal in seals)",
        (
            f"{_JUDGEMENT}rules/test_sender_numbers.py::test_beside_a_copy_a_seal_ahead_of_us_vouches_up_to_when_it_was_taken",
        ),
    ),
    Mutant(
        "what a loader has of records without origin is taken for all of them",
        "audit/judgement/rules/without_origin.py",
        "    elif not _has_counters(facts):",
        "    elif False:",
        (
            "tests/unit/audit/judgement/rules/test_without_origin.py::"
            "test_without_a_counter_nothing_without_origin_is_complete",
        ),
    ),
    Mutant(
        "an epoch that sealed nothing leaves all later buckets unknown",
        "audit/judgement/rules/epochs.py",
        "since = [x for x in facts.seals[agent] if x.epoch >= new.epoch]",
        "since = [x for x in facts.seals[agent] if x.epoch == new.epoch]",
        (
            "tests/unit/audit/judgement/rules/test_epochs.py::"
            "test_a_later_epochs_seal_bounds_one_that_sealed_nothing",
        ),
    ),
    Mutant(
        "an acceptance of a doubt covers lines that come into it later",
        "audit/judgement/rules/topic_facts.py",
        "return reasons.name_of_lack(words, added(tallies, counted))",
        "return words",
        (
            "tests/unit/audit/topic/test_decisions.py::"
            "test_of_lines_in_doubt_the_acceptance_is_of_those_that_were_there",
        ),
    ),
    Mutant(
        "a counter whose copy ran is unknown for good, whatever it counts anew",
        "audit/judgement/counting_places.py",
        "if key.tier is Tier.HDFS and evidence.senders[key].cloned_at is not None:",
        "if evidence.senders[key].cloned_at is not None:",
        (
            "tests/unit/audit/judgement/test_counting_places.py::"
            "test_a_counters_copy_that_ran_is_mended_by_a_new_epoch",
        ),
    ),
    Mutant(
        "damage of the ledger is noticed only where it is read",
        "audit/database.py",
        '    if verdict != "ok":\n',
        "    if not verdict:\n",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_damage_that_nothing_reads_at_the_start_is_noticed_there",
        ),
    ),
    Mutant(
        "the roster is read at the start only",
        "audit/collector/collector.py",
        "        self._expected.look()\n",
        "",
        (
            "tests/unit/audit/collector/test_collector.py::"
            "test_a_roster_that_changes_is_what_is_expected_from_then_on",
        ),
    ),
    Mutant(
        "a roster that changed is taken, and judged by the one before",
        "audit/collector/collector.py",
        "            self.policy = self._settings.policy(self._file.entries)\n",
        "            pass\n",
        (
            "tests/unit/audit/collector/test_collector.py::"
            "test_a_roster_that_changes_is_what_is_expected_from_then_on",
        ),
    ),
    Mutant(
        "the delta that came last is the last one that touched a bucket",
        "audit/evidence/tallies.py",
        "        found[LAST] = np.maximum.reduceat(table[LAST], begins)\n",
        "",
        _ANY_ORDER,
    ),
    Mutant(
        "the delta that came first is the first one that touched a bucket",
        "audit/evidence/tallies.py",
        "        found[FIRST] = np.minimum.reduceat(table[FIRST], begins)\n",
        "        found[FIRST] = np.maximum.reduceat(table[FIRST], begins)\n",
        _ANY_ORDER,
    ),
    Mutant(
        "a file is called what was said last of it",
        "audit/evidence/ledger_rows.py",
        "(time, path) THEN excluded.path ELSE path END",
        "(time, path) THEN excluded.path ELSE excluded.path END",
        _ANY_ORDER,
    ),
    Mutant(
        "a file was announced when its last announcement says",
        "audit/evidence/ledger_rows.py",
        """THEN excluded.path ELSE path END,
    time = min(time, excluded.time),
""",
        """THEN excluded.path ELSE path END,
    time = excluded.time,
""",
        _ANY_ORDER,
    ),
    Mutant(
        "an announcement without a time of birth takes the one of before away",
        "audit/evidence/ledger_rows.py",
        "    born = min(coalesce(born, excluded.born), coalesce(excluded.born, born)),\n",
        "    born = excluded.born,\n",
        _ANY_ORDER,
    ),
    Mutant(
        "whose place a file took is what was said last",
        "audit/evidence/ledger_rows.py",
        "    replaced = CASE WHEN replaced IS excluded.replaced THEN replaced END\n",
        "    replaced = excluded.replaced\n",
        _ANY_ORDER,
    ),
    Mutant(
        "a counter begins where the last range that came begins",
        "audit/evidence/pending_rows.py",
        "SET first = min(first, excluded.first), end = max(end, excluded.end)",
        "SET first = excluded.first, end = max(end, excluded.end)",
        _ANY_ORDER,
    ),
    Mutant(
        "a counter ends where the last range that came ends",
        "audit/evidence/pending_rows.py",
        "SET first = min(first, excluded.first), end = max(end, excluded.end)",
        "SET first = min(first, excluded.first), end = excluded.end",
        _ANY_ORDER,
    ),
    Mutant(
        "a file without a birth was announced when its last announcement says",
        "audit/evidence/ledger_rows.py",
        '" THEN excluded.path ELSE path END, time = min(time, excluded.time)",',
        '" THEN excluded.path ELSE path END, time = excluded.time",',
        _ANY_ORDER,
    ),
    Mutant(
        "a file without a birth is called what was said last of it",
        "audit/evidence/ledger_rows.py",
        """\" path = CASE WHEN (excluded.time, excluded.path) < (time, path)"
            " THEN excluded.path ELSE path END, time""",
        '" path = excluded.path, time',
        _ANY_ORDER,
    ),
    Mutant(
        "a sender was heard last when the last message that came says",
        "audit/evidence/sender_rows.py",
        "INSERT INTO last_seen VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = max(time,"
        " excluded.time)",
        "INSERT INTO last_seen VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = excluded.time",
        _ANY_ORDER,
    ),
    Mutant(
        "an agent began when the last message that came says",
        "audit/evidence/sender_rows.py",
        "    time = excluded.time WHERE excluded.time < time\n",
        "    time = excluded.time\n",
        _ANY_ORDER,
    ),
    Mutant(
        "of an agent's bounds the last that came hold, not the widest",
        "audit/evidence/sender_rows.py",
        "lateness = max(lateness, excluded.lateness), ahead = max(ahead, excluded.ahead)",
        "lateness = excluded.lateness, ahead = excluded.ahead",
        _ANY_ORDER,
    ),
    Mutant(
        "an agent's bounds grow together or not at all",
        "audit/evidence/sender_rows.py",
        "    WHERE excluded.lateness > lateness OR excluded.ahead > ahead\n",
        "    WHERE excluded.lateness > lateness AND excluded.ahead > ahead\n",
        _ANY_ORDER,
    ),
    Mutant(
        "a sender was heard last, by our clock too, when the last message that came says",
        "audit/evidence/sender_rows.py",
        "INSERT INTO heard VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = max(time,"
        " excluded.time)",
        "INSERT INTO heard VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = excluded.time",
        _ANY_ORDER,
    ),
    Mutant(
        "an epoch went on when the last seal of it came",
        "audit/evidence/sender_rows.py",
        "DO UPDATE SET taken = min(taken, excluded.taken)\n",
        "DO UPDATE SET taken = excluded.taken\n",
        _ANY_ORDER,
    ),
    Mutant(
        "an agent's messages begin with the one that came last",
        "audit/evidence/sender_rows.py",
        "    first = min(first, excluded.first), last = max(last, excluded.last)\n",
        "    first = excluded.first, last = max(last, excluded.last)\n",
        _ANY_ORDER,
    ),
    Mutant(
        "an agent's messages end with the one that came last",
        "audit/evidence/sender_rows.py",
        "    first = min(first, excluded.first), last = max(last, excluded.last)\n",
        "    first = min(first, excluded.first), last = excluded.last\n",
        _ANY_ORDER,
    ),
    Mutant(
        "a host is called what the message that came last says",
        "audit/evidence/sender_rows.py",
        """    WHERE (excluded.epoch, excluded.number, excluded.time, excluded.host)
    > (epoch, number, time, host)
""",
        "",
        _ANY_ORDER,
    ),
    Mutant(
        "a sender's last number is that of the message that came last",
        "audit/evidence/pending_rows.py",
        "last = max(coalesce(last, ?3), ?3),",
        "last = ?3,",
        _ANY_ORDER,
    ),
    Mutant(
        "a sender's first number is that of the message that came first",
        "audit/evidence/pending_rows.py",
        "first = min(coalesce(first, ?4), ?4) WHERE",
        "first = coalesce(first, ?4) WHERE",
        _ANY_ORDER,
    ),
    Mutant(
        "what a heartbeat claims is forgotten with the next one",
        "audit/evidence/pending_rows.py",
        """WHERE id = ?1 AND (claimed, claimed_time)
    < (?2, ?3)""",
        "WHERE id = ?1",
        _ANY_ORDER,
    ),
    Mutant(
        "what is doubtful behind a clone begins with the last one that came",
        "audit/evidence/ledger_rows.py",
        '"UPDATE senders SET cloned_at = min(coalesce(cloned_at, ?2), ?2) WHERE id = ?1",',
        '"UPDATE senders SET cloned_at = ?2 WHERE id = ?1",',
        _ANY_ORDER,
    ),
    Mutant(
        "to a version before, a host is called what came last",
        "audit/evidence/sender_rows.py",
        " WHERE (excluded.time, excluded.host) > (time, host)\n",
        "\n",
        _ANY_ORDER,
    ),
    Mutant(
        "a loss of an agent that nobody knows ends the audit",
        "audit/judgement/rules/losses.py",
        "facts.seals.get(agent, ())",
        "facts.seals[agent]",
        (
            "tests/unit/audit/judgement/rules/test_losses.py::"
            "test_a_loss_of_an_agent_that_nobody_knows_is_judged",
        ),
    ),
    Mutant(
        "damage of a bucket's counts is not noticed",
        "audit/evidence/guarded.py",
        '    if not packed or zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") != checksum:\n',
        "    if not packed:\n",
        ("tests/unit/audit/evidence/test_tally_rows.py::test_a_damaged_bucket_is_noticed",),
    ),
    Mutant(
        "the numbers of agents' deltas are stored whole",
        "audit/evidence/tally_rows.py",
        "        return bases.make(bucket, tallies",
        "        return found or (bucket, tallies",
        (
            "tests/unit/audit/evidence/test_number_bases.py::"
            "test_numbers_are_stored_as_small_differences",
        ),
    ),
    Mutant(
        "a tally of an agent that the base does not know is read with another agent's number",
        "audit/evidence/number_bases.py",
        "known[self.senders[agents[known]] == senders[known]]",
        "known",
        (
            "tests/unit/audit/evidence/test_number_bases.py::"
            "test_later_counts_of_a_bucket_with_a_base_are_added",
        ),
    ),
    Mutant(
        "the base of an hour is deleted with the first bucket",
        "audit/evidence/number_bases.py",
        "WHERE bucket >= ?1 AND bucket < ?1 + ?2",
        "WHERE bucket < 0 AND ?2",
        (
            "tests/unit/audit/evidence/test_number_bases.py::"
            "test_a_base_is_deleted_with_the_last_bucket_of_its_hour",
        ),
    ),
    Mutant(
        "the base of an hour stays for ever",
        "audit/evidence/pruning.py",
        "        number_bases.forget(connection, each.bucket)\n",
        "",
        (
            "tests/unit/audit/evidence/test_number_bases.py::"
            "test_a_base_is_deleted_with_the_last_bucket_of_its_hour",
        ),
    ),
    Mutant(
        "the id of a deleted base is used again",
        "audit/evidence/ledger_tables.py",
        "id INTEGER PRIMARY KEY AUTOINCREMENT, hour",
        "id INTEGER PRIMARY KEY, hour",
        (
            "tests/unit/audit/evidence/test_number_bases.py::"
            "test_a_base_is_deleted_with_the_last_bucket_of_its_hour",
        ),
    ),
    Mutant(
        "damage of a base is not noticed",
        "audit/evidence/number_bases.py",
        "cramjam.zstd.decompress(unguarded(base))",
        "cramjam.zstd.decompress(base[4:])",
        ("tests/unit/audit/evidence/test_number_bases.py::test_a_damaged_base_is_noticed",),
    ),
    Mutant(
        "a bucket of few agents makes a base",
        "audit/evidence/number_bases.py",
        "        if len(tallies.begins) < AGENTS_LEAST:\n            return NO_BASE\n",
        "",
        (
            "tests/unit/audit/evidence/test_number_bases.py::"
            "test_a_bucket_of_few_agents_makes_no_base",
        ),
    ),
    Mutant(
        "a missing base is no damage",
        "audit/evidence/number_bases.py",
        "        if row is None:\n            raise",
        "        if row is None:\n            return NO_BASE\n            raise",
        ("tests/unit/audit/evidence/test_number_bases.py::test_a_missing_base_is_noticed",),
    ),
    Mutant(
        "a narrow checksum is added to others that are not narrow",
        "audit/evidence/tallies.py",
        "        if self.is_narrow != other.is_narrow:\n",
        "        if self.is_narrow and other.is_narrow:\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_adding_to_known_tallies_is_adding_up_all",
            f"{_JUDGE}test_only_balanced_buckets_get_narrow_checksums",
        ),
    ),
    Mutant(
        "the store forgets which checksums are narrow",
        "audit/evidence/tally_packing.py",
        "    return TallyColumns(found, is_narrow)\n",
        "    return TallyColumns(found)\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_adding_to_known_tallies_is_adding_up_all",
        ),
    ),
    Mutant(
        "a bucket that becomes due waits for a usual step",
        "audit/collector/judging_times.py",
        "    if due_s <= 1.5 * wait_s:\n",
        "    if False:\n",
        (f"{_TIMES}test_each_bucket_is_judged_when_it_becomes_due",),
    ),
    Mutant(
        "a step for buckets that become due begins before they are due",
        "audit/collector/judge.py",
        "Due(reading_s + (due[0] - now_ms) / 1000, due[1] / 1000)",
        "Due((due[0] - now_ms) / 1000, due[1] / 1000)",
        (f"{_JUDGE}test_the_judge_says_when_buckets_become_due",),
    ),
    Mutant(
        "judging takes more than an eighth of the time if buckets become due often",
        "audit/collector/judging_times.py",
        "    later = max(0, math.ceil((_least_s(wait_s, due) - due.next_s) / due.every_s))\n",
        "    later = 0\n",
        (f"{_TIMES}test_each_bucket_is_judged_when_it_becomes_due",),
    ),
    Mutant(
        "the step before buckets become due leaves too little time for a longer step",
        "audit/collector/judging_times.py",
        "    return min(wait_s, due_s / 2)\n",
        "    return wait_s\n",
        (f"{_TIMES}test_a_step_that_takes_longer_delays_no_verdict",),
    ),
    Mutant(
        "buckets that become due soon after a longer step wait for the step after",
        "audit/collector/judging_times.py",
        "    return max(STEP_EVERY_S / 2, wait_s / 4)\n",
        "    return wait_s / 2\n",
        (f"{_TIMES}test_a_step_that_takes_longer_delays_no_verdict",),
    ),
    Mutant(
        "a bucket without length ends the collector",
        "audit/topic/count_columns.py",
        "sizes.min() < 1 or ",
        "",
        ("tests/unit/audit/topic/test_columns.py::test_buckets_that_cannot_exist_are_refused",),
    ),
    Mutant(
        "buckets that become due wait until a step has time",
        "audit/collector/judge.py",
        "if is_over and not became_due:",
        "if is_over:",
        (f"{_JUDGE}test_all_buckets_that_become_due_are_judged_in_one_step",),
    ),
    Mutant(
        "buckets that become due keep the collector from taking messages",
        "audit/collector/judge.py",
        "if judged_s > DUE_STEP_S:",
        "if judged_s > 60:",
        (f"{_JUDGE}test_all_buckets_that_become_due_are_judged_in_one_step",),
    ),
    Mutant(
        "an offset of a seal may belong to no topic",
        "audit/topic/seal_columns.py",
        "bool(found.max() < count)",
        "True",
        ("tests/unit/audit/topic/test_columns.py::test_an_index_that_points_nowhere_is_refused",),
    ),
    Mutant(
        "a bucket of any length keeps the collector from answering",
        "audit/topic/count_columns.py",
        " or sizes.max() > LONGEST_MS",
        "",
        ("tests/unit/audit/topic/test_columns.py::test_buckets_that_cannot_exist_are_refused",),
    ),
    Mutant(
        "a bucket may begin after all buckets in which programs count",
        "audit/topic/count_columns.py",
        " or starts.max() > FARTHEST_MS",
        "",
        ("tests/unit/audit/topic/test_columns.py::test_buckets_that_cannot_exist_are_refused",),
    ),
    Mutant(
        "a bucket may begin before all buckets in which programs count",
        "audit/topic/count_columns.py",
        "starts.min() < -FARTHEST_MS or ",
        "",
        ("tests/unit/audit/topic/test_columns.py::test_buckets_that_cannot_exist_are_refused",),
    ),
    Mutant(
        "rejects and negative counts keep the first page from being made",
        "audit/collector/pages/rejects.py",
        "self.rejected / self.of if self.of else 0.0",
        "self.rejected / self.of if self.rejected else 0.0",
        (f"{_PAGES}test_parts.py::test_negative_counts_have_a_share_of_rejects",),
    ),
    Mutant(
        "counts whose sum cannot be stored end the collector at each start",
        "audit/collector/arrivals.py",
        "storable(sums.count)",
        "sums.count",
        (
            "tests/unit/audit/collector/test_history.py::"
            "test_a_sum_that_is_too_great_for_the_store_is_noted",
        ),
    ),
    Mutant(
        "a rereading before all times ends the collector at each start",
        "audit/evidence/ledger_seals.py",
        "storable(bounds.until - 1)",
        "bounds.until - 1",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_a_rereading_at_the_end_of_all_times_harms_nobody",
        ),
    ),
    Mutant(
        "messages of the least time end the search for old buckets",
        "audit/collector/pruning.py",
        "return max(min(present, heard), FOREVER[0])",
        "return min(present, heard)",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_messages_of_the_least_time_do_not_end_the_deletion",
        ),
    ),
    Mutant(
        "checksums become narrow before they were equal",
        "audit/collector/judge.py",
        "        if not is_narrow and (is_balanced or verdict.status is Status.COMPLETE):\n",
        "        if not is_narrow:\n",
        (f"{_JUDGE}test_only_balanced_buckets_get_narrow_checksums",),
    ),
    Mutant(
        "a checksum becomes narrow although only the checksums of a host differ",
        "audit/judgement/bucket_columns.py",
        "            equal[(each[:2] == first[:2]).all(axis=0) & (each[2] != first[2])].all()\n",
        "            equal[(each[:3] == first[:3]).all(axis=0)].all()\n",
        (f"{_JUDGE}test_few_hosts_with_faults_do_not_keep_checksums_wide",),
    ),
    Mutant(
        "an acceptance no longer covers a finding when checksums are narrow",
        "audit/judgement/reasons.py",
        "    checksums = brief(expected.checksum), brief(found.checksum)\n",
        "    checksums = expected.checksum, found.checksum\n",
        (f"{_BY_DIFFERENCE}test_narrow_checksums_lead_to_the_same_verdicts",),
    ),
    Mutant(
        "a recount compares rows with narrow checksums in the usual form",
        "audit/recount/recount.py",
        "x.narrowed() if (key[2], size) in narrow else x",
        "x",
        ("tests/unit/audit/recount/test_recount.py::test_rows_are_compared_with_narrow_checksums",),
    ),
    Mutant(
        "each new set of topics that a host seals stays for ever",
        "audit/evidence/seal_rows.py",
        "        if sources in self._topics or len(self._topics) < TOPIC_SETS_MAX:\n",
        "        if sources:\n",
        ("tests/unit/audit/evidence/test_tally_rows.py::test_the_sets_of_topics_are_bounded",),
    ),
    Mutant(
        "half a surrogate pair in a topic's name ends the collector",
        "audit/topic/source_names.py",
        '    "".join(found).encode()',
        '    "".join(found)',
        ("tests/unit/audit/topic/test_columns.py::test_damaged_columns_are_refused",),
    ),
    Mutant(
        "a clone's counts are believed",
        "audit/evidence/tally_rows.py",
        "counts[_SUMS] * believed",
        "counts[_SUMS]",
        _ANY_ORDER,
    ),
    Mutant(
        "a clone lengthens the chain of a bucket",
        "audit/evidence/tally_rows.py",
        "links_of_all(numbers, counts[_PREVIOUS]) * believed",
        "links_of_all(numbers, counts[_PREVIOUS])",
        _ANY_ORDER,
    ),
    Mutant(
        "the counts of a transaction belong to the first sources that it names",
        "audit/evidence/tally_rows.py",
        "sources[table[_SOURCE] + np.repeat(begins, lengths)]",
        "sources[table[_SOURCE]]",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_each_count_goes_to_its_topic_and_agent",
        ),
    ),
    Mutant(
        "of the counts of a large transaction, only the last ones are stored",
        "audit/evidence/tally_rows.py",
        "self._parts.append(_part_of(_table_of(told)))",
        "self._parts = [_part_of(_table_of(told))]",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_each_count_goes_to_its_topic_and_agent",
        ),
    ),
    Mutant(
        "a deleted bucket with later records counts as not shown",
        "audit/evidence/evidence.py",
        "len(self.pruned - self.tallies.keys())",
        "len(self.pruned)",
        (
            "tests/unit/audit/commands/test_report_command.py::"
            "test_a_report_says_how_many_buckets_were_deleted",
        ),
    ),
    Mutant(
        "only the last topic of a seal shows whether the agent's clock was ahead",
        "audit/evidence/seal_rows.py",
        "newest = max(newest, values[0])",
        "newest = values[0]",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_each_topic_of_a_seal_has_its_own_time_ahead_of_us",
        ),
    ),
    Mutant(
        "a reader does not know a sender that came after one without numbers",
        "audit/evidence/ledger.py",
        "        ids = self._sender_ids(last)\n",
        "        ids = self._sender_ids(len(whole.senders))\n",
        (
            "tests/unit/audit/evidence/test_ledger.py::"
            "test_a_reader_knows_a_sender_that_came_after_one_without_numbers",
        ),
    ),
    Mutant(
        "a reader does not see the additions of a bucket",
        "audit/evidence/tally_rows.py",
        "    return TallyColumns.total(rows) if rows else None\n",
        "    return rows[0] if rows else None\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_a_bucket_is_the_sum_of_its_row_and_its_additions",
        ),
    ),
    Mutant(
        "merged additions are counted again",
        "audit/evidence/tally_rows.py",
        '"DELETE FROM tally_additions WHERE (source, bucket, bucket_ms) = (?, ?, ?)", key',
        '"DELETE FROM tally_additions WHERE (source, bucket, 0) = (?, ?, ?)", key',
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_a_bucket_is_the_sum_of_its_row_and_its_additions",
        ),
    ),
    Mutant(
        "an addition to a bucket in memory is forgotten there",
        "audit/evidence/tally_rows.py",
        "            self._keep(key, self._kept[key] + added)\n",
        "            self._keep(key, self._kept[key])\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_a_bucket_is_the_sum_of_its_row_and_its_additions",
        ),
    ),
    Mutant(
        "a bucket never gets one row again",
        "audit/evidence/tally_rows.py",
        "        if not self._has_row(key) or self.additions(key) >= ADDITIONS_MAX:\n",
        "        if not self._has_row(key):\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_a_bucket_is_the_sum_of_its_row_and_its_additions",
        ),
    ),
    Mutant(
        "the additions of a deleted bucket stay",
        "audit/evidence/pruning.py",
        'for table in ("tallies", "tally_additions", "filtered"):',
        'for table in ("tallies", "filtered"):',
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_a_bucket_is_the_sum_of_its_row_and_its_additions",
        ),
    ),
    Mutant(
        "a bucket to which counts were added is not judged again",
        "audit/evidence/ledger_changes.py",
        'for table in ("tallies", "tally_additions", "filtered"):',
        'for table in ("tallies", "filtered"):',
        ("tests/unit/audit/evidence/test_ledger_changes.py::test_a_bucket_has_changed_once",),
    ),
    Mutant(
        "what was counted before a transaction is forgotten",
        "audit/evidence/tally_rows.py",
        "            self._write_columns(key, added if known is None else known + added)\n",
        "            self._write_columns(key, added)\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::test_a_bucket_is_the_sum_of_its_row_and_its_additions",
        ),
    ),
    Mutant(
        "the agents of a bucket that was known before are not noted",
        "audit/evidence/tally_rows.py",
        "        new = np.setdiff1d(agents, known, assume_unique=True)\n",
        "        new = agents if not len(known) else agents[:0]\n",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_each_count_goes_to_its_topic_and_agent",
        ),
    ),
    Mutant(
        "the newest seal is the one that came last",
        "audit/evidence/seal_rows.py",
        "CASE WHEN ?8 > last THEN ?9 ELSE last_until END",
        "?9",
        _ANY_ORDER,
    ),
    Mutant(
        "the oldest seal is the one that came first",
        "audit/evidence/seal_rows.py",
        "CASE WHEN ?4 < first THEN ?5 ELSE first_until END",
        "first_until",
        _ANY_ORDER,
    ),
    Mutant(
        "of the messages of one transaction the first one that came is a sender's first",
        "audit/evidence/pending_rows.py",
        "        if message.number < arrived.first.number:\n            arrived.first = message\n",
        "",
        _ANY_ORDER,
    ),
    Mutant(
        "two messages of one transaction with one number both count",
        "audit/evidence/number_rows.py",
        "        known = self._blocks.get(key) or _read(self._connection, key)\n",
        "        known = _read(self._connection, key)\n",
        ("tests/unit/audit/evidence/test_ledger.py::test_the_ledger_and_the_fold_agree_on_clones",),
    ),
    Mutant(
        "two halves of a checksum are added as numbers that may grow",
        "audit/evidence/tallies.py",
        "np.add.reduceat(table[_SUMS], begins, axis=1)",
        "np.add.reduceat(table[_SUMS].astype(float), begins, axis=1)",
        (
            "tests/unit/audit/evidence/test_tally_rows.py::"
            "test_sums_are_those_of_64_bits_wherever_they_are_added",
        ),
    ),
    Mutant(
        "the publisher sends more than its producer has room for",
        "audit/topic/publisher.py",
        """                if not self._producer.has_room:
                    return
                times""",
        "                times",
        ("tests/unit/audit/topic/test_publisher.py",),
    ),
    Mutant(
        "the history notes verdicts while blocks were never judged",
        "audit/collector/judge.py",
        "self._note is not None and self._is_whole and self._may_note()",
        "self._note is not None and self._may_note()",
        (
            "tests/unit/audit/collector/test_history.py::"
            "test_nothing_is_noted_before_everything_was_judged",
        ),
    ),
    Mutant(
        "a restart of the collector is noted as a change of verdicts",
        "audit/collector/history_store.py",
        "row = noted(last, verdict",
        "row = noted(None, verdict",
        ("tests/unit/audit/collector/test_history.py",),
    ),
    # These mutants concern the metrics about topics that the collector exports.
    Mutant(
        "a line of the future makes a topic fresh",
        "audit/judgement/standing.py",
        "        if verdict.bucket <= judged_ms:\n",
        "        if verdict.bucket >= 0:\n",
        (f"{_METRICS}test_a_line_of_the_future_makes_no_topic_fresh",),
    ),
    Mutant(
        "a topic whose oldest bucket lacks records has no metric of completeness",
        "audit/collector/metrics.py",
        "x.oldest_overdue if x.complete_until is None else x.complete_until for x in waiting",
        "x.complete_until for x in waiting",
        (f"{_METRICS}test_a_topic_says_until_when_it_is_complete",),
    ),
    Mutant(
        "a topic is complete although hours of it are not judged",
        "audit/collector/metrics.py",
        " for name, each in by_name.items() if not found.unjudged}",
        " for name, each in by_name.items()}",
        (f"{_METRICS}test_while_hours_are_unjudged_nothing_is_said_to_be_complete",),
    ),
    Mutant(
        "a topic that was made again hides what its earlier one lacks",
        "audit/collector/metrics.py",
        "    return min(known) if len(known)",
        "    return max(x.complete_until or 0 for x in topics) if len(known)",
        (f"{_METRICS}test_a_topic_that_was_made_again_is_complete_only_with_its_earlier_records",),
    ),
    Mutant(
        "each reason of a loss has a metric of its own",
        "audit/collector/metrics.py",
        "frequency.most_common(REASONS_MAX)",
        "frequency.most_common()",
        (f"{_METRICS}test_rare_reasons_of_losses_are_counted_together",),
    ),
    # These mutants concern the explanation of a bucket that is not complete.
    Mutant(
        "records that no load has reached are called missing",
        "audit/explanation/explanation.py",
        "            return replace(where, cause=cause, offsets=behind)\n",
        "            return replace(where, offsets=behind)\n",
        (_EXPLANATION + "test_each_cause_has_a_host_and_a_command",),
    ),
    Mutant(
        "a silent cluster is called a silent host",
        "audit/explanation/explanation.py",
        "        if mirror := self._silent_cluster:\n            return",
        "        if False and (mirror := self._silent_cluster):\n            return",
        (_EXPLANATION + "test_each_cause_has_a_host_and_a_command",),
    ),
    Mutant(
        "an agent that waits for the registry is called silent",
        "audit/explanation/explanation.py",
        "        if health is not None and (",
        "        if health is None and (",
        (_EXPLANATION + "test_each_cause_has_a_host_and_a_command",),
    ),
    Mutant(
        "a gap of expired records is an unknown gap",
        "audit/explanation/explanation.py",
        "Cause.RETENTION if _EXPIRED in",
        "Cause.RETENTION if not _EXPIRED in",
        (_EXPLANATION + "test_each_cause_has_a_host_and_a_command",),
    ),
    Mutant(
        "what a person accepted is explained again",
        "audit/explanation/explanation.py",
        "        if finding.status > Status.COMPLETE and finding.acceptance is None:",
        "        if finding.status > Status.COMPLETE:",
        (_EXPLANATION + "test_what_is_accepted_is_not_explained",),
    ),
    Mutant(
        "counts that a silent agent has not sent are called doubled records",
        "audit/explanation/explanation.py",
        "        for other in verdict.findings:\n            if other.cause in (Cause.IN_FLIGHT",
        "        for other in ():\n            if other.cause in (Cause.IN_FLIGHT",
        (_EXPLANATION + "test_counts_that_an_agent_has_not_sent_are_not_doubled_records",),
    ),
    Mutant(
        "the offsets of an earlier epoch count as loaded",
        "audit/explanation/offsets.py",
        "max(newest.get(name, (0, 0)), (key.epoch, covered.end))",
        "max(newest.get(name, (0, 0)), (1, covered.end))",
        (_EXPLANATION + "test_a_new_epoch_counts_from_its_own_end",),
    ),
    Mutant(
        "a bucket that is too young is to be accepted",
        "audit/explanation/explanation.py",
        "            self._verdict.due\n            and (finding.status",
        "            (finding.status",
        (_EXPLANATION + "test_an_open_bucket_is_not_accepted",),
    ),
    # These mutants concern the contents of the dashboard's pages.
    Mutant(
        "the pages do not escape text from outside",
        "audit/collector/web/rendering.py",
        "autoescape=True",
        "autoescape=False",
        ("tests/unit/audit/collector/test_web.py::test_text_from_outside_is_escaped",),
    ),
    Mutant(
        "the page is green while hours of buckets are not judged",
        "audit/collector/pages/overview.py",
        "        is_complete &= not found.unjudged\n",
        "",
        (f"{_PAGES}test_pages.py::test_while_hours_are_not_judged_nothing_is_green",),
    ),
    Mutant(
        "an hour of the grid hides a bucket that somebody should look at",
        "audit/collector/pages/grid.py",
        "if self.overdue.total():",
        "if self.good == 0:",
        (f"{_PAGES}test_pages.py::test_hours_and_days_sum_up_the_buckets",),
    ),
    Mutant(
        "a topic to which nobody writes falls behind",
        "audit/collector/pages/pace.py",
        "    if found.is_complete:\n        return None\n",
        "",
        (f"{_PAGES}test_pace.py::test_a_topic_without_open_buckets_has_no_lag",),
    ),
    Mutant(
        "freshness is taken from the newest completion of a bucket that was opened again",
        "audit/collector/history_store.py",
        "min(CASE WHEN complete THEN time_ms END)",
        "max(CASE WHEN complete THEN time_ms END)",
        (
            "tests/unit/audit/collector/test_history.py::"
            "test_completions_are_the_first_ones_and_the_newest_buckets",
        ),
    ),
    Mutant(
        "what is at risk names a tier that is behind the one that lacks records first",
        "audit/collector/risks.py",
        "if _since(lacking[x]) == since), key=_rank)",
        "if _since(lacking[x]) == since), key=lambda x: -_rank(x))",
        (f"{_PAGES}test_pages.py::test_what_the_mirror_lacks_is_at_risk",),
    ),
    Mutant(
        "what is lost soon comes after what is old",
        "audit/collector/pages/risk.py",
        "return loss_ms is None, since if loss_ms is None else loss_ms",
        "return loss_ms is None, since",
        (f"{_PAGES}test_pages.py::test_what_is_lost_first_comes_first",),
    ),
    Mutant(
        "bytes on their way are at risk",
        "audit/collector/risks.py",
        "is_old = topic.oldest_ms is None or told_ms - topic.oldest_ms > SETTLED_MS",
        "is_old = True",
        (f"{_PAGES}test_pages.py::test_bytes_on_their_way_are_not_at_risk",),
    ),
    Mutant(
        "records that only a mirror has expire with the source cluster",
        "audit/collector/risks.py",
        "tier = Tier.BROKER if source.cluster == note.cluster else Tier.MIRROR",
        "tier = Tier.MIRROR",
        (f"{_PAGES}test_pages.py::test_what_is_not_loaded_yet_expires_with_its_cluster",),
    ),
    Mutant(
        "a topic that a group holds expires by time",
        "audit/topic/retention.py",
        """if settings.get("retention.hold") or not is_by_time""",
        "if not is_by_time",
        ("tests/unit/audit/topic/test_notes.py::test_a_retention_is_known_if_only_time_decides",),
    ),
    Mutant(
        "the note that came last counts, not the newest",
        "audit/evidence/ledger_rows.py",
        " excluded.value) > (epoch, number, time, value)",
        " excluded.value) != (epoch, number, time, value)",
        (
            "tests/unit/audit/topic/test_notes.py::"
            "test_the_ledger_keeps_the_newest_note_in_any_order",
        ),
    ),
    Mutant(
        "a tier has its records since they were judged last",
        "audit/collector/arrivals.py",
        "INSERT OR IGNORE INTO arrivals",
        "INSERT OR REPLACE INTO arrivals",
        (
            "tests/unit/audit/collector/test_history.py::"
            "test_a_tier_has_its_records_since_its_count_came",
        ),
    ),
    Mutant(
        "a recount reads files on Arrow's threads, which may abort the process at its end",
        "audit/recount/row_files.py",
        ", use_threads=False)",
        ")",
        ("tests/unit/audit/recount/test_row_files.py::test_a_file_is_read_by_one_thread",),
    ),
    Mutant(
        "a tier that lacks records has a latency",
        "audit/reports/latencies.py",
        "sums.count == most == arrival.records",
        "sums.count == arrival.records",
        (_LATENCY_OF_WHY,),
    ),
    Mutant(
        "a tier has the latency of its earlier count",
        "audit/reports/latencies.py",
        "sums.count == most == arrival.records",
        "sums.count == most",
        (
            "tests/unit/audit/reports/test_latencies.py::"
            "test_an_arrival_of_another_count_says_nothing",
        ),
    ),
    Mutant(
        "the latency counts from the bucket's begin",
        "audit/reports/latencies.py",
        "end_ms = verdict.bucket + verdict.bucket_ms",
        "end_ms = verdict.bucket",
        (_LATENCY_OF_WHY,),
    ),
    Mutant(
        "an answer that is not understood stops the command",
        "audit/reports/latencies.py",
        "except (AttributeError, KeyError, TypeError, ValueError):",
        "except AttributeError:",
        (_LATENCY_OF_WHY,),
    ),
    Mutant(
        "the JSON of a bucket does not say when its places had all records",
        "audit/collector/web/dashboard.py",
        'place["latency_ms"] = after_ms',
        'place["latency_ms"] = None',
        (
            "tests/unit/audit/collector/test_history.py::"
            "test_the_json_of_a_bucket_says_how_long_after_its_end_a_tier_had_all",
        ),
    ),
    Mutant(
        "the page's acceptance covers one bucket of a loss",
        "audit/collector/web/dashboard.py",
        "last = same[-1].bucket if same else None",
        "last = None",
        (f"{_PAGES}test_pages.py::test_one_acceptance_covers_neighbours_with_the_same_causes",),
    ),
    Mutant(
        "why without a topic hides a loss behind rows that wait for a load",
        "audit/commands/every_why.py",
        "verdict = first_explained(bad)[0]",
        "verdict = bad[0]",
        (
            "tests/unit/audit/commands/test_why.py::"
            "test_without_a_topic_one_bucket_of_each_topic_is_named",
        ),
    ),
    Mutant(
        "why without a topic does not tell what the newest recount found",
        "audit/commands/every_why.py",
        "        _differing(evidence, policy, now_ms, access),\n",
        "",
        (f"{_WHY}test_without_a_topic_a_recount_that_differs_is_told",),
    ),
    Mutant(
        "why without a topic says that all is well while an expected host is silent",
        "audit/commands/every_why.py",
        "    return int(bool(rows) or not found or is_missed or times.is_ours_wrong)\n",
        "    return int(bool(rows) or not found or times.is_ours_wrong)\n",
        (f"{_WHY}test_without_a_topic_hosts_that_do_not_report_are_named",),
    ),
    Mutant(
        "why shows a line of another bucket as the first missing line",
        "audit/commands/first_line.py",
        "            is_meant &= (batch.timestamps >= span[0]) & (batch.timestamps < span[1])\n",
        "            pass\n",
        (f"{_WHY}test_a_missing_line_of_another_bucket_is_not_shown",),
    ),
    Mutant(
        "why names an acceptance of a bucket in which nothing was counted",
        "audit/explanation/explanation.py",
        "        return bucket in self._topic.tallies or bucket in self._topic.lossy\n",
        "        return True\n",
        (f"{_WHY}test_what_nobody_can_accept_in_a_bucket_is_sent_to_another_bucket",),
    ),
    Mutant(
        "why does not say from when on a young bucket can be judged",
        "audit/explanation/next_command.py",
        'since="" if where.due is None else time_text(where.due)',
        'since=""',
        (f"{_WHY}test_a_bucket_that_is_too_young_is_not_to_be_accepted",),
    ),
    Mutant(
        "why names one of the clusters that may have an absent mirror",
        "audit/explanation/next_command.py",
        "    clusters = (where.place,) if where.place else where.clusters\n",
        "    clusters = (where.place,) if where.place else where.clusters[:1]\n",
        (f"{_EXPLANATION}test_the_counter_of_an_absent_mirror_has_the_name_of_a_cluster",),
    ),
    Mutant(
        "the history has a bucket only by its start",
        "audit/collector/history_store.py",
        "        window = time_ms - LONGEST_MS + 1, time_ms + 1\n",
        "        window = time_ms, time_ms + 1\n",
        ("tests/unit/audit/collector/test_history.py::test_a_bucket_is_named_by_any_time_in_it",),
    ),
    Mutant(
        "the history answers with a bucket that ended before",
        "audit/collector/history_store.py",
        "return self._read(window, time_ms, is_meant, count_max)",
        "return self._read(window, window[0], is_meant, count_max)",
        ("tests/unit/audit/collector/test_history.py::test_a_bucket_is_named_by_any_time_in_it",),
    ),
    Mutant(
        "why does not say that nothing was counted in a bucket",
        "audit/commands/why.py",
        '    empty = "" if is_counted else "; nothing was counted in it"\n',
        '    empty = ""\n',
        (f"{_WHY}test_a_bucket_in_which_nothing_was_counted_is_not_only_called_complete",),
    ),
    Mutant(
        "why names an acceptance while messages are unread",
        "audit/explanation/explanation.py",
        "            and not (self._evidence.rebuilding or self._evidence.unread)  #",
        "            #",
        (f"{_EXPLANATION}test_nothing_is_accepted_while_messages_are_unread",),
    ),
    Mutant(
        "only the newest load of an output is kept",
        "audit/evidence/ledger_rows.py",
        "load_note.KIND: load_note.KEPT}",
        "load_note.KIND: 1}",
        ("tests/unit/audit/topic/test_notes.py::test_the_newest_loads_are_kept_in_any_order",),
    ),
    Mutant(
        "the audit cannot read notes",
        "audit/topic/messages.py",
        "if notes.is_note(value):",
        "if False:",
        ("tests/unit/audit/topic/test_notes.py::test_a_note_is_read_as_it_was_sent",),
    ),
    Mutant(
        "a host that reports but does not vouch is not at risk",
        "audit/collector/pages/risk.py",
        "if x.expected and (x.sealed_until or 0) < limit]",
        "if x.is_missed and (x.sealed_until or 0) < limit]",
        (f"{_PAGES}test_pages.py::test_a_host_that_does_not_vouch_is_at_risk",),
    ),
    Mutant(
        "the name of a host is a formula in a spreadsheet",
        "audit/collector/pages/table.py",
        "text.startswith(_FORMULA)",
        'text.startswith("\\0")',
        (f"{_PAGES}test_parts.py::test_csv_has_the_values_of_all_rows_and_no_formulas",),
    ),
    # These mutants break two rules. The audit must judge a bucket again if anything on which the
    # verdict depends has changed. If the audit judges many agents at once (as columns of arrays),
    # the verdicts must be the same as if it judged them one by one.
    Mutant(
        "a bucket with new counts is not judged again",
        "audit/evidence/ledger_changes.py",
        '_EVENTS: Final = ("INSERT", "UPDATE", "DELETE")',
        '_EVENTS: Final = ("UPDATE", "DELETE")',
        ("tests/unit/audit/evidence/test_ledger_changes.py",),
    ),
    Mutant(
        "what another connection wrote changes no verdict",
        "audit/evidence/ledger_changes.py",
        "        if not is_ours:\n            return None\n",
        "",
        ("tests/unit/audit/evidence/test_ledger_changes.py",),
    ),
    Mutant(
        "a bucket that becomes due keeps its verdict",
        "audit/judgement/dependence.py",
        "phases = (facts.now_ms >= dues).astype(np.uint64)",
        "phases = np.zeros(len(dues), np.uint64)",
        _DIFFERENCE,
    ),
    Mutant(
        "a bucket that a newer seal reaches keeps its verdict",
        "audit/judgement/dependence.py",
        'self._sums[np.searchsorted(self._vouched, dues, "left")]',
        "np.zeros(len(dues), np.uint64)",
        _DIFFERENCE,
    ),
    Mutant(
        "a bucket keeps its verdict when its late agents seal it",
        "audit/judgement/dependence.py",
        "self._states[places[is_known]].sum(dtype=np.uint64)",
        "np.uint64(0)",
        _DIFFERENCE,
    ),
    Mutant(
        "a bucket keeps its verdict when an agent falls silent",
        "audit/judgement/dependence.py",
        " + 4 * columns.is_silent",
        "",
        _DIFFERENCE,
    ),
    Mutant(
        "a bucket keeps its verdict when a seal vouches for less",
        "audit/judgement/dependence.py",
        "        return bool(less.any())",
        "        return False",
        _DIFFERENCE,
    ),
    Mutant(
        "a bucket keeps its verdict when the policy changes",
        "audit/judgement/dependence.py",
        "            facts.policy,\n            facts.ahead_ms,",
        "            facts.ahead_ms,",
        ("tests/unit/audit/collector/test_judge.py::test_a_changed_policy_changes_verdicts",),
    ),
    Mutant(
        "a bucket keeps its verdict when an agent declares a loss",
        "audit/judgement/dependence.py",
        "                judgement.of_agent(agent),\n",
        "",
        ("tests/unit/audit/collector/test_judge.py::test_each_loss_changes_verdicts",),
    ),
    Mutant(
        "a bucket keeps its verdict when a person accepts it",
        "audit/collector/topic_buckets.py",
        "said: tuple[object, ...] = dependence.acceptances(key)",
        "said: tuple[object, ...] = ()",
        _DIFFERENCE,
    ),
    Mutant(
        "a bucket of rejects keeps its verdict when more lines are delivered",
        "audit/collector/judge.py",
        "for each in judgement.facts.expectation.related:\n            topic.mark",
        "for each in judgement.facts.expectation.related[:1]:\n            topic.mark",
        _DIFFERENCE,
    ),
    Mutant(
        "a missing delta of one of many agents is overlooked",
        "audit/judgement/bucket_columns.py",
        "        clean &= self._on_agents(self._is_whole, else_=True)\n",
        "",
        _COLUMNS,
    ),
    Mutant(
        "other records of one of many agents are overlooked",
        "audit/judgement/bucket_columns.py",
        "_CONTENT: Final = (COUNT, BYTES, CHECKSUM)",
        "_CONTENT: Final = (COUNT, BYTES)",
        _CASES_BY_COLUMNS,
    ),
    Mutant(
        "lines of one of many agents after its seal are overlooked",
        "audit/judgement/bucket_columns.py",
        "self._lacks_seal = (agents.vouched < self._due) | self.late",
        "self._lacks_seal = agents.vouched < self._due",
        _COLUMNS,
    ),
    Mutant(
        "missing first messages of one of many agents are overlooked",
        "audit/judgement/bucket_columns.py",
        " & (self._start >= agents.counted_from)",
        "",
        _CASES_BY_COLUMNS,
    ),
    Mutant(
        "a sender whose first messages are missing is settled early",
        "audit/evidence/ledger_rows.py",
        "*self._numbers.settle(cut, before_ms)",
        "*self._numbers.settle(cut, settled_ms)",
        (
            "tests/unit/audit/evidence/test_pruning.py::"
            "test_a_sender_whose_first_messages_are_missing_is_settled_late",
        ),
    ),
    Mutant(
        "an acceptance is advised before the other commands",
        "audit/explanation/document.py",
        "    repairs = [x.repair for x in found if x.repair is not None]\n",
        "    repairs: list[NextCommand] = []\n",
        (
            "tests/unit/audit/commands/test_why.py::"
            "test_an_acceptance_of_several_causes_is_told_as_the_last_resort",
        ),
    ),
    Mutant(
        "a host that is behind is told to start its agent",
        "audit/collector/pages/hosts.py",
        "    line = SET_CLOCK if state.status is HostStatus.BEHIND else START_AGENT\n",
        "    line = START_AGENT\n",
        (
            "tests/unit/audit/collector/pages/test_pages.py::"
            "test_a_host_has_one_next_command_on_all_pages",
        ),
    ),
)
