"""Compares the content of rows and records with the lines on the hosts (`skidway audit sample`).

Agents choose random ranges of the files that they have delivered. They make the records of these
ranges again, and publish a content sum of each record (agent/sampling, audit/counts/content.py).
For each of these records, this package finds the row in the output. If the output has no row yet,
the package finds the record in a broker. It computes the content sum of the row or record, and
compares it with the agent's sum.

    told             reads the samples from the audit topics
    wanted           values: a sample's sums for one topic, and the rows and records that were found
    row_contents     the rows of one Parquet file with their content sums
    record_contents  the records of batches with their content sums, without I/O
    comparison       decides, without I/O, what is equal, what differs and what cannot be compared
    survey           looks for rows and records, and finds out what differs in them
    sample_report    text, JSON and messages about a survey

To compute the sum of a row, the package makes the row's record again. It converts the columns back
to the types of the record's schema, and encodes them with this schema. The resulting datum is the
canonical form of the values, so agent and audit compute the sum of the same bytes. If the output's
schema is newer than the record's schema, a row still has the old columns, unless a field was
renamed or removed. If a field was renamed or removed, the row cannot be compared, and the report
names the column that the row lacks.

If the sums are equal, the row has the values that the agent's program makes from the line today,
with the settings with which the agent sent the line. Equal sums do not prove that these settings
are what the operator meant. The sums do not cover columns that other schemas added, or the record's
key, which neither a row nor a sample has. Host and path of a row are compared with those of the
sample: both come from the announcement of the file id, so renaming the file changes neither.

The command writes nothing, except that with --tell it sends a message with the result to the
collector.
"""
