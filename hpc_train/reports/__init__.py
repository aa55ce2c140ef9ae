"""DataFrames -> Report -> text, Markdown, CSV, JSON and figures.

Here: sentences, tables and figures of a report, and its formats; only `reports` uses matplotlib.
Not here: numbers that are computed from runs (`scaling`), unit and direction of a metric
(`base.metrics`).
"""
