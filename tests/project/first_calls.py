"""`python first_calls.py OUTPUT ARGUMENT…`: runs hpctrain, and notes which functions it calls.

Each function of the package is a line `plans/build.py make_plan` of OUTPUT, in the order of the
first calls.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import hpc_train
from hpc_train.cli.main import main

_PACKAGE = str(Path(hpc_train.__file__).parent) + "/"
_called: dict[str, None] = {}


def note(frame: FrameType, event: str, _: object) -> None:
    """Note the function that a frame belongs to."""
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(_PACKAGE):
        _called[f"{code.co_filename.removeprefix(_PACKAGE)} {code.co_name}"] = None


if __name__ == "__main__":
    output = Path(sys.argv.pop(1))
    sys.setprofile(note)
    try:
        main()
    finally:
        sys.setprofile(None)
        output.write_text("".join(f"{line}\n" for line in _called), encoding="utf-8")
