"""Compares the content of rows and records with the lines on the hosts (`skidway audit sample`).

Agents draw ranges of files that they delivered, make the records of these ranges once more, and
publish a content sum of each record (agent/sampling, audit/counts/content.py). This package finds
the row of each of these records in the output, or the record in a broker if there is no row yet,
makes the same sum of it, and compares.

    told             reads the samples from the audit topics
    wanted           values: what a sample says about one topic, and what was found of it
    row_contents     the rows of one Parquet file with their content sums
    record_contents  the records of batches with their content sums, without I/O
    comparison       decides, without I/O, what is equal, what differs and what cannot be compared
    survey           looks for rows and records, and asks what differs in them
    sample_report    text, JSON and messages about a survey

A row is turned back into the datum that its record had: its columns are converted back to the types
of the record's schema, and encoded by this schema. The datum is the canonical form of the values,
so both sides make the sum of the same bytes. Rows of a newer schema still have the old columns, as
long as no field was renamed or removed; otherwise the row cannot be compared, and the report says
which column it lacks.

What an equal sum proves: the row has the values that the agent's program makes of the line now, by
the recipe with which it sent the line. It does not prove that the recipe is what the operator
meant. What it does not cover: columns that other schemas added, the names of host and file in a
row, and the record's key.

Nothing is written, except for the message to the collector if the command is asked to tell it.
"""
