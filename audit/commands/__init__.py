"""Commands that ask the audit, and what they have in common. audit.cli has the noun, and
the verbs that are programs.

    options      where evidence is read (a store, or the topics of a cluster), and what is expected
    live_ledger  a ledger that is kept up to date while somebody waits
    polling      looks at hosts again and again, also while a cluster is away
    publication  what commands tell the collector, on the audit topic
    report       `skidway audit report`
    recount      `skidway audit recount`
    accept       `skidway audit accept` and `skidway audit retire`
    decisions    `skidway audit decisions`
    hosts        `skidway audit hosts` and `skidway audit wait`
"""
