"""The recount: counts the rows of an output itself, as a second and independent way to a verdict.

manifests  what the loads say they committed faults     what is wrong with files of the output, by
name and place row_files  one file of rows: its bytes, and the rows in it listing    which files lie
there that no manifest names recount    counts all of it, and compares with the sums
"""
