"""Foreign results in logs, records or tables.

Here: what a file without a run folder contains, and which runs it describes.
Not here: parsing of lines (`records`), statistics (`tables`).
"""
