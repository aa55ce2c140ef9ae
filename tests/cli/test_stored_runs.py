"""Run folders of each schema are read by every command; those of a newer one are refused alike.

`tests/stored/schema-N` was written by a version with that schema, on the lab, and never changes.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.runs.run import MANIFEST_SCHEMA
from tests.cli.conftest import Hpctrain

STORED = Path(__file__).parents[1] / "stored"
SCHEMAS = sorted(path.name for path in STORED.iterdir())
STUDY = """name: sweep
job: {command: ["true"], launcher: single, resources: {cpus_per_task: 1}}
axes: {env.X: [1, 2]}
scaling: strong
"""
NEWER = (
    "status RUN", "status bad", "status bad --json", "status bad --watch", "explain RUN",
    "explain bad", "logs RUN", "logs -f bad", "report bad",
    "collect bad", "diagnose bad", "retry bad", "cancel bad",
    "compare bad sweep", "compare sweep bad",
)  # fmt: skip


@pytest.fixture(params=SCHEMAS)
def stored(hpctrain: Hpctrain, request: pytest.FixtureRequest) -> Iterator[Hpctrain]:
    """Return a runner of commands in a folder with the files of one schema."""
    shutil.copytree(STORED / request.param, ".", dirs_exist_ok=True)
    yield hpctrain
    shutil.rmtree("results")


def test_each_schema_is_stored() -> None:
    assert [f"schema-{number}" for number in range(1, MANIFEST_SCHEMA + 1)] == SCHEMAS


def make_newer(path: Path) -> None:
    content = {**json.loads(path.read_bytes()), "schema": MANIFEST_SCHEMA + 1, "new": 1}
    path.write_text(json.dumps(content))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sentence(path: Path) -> str:
    return (
        f"hpctrain: {path}: written by a newer hpctrain (schema {MANIFEST_SCHEMA + 1}, this one "
        f"reads {MANIFEST_SCHEMA})\n  pip install --upgrade hpctrain\n"
    )


@pytest.mark.parametrize("words", NEWER)
def test_a_newer_run_is_refused(stored: Hpctrain, words: str) -> None:
    (manifest,) = Path("results/bad").glob("*/run.json")
    make_newer(manifest)
    before, files = contents(Path("results/bad")), contents(Path()).keys()
    done = stored(*words.replace("RUN", manifest.parent.name).split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence(manifest))
    assert contents(Path("results/bad")) == before
    assert contents(Path()).keys() == files


@pytest.mark.parametrize("words", [*(word for word in NEWER if "bad" in word), "submit new.yaml"])
def test_a_newer_study_is_refused(stored: Hpctrain, words: str) -> None:
    make_newer(Path("results/sweep/study.json"))
    Path("new.yaml").write_text(STUDY)
    before = contents(Path())
    done = stored(*words.replace("bad", "sweep").split(), HPCTRAIN_SITE="local")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(sentence(Path("results/sweep/study.json")))
    assert contents(Path()) == before


def test_among_others_a_newer_run_is_a_row(stored: Hpctrain) -> None:
    newer = Path("results/sweep/1-84aa26ac-r1")
    make_newer(newer / "run.json")
    problem = sentence(Path("run.json")).removeprefix("hpctrain: ").partition("\n")[0]
    before = contents(newer)
    listed = stored("status").stdout
    assert f"sweep  4     3 COMPLETED, 1 UNKNOWN; {newer.name}/{problem}" in listed
    rows = stored("status", "sweep").stdout
    assert re.search(rf"{newer.name} +UNKNOWN +-- +{re.escape(problem)}", rows)
    assert rows.count("COMPLETED ") == 3
    report = stored("report", "sweep")
    assert report.returncode == 3
    assert f"{newer.name}: {problem}" in " ".join(report.stdout.split())
    assert "3 of 4 runs ok" in report.stdout
    assert f"no record: {newer.name}  UNKNOWN  {problem}" in stored("collect", "sweep").stderr
    assert f"== {newer.name}\nUNKNOWN  {problem}" in stored("diagnose", "sweep").stdout
    assert f"{newer.name} is not retried: {problem}" in stored("retry", "sweep").stderr
    assert stored("cancel", "sweep").returncode == 2
    assert contents(newer) == before


def test_nothing_is_written_for_another_user(stored: Hpctrain) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    for path in (Path("results"), *Path("results").rglob("*")):
        os.chown(path, 12345, 12345)
    before = contents(Path("results"))
    for words in ("status", "status bad", "report bad", "report sweep", "diagnose bad"):
        assert stored(*words.split()).returncode in (0, 1, 3)
    for name in ("bad", "sweep"):
        done = stored("retry", name)
        assert done.returncode == 2
        assert f"results/{name}: it belongs to 12345, whose job a retry would run" in done.stderr
    assert contents(Path("results")) == before
