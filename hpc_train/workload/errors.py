"""The one error of the workload that is the caller's fault."""


class WorkloadError(Exception):
    """An option, the environment or the data is wrong; the message is one line that says what."""
