"""Mutants of the schema registry and of its client. They concern ids, the log of schemas in
ZooKeeper, compatibility, version numbers, deletion, modes, references, passwords and the client."""

from mutants.mutant import Mutant

_STORE = "tests/unit/schemas/registry/test_store.py"
_REST = "tests/unit/schemas/registry/test_rest.py"
_MODES = "tests/unit/schemas/registry/test_modes.py"
_REFERENCES = "tests/unit/schemas/registry/test_references.py"
_PARSED = "tests/unit/schemas/registry/test_parsed.py"
_PASSWORDS = "tests/unit/schemas/registry/test_passwords.py"
_COMPATIBILITY = "tests/unit/schemas/test_compatibility.py"
_CLIENT = "tests/unit/schemas/test_client.py"
_LASTING = "tests/unit/schemas/test_lasting_ids.py"
_DUMP = "tests/unit/schemas/dump/test_registry.py"

MUTANTS: tuple[Mutant, ...] = (
    # These mutants break the rule that each id belongs to only one schema.
    Mutant(
        "an entry that is there already counts as ours",
        "schemas/registry/store.py",
        "            created = found == content\n",
        "            created = bool(found)\n",
        (f"{_STORE}::test_the_second_writer_reads_on_and_decides_again",),
    ),
    Mutant(
        "an entry whose answer was lost counts as somebody else's",
        "schemas/registry/store.py",
        "            created = found == content\n",
        "            created = found == content and number == self._read\n",
        (f"{_STORE}::test_a_deletion_whose_answer_was_lost_is_done",),
    ),
    Mutant(
        "who was forestalled writes what was decided before",
        "schemas/registry/store.py",
        """            for _ in range(ATTEMPTS_MAX):
                self._refuse_if_away()
                self._catch_up()
                decision = self._decided(decide)
""",
        """            self._catch_up()
            decision = self._decided(decide)
            for _ in range(ATTEMPTS_MAX):
                self._refuse_if_away()
                self._catch_up()
""",
        (
            f"{_STORE}::test_the_second_writer_reads_on_and_decides_again",
            f"{_STORE}::test_the_same_schema_from_two_writers_is_one_id",
        ),
    ),
    Mutant(
        "the id of a permanently deleted schema is given again",
        "schemas/registry/decisions/registration.py",
        "    new_id = state.last_id + 1\n",
        "    new_id = max((each for each, uses in state._uses.items() if uses), default=0) + 1\n",
        (f"{_STORE}::test_ids_of_deleted_schemas_are_not_used_again",),
    ),
    Mutant(
        "a schema that another subject has gets an id of its own",
        "schemas/registry/decisions/registration.py",
        """    known = state.id_of(schema.identity)
    if known is not None:
""",
        """    known = state.id_of(schema.identity)
    if known is not None and subject in state.subjects:
""",
        (f"{_STORE}::test_ids_begin_at_one_and_have_no_gaps",),
    ),
    Mutant(
        "an import gives an id to another schema than it had",
        "schemas/registry/decisions/registration.py",
        "if kept is not None and kept.identity != schema.identity:",
        "if kept is not None and kept.id != schema_id:",
        (f"{_MODES}::test_an_id_never_gets_a_second_schema",),
    ),
    # These mutants concern the log of schemas in ZooKeeper.
    Mutant(
        "a refusal is made on what this server of ZooKeeper knows",
        "schemas/registry/store.py",
        """        before = self._read
        self._entries.sync()
        self._catch_up()
        if self._read > before:""",
        """        before = self._read
        self._catch_up()
        if self._read > before:""",
        (f"{_STORE}::test_a_refusal_is_made_on_all_that_is_known",),
    ),
    Mutant(
        "what is not in memory is not there",
        "schemas/registry/store.py",
        """            self._refresh()
            if self._read == before:
                raise""",
        """            if self._read == before:
                raise""",
        (f"{_STORE}::test_an_id_of_another_registry_is_found_before_the_watch_fires",),
    ),
    Mutant(
        "what is not in memory is denied while ZooKeeper is away",
        "schemas/registry/store.py",
        """            self._refresh()
            if self._read == before:
                raise""",
        """            if self.connected:
                self._refresh()
            if self._read == before:
                raise""",
        (f"{_STORE}::test_what_another_registry_may_have_written_is_not_denied",),
    ),
    Mutant(
        "a log that was set back and went on is gone on with",
        "schemas/registry/store.py",
        "        if self._entries.read(self._read, 1) != [self._last]:",
        "        if not self._entries.read(self._read, 1):",
        (f"{_STORE}::test_a_log_that_was_set_back_and_went_on_is_noticed",),
    ),
    Mutant(
        "a log of which an entry is missing ends there",
        "schemas/registry/store.py",
        "        if self._read < there:\n",
        "        if self._read > there:\n",
        (f"{_STORE}::test_a_log_with_a_gap_is_refused",),
    ),
    Mutant(
        "a log that makes no sense is skipped over while it is followed",
        "schemas/registry/store.py",
        """        except StateRefused as error:
            self._failed = error
            raise""",
        """        except StateRefused:
            self._read, self._last = number, content""",
        (f"{_STORE}::test_a_log_that_breaks_later_ends_writing_only",),
    ),
    # These mutants concern the compatibility of schemas.
    Mutant(
        "a schema is compatible backward if the old one reads what it writes",
        "schemas/compatibility.py",
        "found = incompatibilities(new, old) if level.new_reads_old else []",
        "found = incompatibilities(old, new) if level.new_reads_old else []",
        (f"{_COMPATIBILITY}::test_levels",),
    ),
    Mutant(
        "FULL is one direction",
        "schemas/compatibility.py",
        'return self.value.startswith(("FORWARD", "FULL"))',
        'return self.value.startswith("FORWARD")',
        (f"{_COMPATIBILITY}::test_levels",),
    ),
    Mutant(
        "a transitive level looks at the latest version",
        "schemas/registry/decisions/comparison.py",
        "compared = known[::-1] if level.is_transitive else known[-1:]",
        "compared = known[-1:]",
        (f"{_REST}::test_transitive_levels_look_at_every_version",),
    ),
    Mutant(
        "a level looks at the first version instead of the latest",
        "schemas/registry/decisions/comparison.py",
        "compared = known[::-1] if level.is_transitive else known[-1:]",
        "compared = known[::-1] if level.is_transitive else known[:1]",
        (_REST,),
    ),
    Mutant(
        "a field may be missing in what is read, with a default or without",
        "schemas/compatibility.py",
        "            elif not field.has_default:\n",
        "            elif not field.has_default and not written:\n",
        (f"{_COMPATIBILITY}::test_avros_rules",),
    ),
    Mutant(
        "an enum with a default lacks symbols all the same",
        "schemas/compatibility.py",
        "    if not missing or reader.default is not None:\n",
        "    if not missing:\n",
        (f"{_COMPATIBILITY}::test_avros_rules",),
    ),
    Mutant(
        "what was good only inside a pair that is not is remembered as good",
        "schemas/compatibility.py",
        "            del self._known[each]\n        del self._good[inside:]\n",
        "            self._known[each] = []\n",
        (f"{_COMPATIBILITY}::test_what_was_good_inside_a_pair_that_is_not_is_compared_again",),
    ),
    # These mutants concern version numbers and the deletion of versions.
    Mutant(
        "a version's number is given again when the version is gone",
        "schemas/registry/state.py",
        "return self.subjects[subject].highest + 1 if subject in self.subjects else 1",
        "return max(self.subjects[subject].versions) + 1 if subject in self.subjects else 1",
        (f"{_REST}::test_the_number_of_a_version_is_not_given_again",),
    ),
    Mutant(
        "a version is permanently deleted at once",
        "schemas/registry/decisions/deletion.py",
        "    if permanent and not found.deleted:\n",
        "    if permanent and found.deleted and version is None:\n",
        (f"{_REST}::test_deletion_is_soft_first_and_then_for_ever",),
    ),
    Mutant(
        "a version goes that another schema references",
        "schemas/registry/decisions/deletion.py",
        "    _check_unreferenced(state, subject, [found])\n",
        "    _check_unreferenced(state, subject, [found] if permanent else [])\n",
        (f"{_REFERENCES}::test_what_is_referenced_cannot_be_deleted",),
    ),
    Mutant(
        "a deleted version that is referenced goes when its schema returns",
        "schemas/registry/state.py",
        "returned = returned and not self.referenced_by(change.subject, each.version)",
        "returned = returned and each.id == change.id",
        (
            f"{_REFERENCES}::"
            "test_a_deleted_version_that_is_referenced_stays_when_its_schema_returns",
        ),
    ),
    Mutant(
        "level and mode of a subject outlive it",
        "schemas/registry/state.py",
        """            self.levels.pop(change.subject, None)
            self.modes.pop(change.subject, None)

""",
        "\n",
        (f"{_MODES}::test_level_and_mode_stay_until_the_last_version_goes_for_ever",),
    ),
    # These mutants concern the modes of subjects, for example IMPORT and READONLY.
    Mutant(
        "a subject's own mode beats the override for all",
        "schemas/registry/state.py",
        "return above if above is Mode.READONLY_OVERRIDE else self.modes.get(subject, above)",
        "return self.modes.get(subject, above)",
        (f"{_MODES}::test_read_only_override_beats_the_subjects_own_mode",),
    ),
    Mutant(
        "an import begins beside what lives there",
        "schemas/registry/decisions/configuration.py",
        "    if mode.takes_ids and not state.mode(subject).takes_ids and not force:\n",
        "    if mode.takes_ids and state.mode(subject).is_read_only and not force:\n",
        (f"{_MODES}::test_import_only_where_nothing_lives_unless_forced",),
    ),
    Mutant(
        "an import replaces a live version",
        "schemas/registry/decisions/registration.py",
        "        if each.version == version:\n            raise",
        "        if each.version == version and each.id == schema_id:\n            raise",
        (f"{_MODES}::test_an_import_does_not_replace_a_live_version",),
    ),
    Mutant(
        "who is read-only may change its level",
        "schemas/registry/decisions/configuration.py",
        """        check_subject(subject)
    check_writable(state, subject)
    answer""",
        """        check_subject(subject)
    answer""",
        (f"{_MODES}::test_read_only_means_everything",),
    ),
    # These mutants concern references from a schema to other schemas.
    Mutant(
        "the same text is the same schema, whatever it references",
        "schemas/registry/kept.py",
        "        return self.text, self.references\n",
        "        return self.text, ()\n",
        (f"{_REFERENCES}::test_the_same_text_with_other_references_is_another_schema",),
    ),
    Mutant(
        "two schemas that are referenced may mean different things by one name",
        "schemas/registry/parsed.py",
        "if declared_by.setdefault(name, kept.id) != kept.id:",
        "if declared_by.setdefault(name, kept.id) > kept.id:",
        (f"{_PARSED}::test_two_meanings_of_one_name_are_refused",),
    ),
    Mutant(
        "a version comes back with other types than it had",
        "schemas/commands/retire.py",
        "        is_same = canonical(before) == canonical(now)\n",
        "        is_same = bool(canonical(before)) and bool(canonical(now))\n",
        (
            "tests/unit/schemas/test_retire.py::"
            "test_a_version_whose_references_mean_another_schema_does_not_come_back",
        ),
    ),
    # These mutants concern dumps of versions whose references have lost their meaning.
    Mutant(
        "a dump has references that mean another schema now",
        "schemas/dump/registry.py",
        "            if text != meaning(each, found):\n",
        "            if text != meaning(each, found) and meaning(each, found) is None:\n",
        (f"{_DUMP}::test_a_dump_keeps_what_the_references_of_a_deleted_version_meant",),
    ),
    Mutant(
        "a schema without references is another one than the same with references",
        "schemas/dump/restoring.py",
        "    return meant is not None and meant == meaning(other, wanted)\n",
        "    return meant is not None and meant == other.schema\n",
        (f"{_DUMP}::test_a_dump_from_before_a_reference_was_lost_still_fits",),
    ),
    # This mutant concerns passwords.
    Mutant(
        "a password that was right stays so when the file has changed",
        "schemas/registry/passwords.py",
        "        self._known.clear()\n        _log.info(",
        "        _log.info(",
        (f"{_PASSWORDS}::test_a_file_that_changed_is_read_again",),
    ),
    # These mutants concern the registry's client.
    Mutant(
        "a JSON Schema passes for an Avro schema",
        "schemas/client/registry_client.py",
        "if type_ != AVRO:",
        "if not type_:",
        (f"{_CLIENT}::test_a_schema_of_another_type_is_not_taken_for_avro",),
    ),
    Mutant(
        "an id means what the versions that it references are now",
        "schemas/client/resolution.py",
        "avro = None if resolved is None else _self_contained(resolved)",
        "avro = None if resolved is None or references else _self_contained(resolved)",
        (f"{_LASTING}::test_an_old_id_keeps_its_types_when_a_referenced_version_is_made_again",),
    ),
    Mutant(
        "types are remembered by the number of their version",
        "schemas/client/resolution.py",
        """        known = self._known.get(version.id)
        if known is None:
            _, known = self._read(version.id, version.schema, version.references, depth + 1)
            if len(self._known) >= KEPT_MAX:
                self._known.clear()
            self._known[version.id] = known
""",
        """        known = self._known.get(version.version)
        if known is None:
            _, known = self._read(version.id, version.schema, version.references, depth + 1)
            if len(self._known) >= KEPT_MAX:
                self._known.clear()
            self._known[version.version] = known
""",
        (f"{_CLIENT}::test_types_that_the_client_resolves_itself_belong_to_an_id",),
    ),
    Mutant(
        "a registry that is away passes for one that does not resolve references",
        "schemas/client/registry_client.py",
        "FORMAT_UNKNOWN: Final = frozenset({400, 501})",
        "FORMAT_UNKNOWN: Final = frozenset({400, 404, 501})",
        (f"{_CLIENT}::test_a_registry_that_fails_is_not_taken_for_one_that_does_not_resolve",),
    ),
    Mutant(
        "a registry that answers with any error passes for one that does not resolve references",
        "schemas/client/registry_client.py",
        "if unreachable.statuses == {FORMAT_FAILS}:",
        "if unreachable.statuses:",
        (f"{_CLIENT}::test_a_registry_that_fails_is_not_taken_for_one_that_does_not_resolve",),
    ),
    Mutant(
        "a registration with references is remembered",
        "schemas/client/registry_client.py",
        'return ask() if references else self._once(("register", subject, schema), ask)',
        'return self._once(("register", subject, schema), ask)',
        (f"{_CLIENT}::test_a_registration_with_references_is_sent_each_time",),
    ),
    Mutant(
        "an interim answer leaves its connection to the next request",
        "schemas/client/transport.py",
        """            answer.close()
            raise HTTPError(f"an interim answer (status {answer.status})")
""",
        """            answer.release_conn()
            raise HTTPError(f"an interim answer (status {answer.status})")
""",
        (
            "tests/conformance/registry/test_connections.py::"
            "test_an_answer_that_is_none_is_named_and_the_next_one_is_not_taken_for_it",
        ),
    ),
)
