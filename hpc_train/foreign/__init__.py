"""Results that other programs stored: tables and files of stated sizes.

Here: the header and cells of a table, points.yaml, and duplicates; they become runs and records.
Not here: logs (`logs`), the kinds of logs.
"""
