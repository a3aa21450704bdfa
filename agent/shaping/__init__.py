"""Shapes records before they are encoded: leaves records out, and changes or removes their fields.

    text -> grammar.parse -> rules -> checking.check -> shaper.Shaper
                                                          rows -> rows, and which rule left out what

A source's setting `shape` is a text with one rule a line. The rules are applied in the order of the
text. What becomes of a record depends only on the record's fields, its origin (agent, file,
position and length) and the key of `hash`. The result does not depend on a clock, on chance, or on
other records. So if the agent sends records again, the same rules leave out the same records.

Modules in reading order:

rules           rules as values, and the text of each rule
words           cuts the text into words
grammar         makes rules from words
checking        whether rules fit the fields of the records
sampling        which records `sample` keeps
conditions      for which records a condition is true
addresses       how to recognize addresses of IPv6 and IPv4
kinds           how to recognize cards, addresses and other private texts
masks           replaces these texts
texts           the texts of a column, also inside of lists, maps and records
growth          by how much masks may lengthen a text
pseudonyms      what `hash` writes
shaper          applies all rules to columns
unescaped       takes the escapes out of a line
rejected_text   which part of a rejected line may be sent
shaped_schemas  the schema before and after the rules

These modules neither encode records nor count them; `skidway.agent.batches.press` does both.
"""
