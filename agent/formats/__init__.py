"""Formats of well-known logs by name, and how to recognize them.

catalog.yml  the formats: pattern, types, time, first line of a record, sample
catalog      reads catalog.yml, and puts the settings of a format into a source that names it
log4j        compiles conversion patterns of log4j and Logback
directives   what each directive of a conversion pattern writes
java_dates   compiles the date patterns in conversion patterns
python_logging  compiles formats of Python's logging
layout       what log4j and python_logging have in common
"""
