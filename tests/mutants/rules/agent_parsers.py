"""Mutants of the agent's parsers for CSV, logfmt, log4j, and lines that have a prefix before their
JSON."""

from mutants.mutant import Mutant

CSV = "tests/unit/agent/parsing/test_csv_lines.py::"
LOGFMT = "tests/unit/agent/parsing/test_logfmt.py::"
PREFIXED = "tests/unit/agent/parsing/test_prefixed_json.py::"
JSON = "tests/unit/agent/parsing/test_json_lines.py::"
LOG4J = "tests/unit/agent/test_log4j.py::"
CONTAINERS = "tests/unit/agent/parsing/test_containers.py::"

MUTANTS = (
    Mutant(
        "a delimiter inside a quoted value divides it",
        "agent/parsing/csv_lines.py",
        "        delimiters = delimiters[before % 2 == 0]\n",
        "        delimiters = delimiters[before % 2 >= 0]\n",
        (f"{CSV}test_values_are_those_of_pythons_csv_module",),
    ),
    Mutant(
        "a header becomes a row",
        "agent/parsing/csv_lines.py",
        "            good = np.logical_and(good, ~is_header)\n",
        "            pass\n",
        (f"{CSV}test_a_line_is_a_header_because_of_its_own_text",),
    ),
    Mutant(
        "a header that is left out is counted by no rule",
        "agent/batches/shape.py",
        "    return parsed, LeftOut(rows, np.full(len(rows), NO_TIME), np.full(len(rows), rule))\n",
        "    rows = rows[:0]\n"
        "    return parsed, LeftOut(rows, np.full(len(rows), NO_TIME), np.full(len(rows), rule))\n",
        ("tests/unit/agent/loop/test_filters.py::test_headers_of_csv_are_counted_as_filtered",),
    ),
    Mutant(
        "a recipe of an earlier version leaves headers out",
        "agent/parsing/csv_lines.py",
        "CSV_HEADER if skips_headers else NO_MATCH\n",
        "CSV_HEADER\n",
        (f"{CSV}test_recipes_of_earlier_versions_still_reject_headers",),
    ),
    Mutant(
        "a quotation mark behind a word begins a value",
        "agent/parsing/key_values.py",
        "            odd[line[np.where(begins, ~np.isin(quotes, quoted), ~ends)]] = True\n",
        "            odd[line[np.where(begins, ~np.isin(quotes, quoted), False)]] = True\n",
        (f"{LOGFMT}test_lines_are_cut_together_as_one_by_one",),
    ),
    Mutant(
        "a value that does not fit its field vanishes",
        "agent/parsing/logfmt.py",
        "                index.give_back(field.name, unfit)\n",
        "                pass\n",
        (f"{LOGFMT}test_keys_become_fields_and_the_rest_is_kept",),
    ),
    Mutant(
        "a rejected line names only the outer member",
        "agent/parsing/misfits.py",
        "            return place + found[0], found[1]\n",
        '            return "", found[1]\n',
        ("tests/unit/agent/parsing/test_misfits.py::test_a_rejected_line_names_the_nested_member",),
    ),
    Mutant(
        "a rejected object is named at the place of another line",
        "agent/parsing/prefixed_json.py",
        "        placed = in_places(inner, outer.rows)\n",
        "        placed = inner\n",
        (f"{PREFIXED}test_lines_that_do_not_fit_are_rejected_at_their_places",),
    ),
    Mutant(
        "another JSON decoder counts as the same program behind a prefix",
        "agent/batches/program_versions.py",
        'recipe.parser == "json" or recipe.json_field is not None or recipe.is_replay\n',
        'recipe.parser == "json" or recipe.is_replay\n',
        (f"{PREFIXED}test_a_recipe_says_which_group_is_json",),
    ),
    Mutant(
        "two texts of a conversion pattern may follow one another",
        "agent/formats/layout.py",
        '        if piece.kind == "text" and following.kind not in ("literal", "optional"):\n',
        '        if piece.kind == "text" and following.kind == "trace":\n',
        (f"{LOG4J}test_patterns_that_nobody_can_read_back_are_refused",),
    ),
    Mutant(
        "the blanks of a width become an empty value beside them",
        "agent/formats/layout.py",
        "        if piece.regex == _BLANKS and _text_follows(rest):\n",
        "        if piece.regex == _BLANKS and _text_follows([]):\n",
        (f"{LOG4J}test_an_empty_value_is_read_as_empty",),
    ),
    Mutant(
        "a number that no double can be becomes infinity",
        "agent/parsing/json_lines.py",
        "    if math.isinf(number):\n",
        "    if math.isnan(number):\n",
        (f"{JSON}test_numbers_that_no_double_can_be_are_refused",),
    ),
    Mutant(
        "a docker line may be in UTF-16, and as deep as it likes",
        "agent/parsing/containers.py",
        'json.loads(line.decode("utf-8-sig", "surrogatepass"))',
        "json.loads(line)",
        (f"{CONTAINERS}test_a_docker_line_with_nul_bytes_ends_nothing_however_deep_it_is",),
    ),
)
