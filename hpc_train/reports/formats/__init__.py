"""Report -> text; one module per format, each with `render(report)`.

Here: the syntax of a format.
Not here: which tables and sentences a report has (`reports`).
"""
