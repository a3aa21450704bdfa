"""Parses lines into columns, with one parser for each type of source.

    lines (pa.BinaryArray) -> parser.parse(lines, now_ms) -> Parsed
                                  raw     the line is one string field
                                  regex   RE2 over the whole line, named groups are fields
                                  json    one object a line, members are fields
                                  csv     values with a delimiter between them
                                  logfmt  key=value, keys are fields

A parser is a pure function of a line and of `now_ms`, the moment at which the line was read. So the
result for a line does not depend on other lines. If the line is parsed again later, the result is
the same. A line that cannot be parsed becomes a Reject with a reason from a closed set. Parsers
never drop such a line, and never raise an error for it.

Read the modules in this order: byte_order (code units and byte order marks of encodings), framing
(where each record begins and ends), lines (bytes to Arrow), parser (the interface of parsers),
timestamps (event times), text_fields (converts texts to the types of fields), and the parsers raw,
regex (with delimited, a faster way for simple patterns), csv_lines, json_lines (misfits: where a
value does not fit its field), prefixed_json (an object behind a prefix) and logfmt (with
key_values, which cuts its lines). Then read containers (takes a container's lines out of its
runtime's lines), multiline (records of several lines), added_fields (fields from the path and the
settings), replayed (repaired lines with the origins of their rejects), replacing, which wraps
another parser for lines that are not UTF-8, and derived, which makes a schema for sources that name
no schema. `skidway.agent.batches.parsers` picks the parser of a source.
"""
