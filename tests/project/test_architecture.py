"""docs/architecture.md: complete, its names exist, and its three ways are those of commands."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.model.run import RunFolder
from hpc_train.submissions.slurm.squeue import FIELD, RECORD
from tests.submissions.slurm.fake_slurm import programs
from tests.submissions.slurm.made import submitted

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hpc_train"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
# A file that a user has, not one of the package.
FILES = re.compile(r"[\w./*-]+\.(yaml|py|md|json|j2)")
PACKAGES = sorted(
    ".".join(path.parent.relative_to(PACKAGE).parts)
    for path in PACKAGE.rglob("__init__.py")
    if path.parent != PACKAGE
)
TOP = sorted(path.stem for path in PACKAGE.glob("[!_]*.py"))
NONE: dict[str, list[str]] = {"missing": [], "unknown": [], "twice": []}
MODEL = sorted((PACKAGE / "model").glob("[!_]*.py"))


def section(title: str) -> str:
    """Return the text below a heading, up to the next one of any level."""
    return re.split(r"^#", PAGE.partition(f"# {title}\n")[2], flags=re.MULTILINE)[0]


def flat(text: str) -> list[str]:
    """Return the entries of a list, each on one line."""
    return [" ".join(entry.split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", text, re.M)]


def differences(listed: list[str], defined: list[str]) -> dict[str, list[str]]:
    """Return what the page lacks, what it names that does not exist, and what it names twice."""
    return {
        "missing": sorted(set(defined) - set(listed)),
        "unknown": sorted(set(listed) - set(defined)),
        "twice": sorted({name for name in listed if listed.count(name) > 1}),
    }


def classes_of(path: Path) -> list[str]:
    """Return the public classes that a module defines."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    return [name for name in classes if not name.startswith("_")]


def names_in(text: str) -> list[str]:
    """Return the dotted names in code, in order."""
    return re.findall(r"`(\w+(?:\.\w+)+)`", text)


def found(name: str) -> object:
    """Return the module, class, function or constant of a dotted name below the package."""
    parts = name.split(".")
    paths = [PACKAGE.joinpath(*parts[:end]) for end in range(len(parts) + 1)]
    depth = sum(path.is_dir() or path.with_suffix(".py").is_file() for path in paths[1:])
    thing: object = importlib.import_module(".".join(("hpc_train", *parts[:depth])))
    for attribute in parts[depth:]:
        thing = getattr(thing, attribute)
    return thing


@pytest.mark.parametrize("name", sorted({n for n in names_in(PAGE) if not FILES.fullmatch(n)}))
def test_each_dotted_name_exists(name: str) -> None:
    assert found(name) is not None


def test_each_path_exists() -> None:
    paths = {name for name in CODE if re.fullmatch(r"[\w./-]+/[\w./-]*", name)}
    assert len(paths) > 10
    absent = [path for path in paths if not any((top / path).exists() for top in (ROOT, PACKAGE))]
    assert absent == []


def test_eight_files_are_to_be_read_first() -> None:
    files = re.findall(r"^\d\. `(\S+)`", section("Read these eight files first"), re.MULTILINE)
    assert len(files) == len(set(files)) == 8
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_each_package_and_each_module_beside_them_is_on_the_page() -> None:
    named = re.findall(r"`([\w.]+)`", section("Packages"))
    assert differences(named, [*PACKAGES, *TOP]) == NONE


def test_each_stage_is_in_the_diagram() -> None:
    diagram = re.findall(r"[a-z]+", PAGE.partition("```text\n")[2].partition("```")[0])
    assert {name for name in PACKAGES if "." not in name} - set(diagram) == set()


def test_the_glossary_has_each_public_class_of_model_in_its_module() -> None:
    entries = [f"{entry} " for entry in flat(section("Glossary"))]
    rows = [re.findall(r"^`model\.(\w+)`: (.*?)\. ", entry)[0] for entry in entries]
    listed = [f"{module}.{noun}" for module, nouns in rows for noun in re.findall(r"\w+", nouns)]
    defined = [f"{path.stem}.{name}" for path in MODEL for name in classes_of(path)]
    assert differences(listed, defined) == NONE


