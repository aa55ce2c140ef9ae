"""Executors: a run folder -> something that runs its script.

Here: submission, query and cancellation, one executor each; `base.Executor` is the interface.
Not here: the files of a run folder (`runs`), which state they mean (`job_state`).
"""
