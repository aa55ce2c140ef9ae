"""docs/templates.md: its blocks, fields and filters are those that exist, its examples render."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hpc_train.model.batch_system import BatchSystem
from hpc_train.model.launchers_and_preflight import Rendezvous
from hpc_train.model.plan import Launch, LaunchPlan, Topology
from hpc_train.model.submission import Script
from hpc_train.pipeline.render import Request, prepare
from hpc_train.scripts.jinja_environment import OF_JINJA, OURS
from hpc_train.specs.override import Override

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "templates.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```jinja\n(?P<text>\{# (?P<name>\S+) #\}\n.*?)^```$", re.M | re.S)
BLOCK = re.compile(r"\{% block (\w+) %\}")
SITE = """\
schema: 1
name: mysite
description: d
scheduler: {scheduler}
template: {template}
launchers: {{default: torchrun, allowed: [torchrun, srun, mpirun, spawn, single]}}
setup: [module load python]
"""
EXAMPLES = {match["name"]: match["text"] for match in EXAMPLE.finditer(PAGE)}


def blocks_of(template: str) -> list[str]:
    return BLOCK.findall((ROOT / "templates" / template).read_text(encoding="utf-8"))


def first_column(head: str) -> list[str]:
    """Return the names in code in the first column of the table with this head."""
    rows = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, launcher: str) -> Script:
    monkeypatch.chdir(folder)
    (folder / "templates").mkdir(exist_ok=True)
    (folder / "templates" / name).write_text(EXAMPLES[name])
    scheduler = "local" if name == "plain.sh.j2" else "slurm"
    (folder / "mysite.yaml").write_text(SITE.format(scheduler=scheduler, template=name))
    (folder / "train.py").touch()
    settings = {"launcher": launcher, "resources.cpus_per_task": 1, "resources.tasks_per_node": 1}
    overrides = tuple(Override(key=k, value=v, origin="--set") for k, v in settings.items())
    request = Request(path=Path("train.py"), site="mysite", overrides=overrides)
    return prepare(request).points[0].script


def test_the_blocks_on_the_page_are_those_of_the_templates() -> None:
    named = sorted(first_column("block"))
    assert sorted(blocks_of("slurm.sbatch.j2")) == named
    assert sorted(blocks_of("local.sh.j2")) == named
    assert blocks_of("nested.sbatch.j2") == ["header"]


def test_the_functions_on_the_page_are_those_that_a_script_calls() -> None:
    named = {name.split()[0] for name in first_column("function")}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "templates").glob("*.j2")]
    calls = r"(?:^(?:MASTER_PORT=\$\()?|command\(\")(hpctrain_\w+)(?!\w|\()"
    # hpctrain_run calls it; a template that launches without hpctrain_run has to.
    called = {*re.findall(calls, "\n".join(texts), re.M), "hpctrain_check_mounts"}
    assert named == called
    assert not [name for name in named if f"\n{name}() {{\n" not in "".join(texts)]


def test_the_fields_on_the_page_are_those_of_a_plan() -> None:
    assert sorted(first_column("`plan.…`")) == sorted(LaunchPlan.__struct_fields__)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("topology", (*Topology.__struct_fields__, "world_size")),
        ("launch", Launch.__struct_fields__),
        ("rendezvous", Rendezvous.__struct_fields__),
    ],
)
def test_the_words_of_a_field_are_on_the_page(field: str, words: tuple[str, ...]) -> None:
    table = PAGE.partition("| `plan.…` |")[2]
    row = re.findall(rf"^\| `{field}` \| (.+) \|$", table, re.M)[0]
    assert sorted(re.findall(r"`([^`]+)`", row)) == sorted(words)


def test_the_fields_of_the_batch_system_on_the_page_exist() -> None:
    table = PAGE.partition("| `batch.…` |")[2].partition("\n\n")[0]
    named = [
        name
        for row in table.splitlines()[2:]
        for name in re.findall(r"`(\w+)`", row[: row[1:].index("|")])
    ]
    computed = [name for name, part in vars(BatchSystem).items() if isinstance(part, property)]
    assert sorted(named) == sorted([*BatchSystem.__struct_fields__, *computed])


def test_the_filters_on_the_page_exist() -> None:
    assert sorted(first_column("filter")) == sorted([*OURS, "exports"])
    text = PAGE.partition("Of Jinja's own filters")[2].partition("Those that escape")[0]
    assert set(re.findall(r"`(\w+)`", text)) - set(OF_JINJA) == set()


@pytest.mark.process
def test_each_example_is_a_sound_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in EXAMPLES:
        for launcher in ("torchrun", "spawn", "single"):
            text = example(name, tmp_path, monkeypatch, launcher).text
            assert text.startswith("#!/bin/bash\n")
            made.append(tmp_path / f"{name}.{launcher}.sh")
            made[-1].write_text(text)
    done = subprocess.run(["shellcheck", *made], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_example_adds_directives_and_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = example("mysite.sbatch.j2", tmp_path, monkeypatch, "srun").text.splitlines()
    directives = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert lines[directives[-1]] == "#SBATCH --licenses=scratch"
    assert directives == list(range(1, len(directives) + 1)), "not an empty line between them"
    own = lines.index("module load CUDA/12.4 || exit 1")
    assert own < lines.index("module load python")


def test_the_second_example_checks_before_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = example("checked.sbatch.j2", tmp_path, monkeypatch, "srun").text
    check = text.index("if ! srun --ntasks=1 --ntasks-per-node=1 test -d /scratch/imagenet; then")
    assert text.index("export OMP_NUM_THREADS=") < check < text.index("\nhpctrain_run ")
