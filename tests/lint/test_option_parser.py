"""Options are read as getopt_long reads them: names, aliases, prefixes."""

from __future__ import annotations

import pytest

from hpc_train.lint.option_parser import full_name, read_options
from hpc_train.lint.shell.ast import Word
from hpc_train.slurm_options import sbatch_grammar, srun_grammar


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("nodes", "nodes"),
        ("tasks-per-node", "ntasks-per-node"),
        ("tasks", "ntasks-per-node"),
        ("cluster", "clusters"),
        ("job", "job-name"),
        ("part", "partition"),
        ("external", "external"),
        ("node", None),
        ("gpu", None),
        ("mem-per", None),
        ("jobid", None),
        ("treewidth", None),
        ("", None),
    ],
)
def test_sbatch_accepts_a_name_an_alias_or_an_unambiguous_prefix(
    spelled: str, name: str | None
) -> None:
    assert full_name(spelled, sbatch_grammar()) == name


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("treewidth", "treewidth"),
        ("pack-group", "het-group"),
        ("pack", "het-group"),
        ("cpu_bind", "cpu-bind"),
        ("jobid", "jobid"),
        ("job", None),
        ("context", "context"),
    ],
)
def test_srun_has_options_of_its_own(spelled: str, name: str | None) -> None:
    assert full_name(spelled, srun_grammar()) == name


def test_an_ambiguous_prefix_names_what_it_may_mean_and_takes_its_value() -> None:
    words = [Word(raw=text, text=text, line=3) for text in ("--node", "2", "x")]
    (option,), index = read_options(words, sbatch_grammar())
    assert option.ambiguous == ("nodefile", "nodelist", "nodes")
    assert (option.known, option.value, index) == (False, "2", 2)
    (unknown,), _ = read_options([Word(raw="--nods=2", text="--nods=2", line=1)], sbatch_grammar())
    assert (unknown.known, unknown.ambiguous) == (False, ())
