"""Executors: a run folder -> something that runs its script."""
