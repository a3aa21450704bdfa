"""Makes record batches from the lines of files. All functions are pure: they do no I/O, never wait,
and remember nothing.

recipe      everything that decides what becomes of a line, as a value that is stored
press       a compiled recipe: bytes become records, datums, batches
shape       applies the rules of `shape` between parser and codec
filtered    the records that these rules left out
routing     which partition a record goes to
rejected    a line that the press rejects becomes a record of `<topic>.rejected`
rejections  how many lines were rejected lately, for the log and for /health
"""
