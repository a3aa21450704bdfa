"""Shapes records before they are encoded: leaves records out, and changes or removes their fields.

    text -> grammar.parse -> rules -> checking.check -> shaper.Shaper
                                                          rows -> rows, and which rule left out what

A source's setting `shape` is a text with one rule a line. The rules are applied in the order of the
text. What becomes of a record depends only on the record's fields, its origin (agent, file,
position and length) and the key of `hash`. It depends neither on a clock, nor on chance, nor on
other records. So if the agent sends records again, the same rules leave out the same records.

Read the modules in this order: rules (the language as values, and their text), words (the text cut
into words), grammar (words to rules), checking (whether rules fit the fields of the records),
sampling, conditions, kinds (how to recognize cards, addresses and other private texts), masks,
growth (how much longer masks may make a text), pseudonyms (what `hash` writes), shaper (applies all
rules to columns), unescaped (a line without its escapes), rejected_text (which part of a rejected
line may be sent), and shaped_schemas (the schema before and after the rules).

These modules do not encode records and do not count them; `skidway.agent.batches.press` does.
"""