def test_the_glossary_has_each_module_of_model() -> None:
    named = re.findall(r"`model\.(\w+)`", section("Glossary"))
    assert differences(named, [path.stem for path in MODEL]) == NONE


@pytest.mark.parametrize("name", ["", *PACKAGES])
def test_each_package_says_what_belongs_in_it_and_what_does_not(name: str) -> None:
    path = PACKAGE.joinpath(*name.split("."), "__init__.py")
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert re.fullmatch(r"\S.*\n\nHere: .+\nNot here: .+", said, re.DOTALL), said


def test_readme_and_contributing_link_the_page() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert "[docs/architecture.md](docs/architecture.md)" in text, page


def hpctrain(folder: Path, *arguments: str) -> tuple[str, list[str]]:
    """Return what a command prints, and the functions that it calls, by their first calls."""
    calls = folder / "calls"
    script = Path(__file__).with_name("first_calls.py")
    done = subprocess.run(
        [sys.executable, str(script), str(calls), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, calls.read_text(encoding="utf-8").splitlines()


def check_way(title: str, calls: list[str]) -> None:
    """Check that the functions of a way are called, in its order."""
    numbered = "\n".join(re.findall(r"^ *(?:\d+\.|-) .*(?:\n +[^-\d\s].*)*", section(title), re.M))
    way = [name for name in names_in(numbered) if callable(found(name))]
    assert len(way) > 7
    called = []
    for name in way:
        module = sys.modules[getattr(found(name), "callback", found(name)).__module__]
        file = Path(str(module.__file__)).relative_to(PACKAGE)
        called.append(f"{file} {name.rpartition('.')[2]}")
    assert [name for name in called if name not in calls] == []
    assert sorted(called, key=calls.index) == called


def test_a_job_goes_the_way_to_its_script(tmp_path: Path) -> None:
    job = ("examples/digits/job.yaml", "--site", "jean-zay", "--set", "account=abc@v100")
    text, calls = hpctrain(tmp_path, "render", *job, "--set", "resources.gpus_per_node=4")
    assert "#SBATCH --gres=gpu:4\n" in text
    check_way("Job to script", calls)


def test_a_line_goes_the_way_to_the_table(tmp_path: Path) -> None:
    logs = [f"examples/logs/gpt-{ranks}.log" for ranks in (8, 16)]
    text, calls = hpctrain(tmp_path, "report", *logs)
    assert "16 ranks train 1.88 times as fast as 8 ranks" in text
    check_way("Line to table", calls)


def test_a_state_goes_the_way_to_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = programs(tmp_path / "bin", monkeypatch)
    fields = ("1001", "PREEMPTED", "N/A", "", "None", "train", "(null)")
    (tmp_path / "queue").write_text(FIELD.join(fields) + RECORD)
    make("squeue", f"cat {tmp_path}/queue")
    make("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    for native_id in ("1001", "1002"):
        run = RunFolder(path=tmp_path / "results" / "train" / f"train-r{native_id[-1]}")
        run.logs.mkdir(parents=True)
        (run.path / "run.json").write_text("{}")
        submitted(run, native_id)
    results = str(tmp_path / "results")
    text, calls = hpctrain(tmp_path, "status", "train", "--results", results)
    assert re.search(r"^train-r1 .*PREEMPTED", text, re.MULTILINE), text
    assert re.search(r"^train-r2 .*LOST", text, re.MULTILINE), text
    check_way("State to status", calls)


def test_the_row_of_a_failure_names_the_only_file_with_it() -> None:
    row = re.findall(r"^\| .*CUDA out of memory.* \| `(\w+)` in `(\S+)` \|$", PAGE, re.MULTILINE)
    ((signature, file),) = row
    paths = [path for kind in ("*.yaml", "*.py") for path in PACKAGE.rglob(kind)]
    holding = [path for path in paths if "CUDA out of memory" in path.read_text(encoding="utf-8")]
    assert [str(path.relative_to(ROOT)) for path in holding] == [file]
    assert f"\n  {signature}:\n" in (ROOT / file).read_text(encoding="utf-8")
