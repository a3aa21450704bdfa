"""Finds out how an unknown log is written, from its first lines. Needs no settings, and tries
nothing: `skidway.agent.commands.guessing` tries the proposals.

    written_times    how times are written (time_forms: composes forms of their parts;
                     time_neighbours: what else belongs to a time; zone_letters: letters of zones)
    separated, pairs, prefixed_json
                     proposals for values with a delimiter, for pairs, for JSON after a prefix
    shares           how much of a log is looked at
"""
