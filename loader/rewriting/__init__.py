"""Rewrites files of rows into fewer and larger files, or into files with the columns of a newer
schema.

    alike          decides whether Spark alone can read an older schema's files with newer files
    groups         chooses the files from which one file is made
    file_columns   the columns of a file that is made from several files
    rewriter       turns the rows of an older schema's files into the rows of the newest schema
    group_rewrite  the work of one task: reads the files of a group, and writes one file

A rewritten file contains the same records as before. The number of rows and the sum of their hashes
do not change, so the audit's counts do not change either. If the bytes of a file are not those that
were committed, the file is damaged. A damaged file is never rewritten, because nobody would notice
the damage in the new file.
"""
