"""Catalogue of the failures of a training job, and of the lines that report them.

Here: the type of a signature, reading its files, and the text that explains a match.
Not here: the signatures themselves (`data/signatures/*.yaml`), the root cause
(`records.diagnosis`).
"""
