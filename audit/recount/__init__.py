"""The recount reads the files of an output and counts their rows, without using the loader's
counts.

The package has these modules:

    manifests        reads the manifests of loads
    checkpoints      reads the checkpoints, which replace manifests that were deleted
    named_files      the list of the output's files
    committed_files  fills the list of files from a checkpoint and manifests
    faults           the faults that a recount finds in files of the output
    row_files        reads one file of rows: its bytes, and the rows in it
    listing          finds files in the output's directories that no manifest names
    later            the loads that are committed while the recount runs
    recount          counts all rows, and compares them with the audit's sums

All functions that read the output may raise `StoreFailed` and `StoreUnreachable` (see the package
output), even if their docstrings do not say so.
"""
