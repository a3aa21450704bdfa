"""Formats of well-known logs by name, and how to recognize them.

catalog.yml  the formats: pattern, types, time, first line of a record, sample
catalog      reads them; what a source with `format` means
log4j        conversion patterns of log4j and Logback (directives: what their directives write;
             java_dates: the dates in them)
python_logging  formats of Python's logging
layout       what these two have in common
"""
