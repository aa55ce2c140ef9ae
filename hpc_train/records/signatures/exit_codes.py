"""Exit code of a process, as launchers print it -> its meaning, cause and advice."""

from __future__ import annotations

from functools import cache
from typing import Literal

from hpc_train.decode import load_data
from hpc_train.model.value import Value


class Ended(Value, frozen=True, kw_only=True):
    """How a process ended, in words; `how` continues a sentence after the name of the process."""

    how: str
    cause: str
    advice: str


class _Codes(Ended, frozen=True, kw_only=True):
    """The meaning of some codes; `crash`: a signal that is not sent to end a job."""

    codes: tuple[str, ...]
    crash: bool = False


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    exit_codes: tuple[_Codes, ...]
    other: Ended


@cache
def _file() -> _File:
    return load_data("exit_codes.yaml", _File)


@cache
def _by_code() -> dict[str, _Codes]:
    return {code: row for row in _file().exit_codes for code in row.codes}


def ended(exit_code: str) -> Ended:
    """Return what an exit code means."""
    known = _by_code().get(exit_code)
    if known is not None:
        return known
    other = _file().other
    return Ended(
        how=other.how.replace("{exit_code}", exit_code),
        cause=other.cause,
        advice=other.advice.replace("{exit_code}", exit_code),
    )


def is_crash(exit_code: str) -> bool:
    """Whether a process was killed or crashed without a message."""
    known = _by_code().get(exit_code)
    return known is not None and known.crash
