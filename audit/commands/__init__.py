"""Commands that ask the audit, and what they have in common. audit.cli has the noun, `run` and
`report`.

    asking      where evidence is read (a store, or the topics of a cluster), and what is expected
    following   a ledger that is kept up to date while somebody waits
    patience    how often is looked, and what happens while a cluster is away
    saying      what commands tell the collector, on the audit topic
    deciding    `skidway audit accept` and `skidway audit retire`
    decided     `skidway audit decisions`
    hosts       `skidway audit hosts` and `skidway audit wait`
"""
