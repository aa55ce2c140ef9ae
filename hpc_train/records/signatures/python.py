"""Signatures of Python itself: the last resort for a traceback, wrong arguments."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

PYTHON = (
    Signature(
        id="python_usage",
        group="python",
        severity="fatal",
        literals=(
            b": error: unrecognized arguments",
            b": error: the following arguments",
            b": error: argument ",
        ),
        pattern=re.compile(
            r"(?<!\S)(?P<program>[^\s:]{1,80}): error: (?P<text>(?:unrecognized arguments"
            r"|the following arguments are required|argument \S{1,60}): [^\n]{1,200})"
        ),
        title="{program} does not understand its arguments: {text}",
        cause="An option that this version does not know, or a missing one.",
        advice="Compare with `--help`; quotes and empty variables in the job script.",
        example="train.py: error: unrecognized arguments: --local-rank=3",
    ),
    Signature(
        id="python_usage_click",
        group="python",
        severity="fatal",
        literals=(
            b"Error: No such option",
            b"Error: Missing ",
            b"Error: Invalid value for ",
            b"Error: Got unexpected extra ",
        ),
        pattern=re.compile(
            r"^Error: (?P<text>(?:No such option|Missing (?:option|argument)|Invalid value for"
            r"|Got unexpected extra)[^\n]{1,200})"
        ),
        title="The program does not understand its arguments: {text}",
        cause="An option that this version does not know, or a missing one.",
        advice="Compare with `--help`; quotes and empty variables in the job script.",
        example="Error: No such option: --local-rank",
    ),
    Signature(
        id="python_syntax",
        group="python",
        severity="fatal",
        literals=(b"SyntaxError: ", b"IndentationError: "),
        pattern=re.compile(
            r"^(?:\w{1,40}\.){0,4}(?:Syntax|Indentation)Error: (?P<text>[^\n]{1,200})"
        ),
        title="A file is no Python: {text}",
        cause="A slip in the file, or a Python that is too old for it.",
        advice="`python -m py_compile FILE`; `python --version` in the job.",
        example="SyntaxError: invalid syntax",
    ),
    Signature(
        id="python_interrupted",
        group="python",
        severity="info",
        role="consequence",
        literals=(b"KeyboardInterrupt", b"SystemExit"),
        pattern=re.compile(r"^(?P<type>KeyboardInterrupt|SystemExit)(?:$|: )"),
        title="Python was interrupted ({type})",
        cause="A signal: somebody or the scheduler stopped the program.",
        advice="Look for what Slurm says at this time.",
        example="KeyboardInterrupt",
    ),
    Signature(
        id="python_exception",
        group="python",
        severity="fatal",
        literals=(b"Traceback (most recent call last)",),
        pattern=re.compile(
            r"^(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,10}[A-Za-z_]\w{0,80})"
            r"(?::$|: (?P<message>.{0,400})|$)"
        ),
        title="{type}{of_rank}: {message}",
        cause="The program met an error that it does not handle.",
        advice="Read the traceback at the place above, from its last frame up; the message says"
        " what is wrong.",
        example="Traceback (most recent call last):\n"
        '  File "train.py", line 3, in main\n    build()\n'
        "ValueError: heads must divide the width",
    ),
)
