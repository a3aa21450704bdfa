"""`skidway audit compare` compares log files with the records that another log shipper has sent to
a Kafka topic, so that you can check that shipper before you replace it. The command only reads: it
commits no offsets, and does not disturb the shipper. If the files may be deleted before the
comparison, `skidway agent count` can make notes of their lines. Then `skidway audit compare` reads
these notes instead of the files.

    shapes   the *shapes* of records: in which fields each shipper writes host, path, offset and
             line
    lines    reads the whole lines of files, rotated and compressed ones too
    notes    defines how the notes of `skidway agent count` are stored, and reads them
    matching joins lines and records, without I/O: which lines are missing, doubled, changed, or not
             shipped yet
    reports  the result of a comparison as tables and JSON documents

A line and a record belong together if they have the same text, path and first byte. The first byte
is the position at which the line begins in its file. (The record's path may also be the path that
the file had before a rotation.) If the records of a shape have no path or no first byte, only the
other values are compared. A line that is in a file twice needs two records. If a line without a
record and a record without a line begin at the same byte of a file, the line was changed.

    records    0   1   2   2   4
    lines      0   1   2   3   4   5   6
                           |       |------ after the last shipped byte: not shipped yet
                       |   +-- missing
                       +-- doubled

Lines before the first shipped line of a file count as missing in only two cases. In the first case,
all records of the topic were read. In the second case, the lines come from notes, which say, for
each file, after which time all its lines were written; and all records since this time were read.
In any other case (with --since, or after records have expired), the shipper may have sent these
lines earlier. Records are read up to the ends that their partitions had before the first file was
read. So the files have the line of every record, unless a file was deleted or the line was changed.
The command also prints how many records belong to no line.

Memory holds only a few numbers for each line: the hash of its text, its first byte and its length.
So a missing line could stay unnoticed if another text has the same hash (64 bits). With a million
lines, the chance that any two hashes are equal is below 1 in 10^7.
"""
