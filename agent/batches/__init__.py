"""Makes record batches from the lines of files. With two exceptions, all functions are pure: they
do no I/O, never wait, and remember nothing. `program_versions` reads the files of keys and time
zones once, and `rejections` and `fieldless` count.

    program_versions  the versions of code that are a part of a recipe
    source_recipes    makes a source's recipe from its settings, and a schema if the source has none
    row_cost          how many lines may be read together, by what each record adds to its line
    parsers           the framer and the parser of a recipe
    framed_lines      the lines of readings, each with its position in its file
    records           records of one topic, as columns
    press             a compiled recipe: bytes become records, datums, batches
    shape             applies the rules of the setting `shape`, between parser and codec
    filtered          the records that rules of `shape` left out
    outcomes          what became of the bytes of each reading
    routing           which partition a record goes to
    rejected          makes records of `<topic>.rejected` from the lines that the press rejects
    fieldless         how many lines had members without a field, for /health and the audit
    rejections        how many lines were rejected lately, for the log and for /health
"""
