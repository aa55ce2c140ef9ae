"""Options are read as getopt_long reads them: names, aliases, prefixes."""

from collections.abc import Callable

import pytest

from hpc_train.base.shell import Word
from hpc_train.base.slurm_options import Grammar, sbatch_grammar, srun_grammar
from hpc_train.lint.directives import read_options, refused_value
from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.rules.torchrun import OPTIONS


@pytest.mark.parametrize(
    ("grammar", "spelled", "name"),
    [
        (sbatch_grammar, "nodes", "nodes"),
        (sbatch_grammar, "tasks", "ntasks-per-node"),
        (sbatch_grammar, "job", "job-name"),
        (sbatch_grammar, "node", None),
        (sbatch_grammar, "treewidth", None),
        (sbatch_grammar, "", None),
        (srun_grammar, "treewidth", "treewidth"),
        (srun_grammar, "pack-group", "het-group"),
        (srun_grammar, "cpu_bind", "cpu-bind"),
    ],
)
def test_an_option_has_a_name_an_alias_or_an_unambiguous_prefix(
    grammar: Callable[[], Grammar], spelled: str, name: str | None
) -> None:
    text = f"--{spelled}=1"
    (option,), _ = read_options([Word(raw=text, text=text, line=1)], grammar())
    assert (option.name if option.known else None) == name


def test_an_ambiguous_prefix_names_what_it_may_mean_and_takes_its_value() -> None:
    words = [Word(raw=text, text=text, line=3) for text in ("--node", "2", "x")]
    (option,), index = read_options(words, sbatch_grammar())
    assert option.ambiguous == ("nodefile", "nodelist", "nodes")
    assert (option.known, option.value, index) == (False, "2", 2)
    (unknown,), _ = read_options([Word(raw="--nods=2", text="--nods=2", line=1)], sbatch_grammar())
    assert (unknown.known, unknown.ambiguous) == (False, ())


@pytest.mark.parametrize(
    ("option", "value", "nearest"),
    [
        ("mail-type", "FAILED", "FAIL"),
        ("signal", "USR3@60", "USR2"),
        ("begin", "now+1hou", "hours"),
        ("gpu-bind", "single", "single:"),
        ("distribution", "block:cyklic", "cyclic"),
        ("nodes", "two", ""),
        ("mem-bind", "locl", "local"),
        ("propagate", "stack", "STACK"),
    ],
)
def test_nearest_word(option: str, value: str, nearest: str) -> None:
    wrong = refused_value(option, value)
    assert wrong is not None
    assert wrong.nearest == nearest


def test_a_list_with_one_valid_part_is_no_refusal() -> None:
    wrong = refused_value("mail-type", "END,FAILED")
    assert wrong is not None
    assert (wrong.part, wrong.ignored) == ("FAILED", True)


def test_the_finding_says_what_is_allowed() -> None:
    [found] = [
        one
        for one in lint_script("#!/bin/bash\n#SBATCH --exclusive=yes\nsrun ./a\n")
        if one.id == "HT020"
    ]
    assert found.line == 2
    assert found.message == "--exclusive=yes: sbatch refuses 'yes'"
    assert found.advice == "allowed: user, mcs or (from Slurm 24.05) topo, or no value"


def test_each_option_of_the_installed_torchrun_is_known() -> None:
    run = pytest.importorskip("torch.distributed.run")
    names = {name for action in run.get_args_parser()._actions for name in action.option_strings}
    long = {name[2:].replace("_", "-") for name in names if name.startswith("--")}
    assert "nproc-per-node" in long
    assert long <= set(OPTIONS)
