"""The command line: options -> one call of the pipeline -> print.

Here: commands and their options, in one module each, and output to a terminal; only `cli` uses
click.
Not here: decisions and files (`pipeline` and the stages), the text of a report (`reports`).
"""
