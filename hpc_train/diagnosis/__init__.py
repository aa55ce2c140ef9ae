"""Logs -> Diagnosis: whether the job failed, the first failure, and its consequences.

Here: the scan of all logs of a job, and the conclusion.
Not here: the texts of failures (`signatures`, `data/signatures/`).
"""
