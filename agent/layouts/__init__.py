"""Compiles the conversion patterns of programs to regular expressions.

log4j           conversion patterns of log4j and Logback
directives      what each directive of a conversion pattern writes
java_dates      the date patterns in conversion patterns
python_logging  formats of Python's logging
layout          what log4j and python_logging have in common
"""
