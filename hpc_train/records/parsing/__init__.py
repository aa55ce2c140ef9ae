"""Building blocks of parsers: the protocol, numbers, fields, step counts, bars, tables.

Here: how a part of a line is read, for one or several parsers, and the parser of a user's own
pattern. Not here: the parsers of known formats, which are registered and in `records.parsers`.
"""
