"""Makes record batches from the lines of files. All functions are pure: they do no I/O, never wait,
and remember nothing.

recipe            everything that decides what becomes of a line, as a value that is stored
program_versions  the versions of code that are a part of a recipe
source_recipes    the recipe that a source's settings give; the schema of a source that sets none
parsers           the framer and the parser of a recipe
framed_lines      the lines of readings, each with its place in its file
records           records of one topic, as columns
press             a compiled recipe: bytes become records, datums, batches
shape             applies the rules of `shape` between parser and codec
filtered          the records that rules of `shape` left out
outcomes          what became of the bytes of each reading
routing           which partition a record goes to
rejected          a line that the press rejects becomes a record of `<topic>.rejected`
rejections        how many lines were rejected lately, for the log and for /health
"""
