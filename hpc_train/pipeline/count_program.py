"""`--program train:make_model` -> parameters, FLOP and activations of the model, by torch."""

from __future__ import annotations

import re
from typing import NoReturn

import msgspec

from hpc_train.errors import SpecError
from hpc_train.extras import need
from hpc_train.pipeline.bench import python_command
from hpc_train.subprocesses import Finished, run

_MODULE = "hpc_train.workload.count_program"
_FORM = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}", re.ASCII)
_LONGEST_S = 600.0
_NOT_CONDITIONS = ("blocks", "types")


def count_program(word: str) -> dict[str, str]:
    """Return the counts of the model that `module:function` returns, as conditions.

    The function runs in a process of its own, in the current folder, and allocates nothing.

    Raises:
        SpecError: no such function, or its model cannot be built or run without values.
        MissingExtraError: torch is not installed.
    """
    if not _FORM.fullmatch(word):
        raise SpecError(f"--program {word!r}: not MODULE:FUNCTION", "--program train:make_model")
    need("hpctrain advise --program", "torch", only=("torch",))
    done = run([python_command(), "-m", _MODULE, word], _LONGEST_S)
    found = _last_line(done, word)
    if "error" in found:
        where = f" ({found['line']})" if found.get("line") else ""
        raise SpecError(f"--program {word}: {found['error']}{where}", found["hint"])
    return {key: str(value) for key, value in found.items() if key not in _NOT_CONDITIONS}


def _last_line(done: Finished, word: str) -> dict[str, str]:
    lines = done.stdout.strip().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=dict)
    except (IndexError, msgspec.DecodeError):
        _refuse(done, word)


def _refuse(done: Finished, word: str) -> NoReturn:
    last = next(reversed(done.stderr.strip().splitlines()), "it printed nothing")
    raise SpecError(
        f"--program {word}: its process ended with {done.returncode}: {last}",
        f"{python_command()} -m {_MODULE} {word}",
    ) from None
