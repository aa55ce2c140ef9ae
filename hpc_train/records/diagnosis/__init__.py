"""Logs -> Diagnosis: what failed first, what followed from it, and whether anything failed.

Here: the scan of all logs of a job, and the conclusion.
Not here: the texts of failures (`records.signatures`, `data/signatures/`).
"""
