"""Does one run of `skidway load run`, `load compact` or `load reload`. Also shows loads and runs,
for the other commands. This code runs in the loader's own process, which is Spark's driver if the
run needs Spark. The words:

    run               one execution of one of these commands, over all its topics
    load              one committed step of one topic, with a number: it adds rows, rewrites files,
                      or reads the records of some hours again
    attempt           one try at a load, with a staging directory of its own; if another loader
                      commits a load with the same number first, the attempt is discarded
    resident loader   a process that makes one run after another (`load run --every`)

The modules:

    run               loads every chosen topic up to its watermarks at the start of the run
    run_topics        finds topics, the topics that they mirror, and watermarks, before any load
    topic_loads       the loads of one topic in one run, one after the other
    attempt           the staging directory and the commit of an attempt
    newest_schema     the schema that the rows of a load follow
    load_attempt      an attempt at a load of new records: plan, slices, join, commit
    replacing         the manifest of a load that replaces files by others with the same records
    rewrite_attempt   an attempt at a load that rewrites files: rewrite each group, commit
    conversion        which files must be rewritten before a load adds rows of a new schema
    compaction        `load compact`: puts the small files of each hour together
    reload_attempt    an attempt at a load that reads records again: plan, slices, check, commit
    reload            `load reload`: replaces the files of some hours by what the log has
    hour_marking      marks the hours that are complete, and puts their small files together
    old_manifests     replaces old manifests by a checkpoint
    columns_file      stages the file that lists the columns of the rows
    manifest_draft    the manifest of an attempt, made when all slices have run
    closing           chooses the closed log files that a load forgets
    parts             what all topics of a run share
    run_progress      how far the run has come, in figures, also as metrics for Prometheus
    pace              how fast the run goes, and how long the rest takes
    progress_display  shows the figures of `run_progress` on a terminal, or logs them as events
    working_time      measures how long a load took, without the start of Spark
    outcome           the result of a topic, and of the run
    group_offsets     commits the offsets up to which topics are loaded
    resident          the resident loader
    status            what is loaded, and what a run would load
    run_states        the runs that work on an output now, and the runs that were killed
    history           what each load committed
    textfile          writes the result of the last run into a file for Prometheus
"""
