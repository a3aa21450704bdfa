"""Supports reloads. A reload is a load that reads again, from the log, records that the output
already has, and replaces their files. This package decides at which offsets a reload begins to
read.

    lineage      which loads read the records of some files from the log, and up to which offsets
    beginning    where a reload begins to read: at the offsets where the first load that `lineage`
                 has found began
    names        finds host and path of log files, even of files that were closed later
    rejects      counts how many rejects of each bucket of the audit a file has

A reload replaces all files of rows and rejects of its hours, in one load, if the new files have the
same records (rewriting/proof).
"""
