"""What a person leaves out -> runs by name, each with the reason that was given."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.errors import ReportError


def exclusions(words: Sequence[str]) -> dict[str, str]:
    """Return run -> reason from words like `1-srun-r2=node 3 was down`.

    Raises:
        ReportError: a word has no run or no reason.
    """
    found = {}
    for word in words:
        run, _, reason = word.partition("=")
        if not run or not reason.strip():
            raise ReportError(
                f"--exclude {word!r}: a run and a reason are needed",
                "--exclude 'RUN=why it must not count'",
            )
        found[run] = reason.strip()
    return found
