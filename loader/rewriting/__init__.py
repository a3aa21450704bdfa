"""Rewriting files of rows: fewer and larger files, or files in the columns of a newer schema.

    alike          whether plain Spark reads rows of one schema in the columns of another
    groups         which files become one file
    file_columns   the columns of files that become one file
    rewriter       turns the rows of an older schema's files into the rows of the newest schema
    group_rewrite  the work of one task: reads the files of a group, and writes one file

The rows stay the same records: the number of rows and the sum of their hashes do not change, so the
audit's counts do not change either. A file whose bytes are not those that were committed is never
rewritten, because then nobody would notice any more that it is damaged.
"""
