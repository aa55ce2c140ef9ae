"""The core without the packages of the extras, which `None` in sys.modules makes unimportable."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from hpc_train.extras import EXTRAS
from tests.project.core_commands import (
    CORE,
    NEED_AN_EXTRA,
    ROOT,
    STEPS,
    Case,
    Ended,
    Start,
    check,
    check_sentence,
    prepare,
)

pytestmark = pytest.mark.slow

PROBE = """
import sys
sys.modules.update(dict.fromkeys({blocked!r}))
from hpc_train.cli.main import main
main()
"""
EVERY = ("numpy", *sorted({name for names in EXTRAS.values() for name in names}))


def without(blocked: Iterable[str], folder: Path) -> Start:
    """Return a function that runs hpctrain in a folder, without some packages."""

    def start(*words: str) -> Ended:
        code = PROBE.format(blocked=tuple(blocked))
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return start


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("core")
    prepare(home, without(EVERY, home))
    return home


@pytest.mark.parametrize("case", CORE, ids=lambda case: case.words)
def test_the_core_works_without_the_extras(folder: Path, case: Case) -> None:
    check(without(EVERY, folder), case)


@pytest.mark.parametrize("case", NEED_AN_EXTRA, ids=lambda case: case.words)
def test_a_command_names_its_extra(folder: Path, case: Case) -> None:
    check_sentence(without(EVERY, folder), folder, case)


def test_only_what_is_missing_is_named(folder: Path) -> None:
    start = without(["matplotlib"], folder)
    text = "hpctrain: hpctrain report needs matplotlib; install it: "
    check_sentence(start, folder, Case("report steps.log", text))


def test_an_import_that_fails_later_gives_the_same_sentence(folder: Path) -> None:
    start = without(["numpy"], folder)
    text = "hpctrain: this command needs numpy; install it: "
    check_sentence(start, folder, Case("report steps.log", text))


def test_another_missing_module_keeps_its_traceback(folder: Path) -> None:
    done = without(["msgspec"], folder)("site", "list")
    assert (done.code, "Traceback" in done.errors) == (1, True)


def test_parquet_of_a_report_is_refused_before_a_log_is_read(folder: Path) -> None:
    start = without(["pyarrow"], folder)
    text = "hpctrain: Parquet needs pyarrow; install it: "
    check_sentence(start, folder, Case("report nothing-of-this-name -o r.parquet", text))


def test_python_users_get_the_sentence(tmp_path: Path) -> None:
    (tmp_path / "steps.log").write_text(STEPS)
    code = """
import sys
sys.modules["pandas"] = None
import hpc_train, hpc_train.errors
try:
    hpc_train.collect("steps.log")
except hpc_train.errors.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.startswith("hpc_train.collect needs pandas; install it: ")


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
