"""Replaces files by others with the same records: fewer and larger files, files with the columns of
a newer schema, or, for a reload, files that are made from the log again.

    proof          proves that new files have the records of those that they replace
    alike          finds the fields of an older schema's files that Spark alone cannot read together
                   with newer files
    dropped        finds the fields that a newer schema dropped
    groups         chooses the files from which one file is made
    file_columns   the columns of a file that is made from several files
    rewriter       turns the rows of an older schema's files into the rows of the newest schema
    group_rewrite  the work of one task: reads the files of a group, and writes one file

A rewritten file contains the same records as before. The number of rows and the sum of their hashes
do not change, so the audit's counts do not change either. If the bytes of a file are not those that
were committed, the file is damaged. A damaged file is never rewritten, because nobody would notice
the damage in the new file.
"""
