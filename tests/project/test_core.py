"""The core without the packages of the extras, which `None` in sys.modules makes unimportable."""

import re
import subprocess
from pathlib import Path

import pytest

from hpc_train.base.extras import EXTRAS
from tests.command_line import started
from tests.project.core_commands import CORE, NEED_AN_EXTRA, ROOT, STEPS, Case, write_files

EVERY = ("numpy", *sorted({name for names in EXTRAS.values() for name in names}))


def check_sentence(done: subprocess.CompletedProcess[str], text: str) -> None:
    """Check the answer to a command that needs an extra: one sentence, exit code 2."""
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith(text), done
    assert done.stderr.count("\n") == 1
    assert "pip install " in done.stderr, done


@pytest.mark.process
def test_the_core_works_without_the_extras(tmp_path: Path) -> None:
    write_files(tmp_path)
    lines = [case.words for case in (*CORE, *NEED_AN_EXTRA)]
    before = {*tmp_path.iterdir()}
    done = started(*lines, folder=tmp_path, without=EVERY)
    for case in CORE:
        ended = done[case.words]
        assert ended.returncode in case.codes, ended
        assert case.text in ended.stdout + ended.stderr, ended
        assert "Traceback" not in ended.stderr, ended
    for case in NEED_AN_EXTRA:
        check_sentence(done[case.words], case.text)
    made = {path.name for path in {*tmp_path.iterdir()} - before}
    assert made == {"results", "runtime.sh", "script.sh", "steps.csv", "steps.jsonl"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("package", "case"),
    [
        ("matplotlib", Case("report steps.log", "hpctrain: hpctrain report needs matplotlib; ")),
        # It is refused before a log is read.
        ("pyarrow", Case("report none -o r.parquet", "hpctrain: Parquet needs pyarrow; install ")),
    ],
    ids=["matplotlib", "pyarrow"],
)
def test_only_what_is_missing_is_named(package: str, case: Case, tmp_path: Path) -> None:
    (tmp_path / "steps.log").write_text(STEPS)
    done = started(case.words, folder=tmp_path, without=[package])
    check_sentence(done[case.words], case.text)


def test_the_extras_are_those_of_the_package() -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = project["optional-dependencies"]
    imported = {"scikit-learn": "sklearn"}
    for extra, names in EXTRAS.items():
        found = names_of(stated[extra])
        assert sorted(imported.get(name, name) for name in found) == sorted(names), extra
    assert set(EXTRAS) == set(stated) - {"all", "dev"}
    (line,) = stated["all"]
    assert set(line.partition("[")[2].strip("]").split(",")) == set(EXTRAS)
    assert not {*names_of(project["dependencies"])} & {"scikit-learn", *EVERY}


def names_of(requirements: list[str]) -> list[str]:
    return [re.split(r"[^\w-]", line)[0] for line in requirements]
