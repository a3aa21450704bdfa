"""Helps a load to read records of an output again. This package decides at which offset reading
begins, and checks that the records are the same as before. (The marks of a load say how far it had
loaded each log file; a load uses them to recognize repeats.)

    hours        which hours one load reads again, and the check that their records are the same
    lineage      which loads took the records of an hour from the log, and up to which offsets
    beginning    where reading begins: at the end of the load before all these loads, with its marks
    names        host and path of the log files, including files that were closed since then
    rejects      how many rejects each bucket of the audit has before the reload

A reload replaces all files of an hour, rows and rejects. The manifests have count and checksum of
each file, so the sums of an hour are known even if its files are gone. A reload is committed only
if the records that were read again have the same sums.
"""
