"""Layout of bundles, and reading of bundles.

Here: the names of a bundle's files, their checks, and a bundle as the runs of a report.
Not here: writing a bundle (`pipeline.packing`).
"""
