"""Code that runs inside a job; no other part of the package imports it.

Here: the reference trainer, the benchmark of collectives (`collectives`) and the
event emitter; only the trainer uses torch.
Not here: anything that runs on the login node.
"""


class WorkloadError(Exception):
    """An option, the environment or the data is invalid; the message is one line."""
