"""Logs -> Diagnosis: what failed first, what followed from it, and whether anything failed."""
