"""hpc_train.report and compare: the numbers of the command, as DataFrames, texts and files."""

import csv
import io
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.base.errors import HpcTrainError
from hpc_train.scaling.runs import row_frame

ROOT = Path(__file__).resolve().parents[2]
LOGS = [ROOT / "examples" / "logs" / f"gpt-{ranks}.log" for ranks in (8, 16)]
TABLE = "nodes,gpus,repetition,samples_per_second\n" + "".join(
    f"{nodes},{nodes},{n},{rate}\n"
    for nodes, rates in {1: (100, 101, 102), 2: (180, 182, 184)}.items()
    for n, rate in enumerate(rates)
)
report: Callable[..., Any] = hpc_train.report
compare: Callable[..., Any] = hpc_train.compare


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text(TABLE)
    Path("slow.csv").write_text(TABLE.replace(",18", ",9"))
    return Path("runs.csv")


def test_the_table_has_the_numbers_of_csv(table: Path) -> None:
    found = hpc_train.report(table)
    (file,) = found.save("points.csv")
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert list(found.table.columns) == list(rows[0])
    for name in ("nodes", "speedup", "speedup_low", "speedup_high", "efficiency", "n_ok"):
        for row, value in zip(rows, found.table[name], strict=True):
            assert row[name] == "" or math.isclose(float(row[name]), value, rel_tol=1e-6), name
    assert found.table["speedup"][1] == pytest.approx(182 / 101, rel=0.01)
    low, value, high = (found.table[f"speedup{end}"][1] for end in ("_low", "", "_high"))
    assert low < value < high


def test_sizes_are_in_the_order_of_the_logs(table: Path) -> None:
    for name, ms in (("a.log", 10), ("b.log", 20)):
        lines = (f"iter {n}: loss 2.5, time {ms}.00ms, mfu 1.00%\n" for n in range(30))
        Path(name).write_text("".join(lines))
    found = report(["b.log", "a.log"], gpus=[8, 16], nodes=[1, 2])
    assert [*zip(found.table["gpus"], found.table["nodes"], strict=True)] == [(8, 1), (16, 2)]
    assert dict(zip(found.runs["run_id"], found.runs["gpus"], strict=True)) == {
        "b.log": 8,
        "a.log": 16,
    }


def test_texts_and_gates(table: Path) -> None:
    found = report(table, against="slow.csv")
    assert "2 GPUs" in found.summary
    assert found.text.startswith(f"{found.title}\n===")
    assert found.summary.splitlines()[0][:40] in found.text
    assert found.checks == found.open_checks == ()
    assert report("slow.csv", against=table).checks
    assert repr(found) == f"<ScalingReport {found.title!r}>"
    assert not found.partial


def test_figures_are_images(table: Path) -> None:
    figures = hpc_train.report(table).figures
    assert figures[0].name == "scaling"
    for figure in figures:
        assert figure.png.startswith(b"\x89PNG")
        assert "<svg" in figure.svg
        assert figure.caption


def test_a_point_without_a_number_has_a_missing_value() -> None:
    frame = row_frame([{"a": 1, "b": None}, {"a": None, "b": None, "c": "x"}])
    assert [str(kind) for kind in frame.dtypes][:2] == ["Int64", "float64"]
    assert frame["a"].isna().tolist() == [False, True]


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "another type": (lambda: report(3), "^paths: Expected `str`"),
    "target": (lambda: report("runs.csv", target="acc"), "accuracy"),
    "exclude type": (lambda: report("runs.csv", exclude=["x"]), "^exclude: Expected `dict"),
    "no reason": (lambda: report("runs.csv", exclude={"x": " "}), r"^exclude\['x'\]: the reason"),
    "allow_mixed type": (lambda: report("runs.csv", allow_mixed=3), "^allow_mixed: Expected"),
    "extension": (lambda: report("runs.csv").save("x.zzz"), r"^x\.zzz: "),
    "format": (lambda: report("runs.csv").save("x.md", format="zz"), "unknown format 'zz'"),
    "side type": (lambda: compare("runs.csv", 3), "^b: Expected `str`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_an_error_of_ours_and_writes_nothing(name: str, table: Path) -> None:
    call, pattern = WRONG[name]
    with pytest.raises(HpcTrainError, match=pattern):
        call()
    assert sorted(path.name for path in Path().iterdir()) == ["runs.csv", "slow.csv"]


@pytest.mark.process
def test_without_the_extra_a_function_names_it() -> None:
    lines = "import sys, hpc_train; sys.modules['numpy'] = None; hpc_train.report('a.csv')"
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=False
    )
    assert "MissingExtraError: this command needs numpy; install it: " in done.stderr
