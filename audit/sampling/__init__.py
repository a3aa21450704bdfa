"""Compares the content of rows and records with the lines on the hosts (`skidway audit sample`).

Agents choose random ranges of bytes in the files that they have delivered. They make the records of
these ranges again, and publish a checksum of each record's content, its content sum
(agent/sampling, audit/counts/content.py). For each of these records, this package finds the row in
the output. If the output has no row yet, the package reads the record from a broker. The package
computes the content sum of this row or record, and compares this sum with the agent's sum.

    told             reads the samples that agents have published on the audit topics
    wanted           values: a sample's sums for one topic, and the rows and records that were found
    row_contents     the rows of one Parquet file with their content sums
    record_contents  the records of batches with their content sums, without I/O
    comparison       decides, without I/O, which rows and records are equal to the samples, which
                     differ, and which cannot be compared
    survey           looks for rows and records, and finds out what differs in them
    sample_report    the result of a survey as text, as JSON and as messages

To compute the sum of a row, the package makes the row's record again. It converts the columns back
to the types of the record's schema, and encodes them with this schema. The resulting datum is the
canonical form of the values, so agent and audit compute the sum of the same bytes. If the output
has a newer schema that has renamed or removed a field, the row lacks this field's column. Such a
row cannot be compared, and the report names the column.

If the sums are equal, the row has the values that the agent's present version makes from the line,
with the settings with which the agent sent the line. Equal sums do not prove that these settings
are what the operator meant. The sums do not cover columns that come from other schemas than the
row's own. They do not cover the record's key either: neither a row nor a sample has it. Host and
path of a row are compared with those of the sample: both come from the announcement of the file id,
so renaming the file changes neither.

`skidway audit sample` changes neither rows nor records. With --tell, it sends messages with the
results to the collector.
"""
