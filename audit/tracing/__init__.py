"""Follows one line through the tiers: `skidway audit trace`.

A line is identified by its origin (agent id, file id, first byte, length). The header of its record
and columns of its row contain this origin. So if one tier has a line, the search finds it in the
other tiers by these numbers, and need not compare texts.

    lines         values: a *point* (a byte of a file), a record or a row of a line, the *fate* of a
                  line in a tier (whether the tier has it, or why not)
    places        parses what a person writes: HOST:FILE:BYTE, the columns of a row
    host_files    the log files of this host, as `skidway agent state show` lists them
    log_search    finds records in batches, by a point or by an offset, without I/O
    row_search    finds rows in one Parquet file, by a point or by a record
    logs          which topics of a cluster have the records of a source topic, and searches in
                  these topics
    outputs       the committed files of an output, and searches in them
    site          the *site*: the evidence, clusters, output and files in which a command searches
    fates         decides, without I/O, the fate of a line in each tier, and which tier is the first
                  that lacks the line
    trace         finds one line in all tiers; the result is its *story* (its fate in each tier)
    rendering     makes tables and JSON documents from stories

Two rules make a search fast:

- The header of a batch has a Kafka producer id, which belongs to one producer only. An agent is a
  producer, and all records of its batches are its own. So once one batch shows that a producer id
  belongs to an agent that is not wanted, the search reads only the 61-byte headers of the further
  batches with this id, and does not decompress these batches.
- The statistics of a row group in a Parquet file contain the least and the greatest agent, file and
  offset of its rows. If the statistics show that the row group cannot have the row, the search
  skips the row group.

The package only reads: it commits no offsets and changes no files. It does not open the database
with the agent's state, because the audit does not know the agent's tables. It runs `skidway agent
state show --json` as a child process instead.
"""
