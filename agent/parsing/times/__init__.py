"""The parts of `skidway.agent.parsing.timestamps`, which parses a column of times in one call.

The column becomes a matrix of characters with one row per value. A format is a sequence of steps,
and each step reads one directive in all rows together. What a step reads in a row never depends on
other rows.

scan        the matrix, the position in each row, and what the steps have found so far
directives  the steps of numbers, names, fractions and blanks
zones       the step of %z; offsets of time zones, and which letters (CET) they use when
formats     makes the steps of a format
calendar    the days of dates, and the years of dates without a year
"""
