"""Formats of well-known logs by name, and how to recognize them.

catalog.yml  the formats: pattern, types, time, first line of a record, sample
catalog      reads catalog.yml, and puts the settings of a format into a source that names it
"""
