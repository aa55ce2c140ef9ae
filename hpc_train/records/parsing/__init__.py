"""Code that parsers of several formats share: notations, bars, counters and base classes.

Here: code that more than one parser uses, without a format of its own.
Not here: a format (`records.parsers`), reading files and finding lines (`records`).
"""
