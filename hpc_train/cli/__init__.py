"""The command line: options -> one call of a subject -> print.

Here: commands and their options, in one module each, and output to a terminal; only `cli` uses
click.
Not here: decisions and files (the subjects below), the text of a report (`reports`).
"""
