"""Loops and branches around a command."""

from __future__ import annotations

import pytest

from hpc_train.lint.control_flow import depends, read_blocks, repeats
from hpc_train.lint.shell.commands import read_commands


@pytest.mark.parametrize(
    ("text", "loop", "branch"),
    [
        ("x", False, False),
        ("for n in a b; do\n x &\ndone", True, False),
        ("while read -r n\ndo\n x\ndone < f", True, False),
        ("if [ -z $A ]; then x; fi", False, True),
        ("if [ -z $A ]\nthen\n :\nelse\n x\nfi", False, True),
        ("if a; then b; elif x; then c; fi", False, True),
        ("[ -z $A ] && x", False, True),
        ("case $a in\n b) x ;;\nesac", False, True),
        ("if a; then for n in b; do x; done; fi", True, True),
        ("if a; then b; fi; x", False, False),
        ("for n in $(if a; then b; fi); do :; done\nx", False, False),
        ("until a; do b; done; x", False, False),
        ("a && b; x", False, False),
    ],
)
def test_a_command_knows_its_loops_and_branches(text: str, loop: bool, branch: bool) -> None:
    blocks = {
        command.program: around for command, around in read_blocks(read_commands(text).commands)
    }
    assert (repeats(blocks["x"]), depends(blocks["x"])) == (loop, branch)


def test_a_branch_knows_its_condition() -> None:
    read = read_commands('if [ -z "$A" ] && b; then\n  x\nfi')
    (block,) = dict((c.program, found) for c, found in read_blocks(read.commands))["x"]
    assert block.condition == '[ -z "$A" ] b'
