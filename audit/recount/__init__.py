"""The recount: counts the rows of an output itself, the second way to the verdict.

manifests  what the loads say is committed
faults     what is wrong with files of the output, by name and place
row_files  one file of rows: its bytes, and the rows in it
listing    what lies beside what the manifests name
recount    counts all of it, and compares with the sums
"""
