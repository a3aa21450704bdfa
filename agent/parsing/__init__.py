"""Parses lines into columns. The types `log4j` and `python` of the settings have no parser of their
own: `skidway.agent.layouts` makes a pattern for the parser `regex` from them.

    lines (pa.BinaryArray) -> parser.parse(lines, now_ms) -> Parsed
                                  raw     the line is one string field
                                  regex   RE2 over the whole line, named groups are fields
                                  json    one object a line, members are fields
                                  csv     values with a delimiter between them
                                  logfmt  key=value, keys are fields

A parser is a pure function of a line and of `now_ms`, the moment at which the line was read. So the
result for a line does not depend on other lines, and parsing the line again with the same `now_ms`
gives the same result. A line that cannot be parsed becomes a Reject with a reason from a closed
set. Parsers never drop such a line, and never raise an error for it.

Modules in reading order. `skidway.agent.parsers` has what is known of each type of parser.

byte_order     code units and byte order marks of encodings
framing        where each record begins and ends
lines          makes Arrow arrays of lines from bytes
parser         the interface of parsers
left_out       reasons for which lines are left out
timestamps     parses event times; its parts are in the package `times`
unread_times   says why the time of a line could not be read
text_fields    converts texts to the types of fields
raw, regex     the parsers `raw` and `regex`; delimited: faster than RE2, for simple patterns only
csv_lines      the parser `csv`
json_lines     the parser `json`; aliases: other names of members; time_members: times inside
               objects; json_columns: makes columns of members; json_times: dates and times as
               texts; misfits: where a value does not fit its field; fieldless: members without a
               field
prefixed_json  a parser for a JSON object after a prefix
logfmt         the parser `logfmt`; key_values: cuts its lines into keys and values
separators     the signs that divide the texts of a pattern's groups
blank_lines, coloured_lines
               what is done with lines before one of the parsers above gets them
containers     takes a container's lines out of the lines of its runtime (such as Docker);
                   runtimes: the runtimes' names
multiline      joins lines into records; streams: the same for the two streams of a container;
                   joints: where records begin and end; joins: the rules, as settings name them
added_fields   fields from the path, from settings and from labels
replayed       parses repaired lines, with the origins of their rejects
replacing      wraps another parser, and replaces bytes that its encoding does not have
derived        makes a schema for a source that names no schema
"""
