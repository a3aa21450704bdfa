"""Commands that query the audit, and the modules that these commands share. The module audit.cli
defines the command `audit`, and those of its verbs that start programs.

    options      where to read evidence (a store, or the topics of a cluster), and what to expect
    live_ledger  a ledger that reads new messages while a command waits
    polling      asks repeatedly until the answer is good or the time is over
    publication  sends the messages of commands to the collector, through the audit topic
    report       `skidway audit report`
    complete     `skidway audit complete`
    recount      `skidway audit recount`
    accept       `skidway audit accept` and `skidway audit retire`
    decisions    `skidway audit decisions`
    hosts        `skidway audit hosts` and `skidway audit wait`
    history      `skidway audit report --history`
"""
