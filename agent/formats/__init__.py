"""Formats of well-known logs by name, and how to recognize them.

catalog.yml  the formats: pattern, types, time, first line of a record, sample
catalog      reads them; what a source with `format` means
guess        says which format fits lines best, and how well
"""
