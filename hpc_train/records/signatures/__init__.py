"""Catalogue of what goes wrong in a training job, and how logs say so.

Here: the type of a signature, reading its files, and the text that explains a match.
Not here: the signatures themselves (`data/signatures/*.yaml`), the root cause
(`records.diagnosis`).
"""
