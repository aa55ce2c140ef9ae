"""The error of the workload for invalid input."""


class WorkloadError(Exception):
    """An option, the environment or the data is invalid; the message is one line."""
