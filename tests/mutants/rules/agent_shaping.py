"""Mutants of the rules by which the agent leaves out records, counts them by rule, and keeps
secrets out of the records that it sends."""

from mutants.mutant import Mutant

FILTERS = "tests/unit/agent/loop/test_filters.py"
SHAPER = "tests/unit/agent/shaping/test_shaper.py"
SHAPE = "tests/unit/agent/batches/test_shape.py"
KINDS = "tests/unit/agent/shaping/test_kinds.py"
STATE = "tests/unit/agent/state/test_filtered_sums.py"
FILTERED = "tests/unit/audit/judgement/test_filtered.py"

GROWTH = "tests/unit/agent/shaping/test_growth.py"

MUTANTS = (
    Mutant(
        "masks of masks grow without bound",
        "agent/shaping/growth.py",
        "_lengths(column) <= GROWTH_MAX * self._lengths[name]",
        "_lengths(column) >= 0",
        (f"{GROWTH}::test_a_record_that_masks_make_too_long_is_named",),
    ),
    Mutant(
        "the lengths of other records decide whether a text is too long",
        "agent/shaping/shaper.py",
        "                growth.keep(stays)\n",
        "                pass\n",
        (f"{GROWTH}::test_the_limit_changes_no_other_text",),
    ),
    Mutant(
        "a rejected line that masks make too long is sent",
        "agent/shaping/rejected_text.py",
        "            if is_too_long(masked, safe):\n",
        "            if False:\n",
        (f"{GROWTH}::test_texts_of_rejected_lines_are_bounded_too",),
    ),
    Mutant(
        "a private member reaches the further members by an alias",
        "agent/batches/shape.py",
        "    return names | {other for other, name in others.items() if name in names}\n",
        "    return names\n",
        (f"{SHAPE}::test_private_keys_do_not_reach_extra_by_another_name",),
    ),
    Mutant(
        "a private member reaches the further members by its new name",
        "agent/shaping/shaped_schemas.py",
        "                own.add(to.name)\n",
        "",
        (f"{SHAPE}::test_names_of_private_fields_through_renames",),
    ),
    Mutant(
        "further members are lost if their field gets another name",
        "agent/batches/source_recipes.py",
        """has_names and f'"{EXTRA}"' in before_rules""",
        """has_names and f'"{EXTRA}"' in schema.text""",
        (f"{SHAPE}::test_further_keys_may_get_another_name",),
    ),
    Mutant(
        "filtered bytes do not enter the ledger",
        "agent/delivery/progress.py",
        "            tracked.tally.filtered += outcome.filtered_bytes\n",
        "",
        (f"{FILTERS}::test_what_a_rule_leaves_out_is_settled_without_a_broker",),
    ),
    Mutant(
        "filtered records are not durable with the checkpoint",
        "agent/state/changes.py",
        "                for x in each.filtered\n",
        "                for x in each.filtered[:0]\n",
        (
            f"{FILTERS}::test_a_kill_neither_doubles_nor_loses_what_was_left_out",
            f"{STATE}::test_what_was_left_out_is_durable_until_a_delta_has_it",
        ),
    ),
    Mutant(
        "filtered records stay in the state when a delta has told them",
        "agent/state/changes.py",
        '        self._do("DELETE FROM filtered_sums", ())\n',
        "",
        (f"{STATE}::test_what_was_left_out_is_durable_until_a_delta_has_it",),
    ),
    Mutant(
        "a sample is chosen anew by each process",
        "agent/shaping/sampling.py",
        'return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")',
        "return abs(hash(name)) + id(hashlib)",
        (f"{SHAPER}::test_known_records_become_known_records",),
    ),
    Mutant(
        "all samples choose the same records",
        "agent/shaping/sampling.py",
        "    mixed = hashes ^ np.uint64(_salt(name))\n",
        '    mixed = hashes ^ np.uint64(_salt(""))\n',
        (f"{SHAPER}::test_a_sample_has_the_right_share",),
    ),
    Mutant(
        "a comparison with null is null",
        "agent/shaping/conditions.py",
        "            return _ORDERS[how](column, _scalar(value, column.type)).fill_null(False)\n",
        "            return _ORDERS[how](column, _scalar(value, column.type))\n",
        ("tests/unit/agent/shaping/test_conditions.py::test_columns_and_single_rows_agree",),
    ),
    Mutant(
        "a line that is not UTF-8 may be left out",
        "agent/batches/shape.py",
        "        if rejects:\n            chosen",
        "        if rejects and not rejects:\n            chosen",
        (f"{SHAPE}::test_what_is_not_utf_8_is_rejected_and_not_left_out",),
    ),
    Mutant(
        "another key of hash is the same program",
        "agent/batches/program_versions.py",
        '        names.append(f"key-{_key_fingerprint(recipe.hash_key_location)}")\n',
        '        names.append("key")\n',
        (f"{FILTERS}::test_another_key_is_another_program",),
    ),
    Mutant(
        "a rejected line is sent as it is",
        "agent/batches/press.py",
        "            parsed = replace(parsed, refused=self._shown(parsed.refused))\n",
        "            parsed = replace(parsed, refused=parsed.refused)\n",
        (f"{FILTERS}::test_a_rejected_line_keeps_no_secret",),
    ),
    Mutant(
        "a rejected line is sent although a field is removed",
        "agent/shaping/rejected_text.py",
        "isinstance(rule, r.Hash | r.Remove) for rule in rules",
        "isinstance(rule, r.Hash) for rule in rules",
        ("tests/unit/agent/shaping/test_rejected_text.py",),
    ),
    Mutant(
        "private members reach the map of further members",
        "agent/batches/shape.py",
        "if self._private and EXTRA in batch.schema.names:",
        "if not self._private and EXTRA in batch.schema.names:",
        (f"{SHAPE}::test_a_removed_member_may_have_any_type",),
    ),
    Mutant(
        "cards need no check digit",
        "agent/shaping/kinds.py",
        "    return total % 10 == 0\n",
        "    return total >= 0\n",
        (KINDS,),
    ),
    Mutant(
        "accounts need no check digits",
        "agent/shaping/kinds.py",
        "    return at if int(numeric) % 97 == 1 else None\n",
        "    return at\n",
        (KINDS,),
    ),
    Mutant(
        "an address of the net has many ways to match",
        "agent/shaping/kinds.py",
        "(?=(?:[0-9A-Fa-f]{0,4}:){2})[0-9A-Fa-f:.]+(?![",
        "(?:[0-9A-Fa-f]{0,4}:){2,}[0-9A-Fa-f:.]*(?![",
        (f"{KINDS}::test_addresses_have_one_way_to_match",),
    ),
    Mutant(
        "a mask takes the quotes around a value",
        "agent/shaping/kinds.py",
        """rf'\\1"{shown}\\2'),\n        (rf"{is_value}'""",
        """rf'\\1{shown}'),\n        (rf"{is_value}'""",
        (f"{KINDS}::test_masked_json_stays_json",),
    ),
    Mutant(
        "escapes hide private texts from the masks",
        "agent/shaping/rejected_text.py",
        "                if found not in (plain, plain_masked):\n",
        "                if found not in (plain, plain_masked) and not masked:\n",
        ("tests/unit/agent/shaping/test_rejected_text.py",),
    ),
    Mutant(
        "a head may end inside a private text",
        "agent/shaping/rejected_text.py",
        "            if self._may_cut(line):\n",
        "            if self._may_cut(line) and not line:\n",
        ("tests/unit/agent/shaping/test_rejected_text.py",),
    ),
    Mutant(
        "a line that masks cannot read is sent",
        "agent/shaping/rejected_text.py",
        "        return line if self.is_whole else WITHHELD\n",
        "        return line\n",
        ("tests/unit/agent/shaping/test_rejected_text.py",),
    ),
    Mutant(
        "a line in another encoding is masked as if it were text",
        "agent/batches/press.py",
        "text.unreadable(x.line) if x.reason == ENCODING",
        "text.unreadable(x.line) if x.reason == NUL_BYTES",
        (f"{FILTERS}::test_a_rejected_line_in_another_encoding_keeps_no_secret",),
    ),
    Mutant(
        "the collector keeps no filtered records",
        "audit/evidence/tally_rows.py",
        "self._connection.executemany(_FILTERED, _filtered_rows(told))",
        "self._connection.executemany(_FILTERED, _filtered_rows(told[:0]))",
        (f"{FILTERED}::test_the_ledger_keeps_what_was_left_out_once",),
    ),
    Mutant(
        "a tier must report a topic of which nothing is left",
        "audit/judgement/rules/equation.py",
        "    if _all_filtered(sums):\n",
        "    if _all_filtered(sums) and not sums:\n",
        (f"{FILTERED}::test_a_bucket_of_which_nothing_is_left_is_complete",),
    ),
    Mutant(
        "a delta forgets the rules of its buckets",
        "audit/counts/counts.py",
        "        filtered=sums.filtered,\n",
        "        filtered=sums.filtered[:0],\n",
        (f"{FILTERED}::test_what_was_left_out_is_told_with_the_count_of_its_bucket",),
    ),
)
