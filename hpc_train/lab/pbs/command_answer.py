"""CommandAnswer: what a command of the small PBS prints, and its exit code."""

from hpc_train.model.value import Value


class CommandAnswer(Value, frozen=True, kw_only=True):
    """Exit code, standard output and standard error of a command."""

    code: int = 0
    output: str = ""
    errors: str = ""
