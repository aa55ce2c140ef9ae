"""Each option that hpctrain writes or calls is in every version of Slurm."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from hpc_train.base.slurm_options import Grammar, sbatch_grammar, srun_grammar
from hpc_train.plans.explanations import (
    Fact,
    OptionRange,
    missing_option,
    option_range,
    slurm_versions,
)
from tests.project.called_options import ROOT, Used, in_module, in_script

SCRIPTS = sorted((ROOT / "tests" / "golden").rglob("*.sbatch"))
MODULES = sorted((ROOT / "hpc_train").rglob("*.py"))
TEMPLATES = sorted([*(ROOT / "templates").iterdir(), *ROOT.glob("hpc_train/data/in_job/*.sh")])
TESTED = ("20.11", "21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05")
# Slurm's versions: the years 20 to 29, and the months in which there was one.
_VERSION = re.compile(r"(?<![\d.])2\d\.(?:02|05|08|11)(?![\d])")
_GRAMMARS = {"sbatch": sbatch_grammar, "srun": srun_grammar}


@cache
def used() -> set[Used]:
    """Return every option of a rendered script, a template and a call of the package."""
    texts = [path.read_text(encoding="utf-8") for path in (*SCRIPTS, *TEMPLATES)]
    scripts = {pair for text in texts for pair in in_script(text)}
    return scripts | {pair for path in MODULES for pair in in_module(path)}


def problem(program: str, option: str, version: str) -> str:
    """Return why a version of a program does not have an option; empty if it has it."""
    if program in _GRAMMARS:
        grammar: Grammar = _GRAMMARS[program]()
        short = len(option) == 1 or option[1:].isdigit()
        name = grammar.short.get(option[0], "") if short else option
        known = name in grammar.long
    else:
        name, known = option, option in slurm_versions().everywhere[program]
    return missing_option(program, name, version) if known else f"{program} has no {option}"


def test_the_options_are_found() -> None:
    found = used()
    assert len(SCRIPTS) > 60
    assert {
        ("sbatch", "open-mode"), ("sbatch", "gres"), ("sbatch", "test-only"), ("sbatch", "exclude"),
        ("srun", "kill-on-bad-exit"), ("srun", "nodes"), ("srun", "overlap"), ("srun", "mpi"),
        ("squeue", "steps"), ("squeue", "states"), ("sinfo", "Node"),
        ("sacct", "parsable2"), ("sacctmgr", "P"), ("scontrol", "oneliner"),
    } <= found  # fmt: skip


@pytest.mark.parametrize("version", TESTED)
def test_every_version_has_what_is_written_and_called(version: str) -> None:
    assert [why for pair in sorted(used()) if (why := problem(*pair, version))] == []


def test_the_versions_are_in_order() -> None:
    table = slurm_versions()
    assert table.versions == TESTED
    items: tuple[Fact | OptionRange, ...] = (*table.facts.values(), *table.options)
    for item in items:
        assert {item.first, item.last} <= {*TESTED, None}
        assert item.source
    for one in table.options:
        assert one.first or one.last
        for program in one.of:
            assert option_range(program, one.names[0]) is one


def test_each_mention_of_a_version_is_a_fact() -> None:
    """A version in code, data or a template is that of a fact which names the file."""
    own = ROOT / "hpc_train" / "data" / "slurm_versions.yaml"
    data = (ROOT / "hpc_train" / "data").rglob("*.yaml")
    found = {}
    for path in (*MODULES, *TEMPLATES, *data, *(ROOT / "hpc_train").rglob("*.lua")):
        text = _EXAMPLES.sub("", path.read_text(encoding="utf-8"))
        if path != own and (versions := set(_VERSION.findall(text))):
            found[str(path.relative_to(ROOT))] = versions
    facts = slurm_versions().facts.values()
    known = {place: set[str]() for fact in facts for place in fact.places}
    for fact in facts:
        for place in fact.places:
            known[place] |= set(_versions_of(fact))
    unknown = {place: versions - known.get(place, set()) for place, versions in found.items()}
    assert {place: versions for place, versions in unknown.items() if versions} == {}
    assert {place for place in known if place not in found} == set()


# No statement about Slurm: the supported range, and examples of a version or a folder.
_EXAMPLES = re.compile(
    r"20\.11 to 2\d\.\d\d|'\d\d\.\d\d'|23\.11 (or|and) 23\.11\.4|slurm-\d\d\.\d\d|24\.11\.5"
)


def _versions_of(fact: Fact) -> Iterator[str]:
    yield from (version for version in (fact.first, fact.last, fact.named) if version)
    if fact.last:
        yield TESTED[TESTED.index(fact.last) + 1]
    if fact.first:
        yield TESTED[max(0, TESTED.index(fact.first) - 1)]
