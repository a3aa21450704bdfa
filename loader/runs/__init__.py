"""One run of `skidway load run`, on Spark's driver.

    run               every chosen topic up to the watermarks at the start of the run
    session           what there is before anything is loaded: topics, sources, watermarks
    topic_run         one topic in one run: load after load
    topic_load        one attempt at one load: plan, run, join, commit
    manifest_draft    the manifest of an attempt, made when all slices have run
    parts             what every topic of a run shares
    outcome           what became of a topic, and of the run
    group_offsets     commits the offsets up to which topics are loaded
    status            what is loaded, and what a run would load
    textfile          what became of the last run, for Prometheus

`TopicRun` owns how far its topic is; an attempt that loses the race for its number is thrown away.
"""
