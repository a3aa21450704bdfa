"""Supports reloads. A reload is a load that reads again, from the log, records that the output
already has, and replaces their files. This package decides at which offsets a reload begins to
read, and checks that the records are the same as before.

    hours        which hours one load reads again, and the check that their records are the same
    lineage      which loads read the records of an hour from the log, and up to which offsets
    beginning    where a reload begins to read: at the offsets where the first load that `lineage`
                 has found began
    names        finds host and path of log files, even of files that were closed later
    rejects      counts how many rejects each bucket of the audit has before the reload

A reload replaces all files of rows and rejects of an hour. The manifests contain the number of
records and the checksum of each file, so the loader knows both for an hour even if the hour's files
are gone. A reload is committed only if number and checksum of the new records are those of the old
records.
"""
