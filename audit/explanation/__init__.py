"""Explains why a bucket is not complete: the cause, where the cause lies (host, file or offsets),
and the command to run next. The package does no I/O.

    agent_health   why an agent does not deliver, according to its /health
    choice         which bucket to explain first, and which buckets have the same causes
    offsets        the offsets that a place has not counted yet, although another place has
    programs       how the programs of a site were started
    next_command   the next command to run, for each cause
    present_causes what is wrong now, and holds up many buckets (present_cause has its form)
    stopped_programs  counters that have stopped, and outputs that are late
    explanation    turns the findings of a verdict into explanations
    document       explanations as JSON and as text
    worst_problem  the first cause of the worst of all buckets

The command `skidway audit why` and the collector's web pages show the same explanations. The causes
are in judgement.cause; each finding of the judgement names its cause. This package looks at the
evidence once more, and replaces a general cause by a more precise one. For example, if the counter
or loader of a place has not read the missing records yet, `records missing` becomes `load not run`,
`mirror behind` or `counter stopped`.
"""
