"""The commands of people: they query the audit, or publish decisions and results. The package also
has the modules that these commands share. The module audit.cli defines the command `audit` and its
subcommands `run`, `count` and `validate`.

    options      the common options: where to read evidence (a store, or the topics of a cluster),
                 and what to expect of hosts and tiers
    live_ledger  a ledger that reads new messages while a command waits
    polling      asks repeatedly until the answer is good or the time is over
    publication  sends the messages of commands to the collector, through the audit topic
    report       `skidway audit report`
    complete     `skidway audit complete`
    recount      `skidway audit recount`
    accept       `skidway audit accept`, `skidway audit retire` and `skidway audit disown`
    keys         `skidway audit keys`
    decisions    `skidway audit report --decisions`
    hosts        `skidway audit hosts` and `skidway audit wait`
    tracing_options  the options that say where `trace` looks for lines
    trace        `skidway audit trace`
    compare      `skidway audit compare`
    history      `skidway audit report --history`
    why          `skidway audit why TOPIC`
    every_why    `skidway audit why` without a topic
    agent_health    what the agent on this host says about itself, for `why`
    first_line   reads the first missing, doubled or rejected line, for `why`
"""
