"""`hpctrain report --check` on implausible tables: a caveat in the first lines, exit code 1."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"
Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
HEAD = "nodes,gpus_per_node,global_batch_size"
TABLES = {
    "implausible efficiency": f"{HEAD},samples_per_second\n1,4,256,500\n2,4,256,1600\n",
    "rate, step time and batch": f"{HEAD},samples_per_second,step_time\n1,4,256,500,0.512\n"
    "2,4,256,940,0.512\n",
    "more memory than the GPU has": f"{HEAD},samples_per_second,memory,gpu\n1,4,256,500,120,A100\n"
    "2,4,256,940,60,A100\n",
    "the unit of a value": f"{HEAD},step_time\n1,4,256,0.51\n2,4,256,270\n4,4,256,0.14\n",
    "the accuracy fell": f"{HEAD},samples_per_second,accuracy\n1,4,256,500,0.95\n2,4,256,940,0.1\n",
    "the loss rose": f"{HEAD},samples_per_second,loss\n1,4,256,500,0.1\n2,4,256,940,2.3\n",
    "GPUs were throttled": f"{HEAD},samples_per_second,throttled\n1,4,256,500,no\n"
    "2,4,256,900,SW power cap\n",
}


@pytest.mark.parametrize("words", TABLES)
def test_what_cannot_be_right_is_said_first_and_fails_the_check(
    hpctrain: Hpctrain, words: str
) -> None:
    Path("t.csv").write_text(TABLES[words])
    done = hpctrain("report", "t.csv", "--check")
    title, summary, _ = done.stdout.split("\n\n", 2)
    assert title.startswith("t: ")
    assert " ".join(summary.split()).startswith(f"Caveats: {words}")
    assert done.returncode == 1
    assert "check: gate not met: " in done.stderr
    assert "check: Gates checked: " in done.stderr
    # Without --check the table is shown as it is.
    assert hpctrain("report", "t.csv").returncode == 0


def test_two_tables_of_one_series_in_two_units_have_no_mean(hpctrain: Hpctrain) -> None:
    rows = [(nodes, 500 * nodes + i) for nodes in (1, 2) for i in range(3)]
    for name, factor in (("a", 1.0), ("b", 1000.0)):
        cells = "".join(f"{n},4,256,{(rate + factor / 9) / factor:.6g}\n" for n, rate in rows)
        Path(f"{name}.csv").write_text(f"{HEAD},samples_per_second\n{cells}")
    done = hpctrain("report", "a.csv", "b.csv", "--check")
    caveat, rest = done.stdout.split("\n\n")[1].split("No run has a result.\n")
    assert caveat.startswith("Caveats: the unit of a value may be wrong: 4 GPUs (")
    assert "Measured: 0 of 12 runs ok" in rest
    assert "times as fast" not in done.stdout
    assert done.stdout.count("the unit may be wrong: ") == 12
    assert done.returncode == 1
    assert "check: gate not met: 8 GPUs: the unit of a value may be wrong: " in done.stderr
    assert hpctrain("report", "a.csv").returncode == 0
    assert hpctrain("report", "a.csv", "b.csv").returncode == 3


SOUND = f"{HEAD},samples_per_second\n1,4,256,500\n2,4,256,940\n"
# Without the collapses, which are verdicts on the current study alone.
WRONG = {words: text for words, text in TABLES.items() if not words.endswith(("fell", "rose"))}


@pytest.mark.parametrize("words", WRONG)
def test_an_implausible_reference_is_said_first_and_fails_the_check(
    hpctrain: Hpctrain, words: str
) -> None:
    Path("t.csv").write_text(SOUND)
    Path("old.csv").write_text(WRONG[words])
    hpctrain("report", "old.csv", "-o", "old.json")
    done = hpctrain("report", "t.csv", "--check", "--against", "old.json")
    said = f"reference old.json: {words}"
    assert " ".join(done.stdout.split("\n\n")[1].split()).startswith(f"Caveats: {said}")
    assert done.returncode == 1
    assert f"check: gate not met: {said}" in done.stderr
    assert hpctrain("report", "t.csv", "--against", "old.json").returncode == 0


def test_a_reference_in_another_unit_is_said_first_and_fails_the_check(hpctrain: Hpctrain) -> None:
    """Neither study alone shows it: all values of each are off by the same factor."""
    Path("t.csv").write_text(SOUND)
    Path("kilo.csv").write_text(f"{HEAD},samples_per_second\n1,4,256,500000\n2,4,256,940000\n")
    for new, old, times in (("kilo", "t", "1000"), ("t", "kilo", "0.001000")):
        assert hpctrain("report", f"{old}.csv", "--check").returncode == 0
        done = hpctrain("report", f"{new}.csv", "--check", "--against", f"{old}.csv")
        ratio = f"{times} times the speed of {old}.csv"
        assert " ".join(done.stdout.split("\n\n")[1].split()).startswith(
            f"Caveats: the unit of a value may be wrong: 4 GPUs ({ratio}); 8 GPUs ({ratio})."
        )
        assert done.returncode == 1
        assert f"check: gate not met: 8 GPUs: the unit of a value may be wrong: {ratio}" in (
            done.stderr
        )


def test_a_study_that_allows_implausible_values_allows_those_of_its_reference(
    hpctrain: Hpctrain,
) -> None:
    Path("old.csv").write_text(TABLES["implausible efficiency"])
    points = "a.log: {nodes: 1, gpus_per_node: 4}, b.log: {nodes: 2, gpus_per_node: 4}"
    Path("p.yaml").write_text(f"gates: {{plausible: false}}\npoints: {{{points}}}\n")
    for name, rate in (("a", 500), ("b", 940)):
        event = {"event": "end", "global_batch_size": 256, "samples_per_second": rate}
        Path(f"{name}.log").write_text(f"@hpct {json.dumps(event)}\n")
    done = hpctrain("report", "p.yaml", "--check", "--against", "old.csv")
    assert "Caveats: reference old.csv: implausible efficiency" in done.stdout
    assert "plausible (switched off)" in done.stderr
    assert "gate not met: reference" not in done.stderr


@pytest.mark.parametrize("flags", [None, "n=1", [1]])
def test_flags_of_a_stored_report_that_are_no_texts_are_an_error(
    hpctrain: Hpctrain, flags: object
) -> None:
    Path("t.csv").write_text(SOUND)
    hpctrain("report", "t.csv", "-o", "old.json")
    content = json.loads(Path("old.json").read_text())
    content["rows"][0]["flags"] = flags
    Path("old.json").write_text(json.dumps(content))
    done = hpctrain("report", "t.csv", "--against", "old.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "old.json: rows: Expected `" in done.stderr


def test_the_collapse_of_the_only_run_of_the_baseline_is_found(hpctrain: Hpctrain) -> None:
    head = f"{HEAD},samples_per_second,accuracy,loss\n"
    Path("t.csv").write_text(f"{head}1,4,256,500,0.1,9\n2,4,256,940,0.9,1\n4,4,256,1800,0.91,1\n")
    done = hpctrain("report", "t.csv", "--check")
    assert done.returncode == 1
    assert "4 GPUs: accuracy 0.1 of row 1 (n=1), 80.50 points below 0.905 at the other" in (
        done.stderr
    )
    assert "4 GPUs: loss 9 of row 1 (n=1), 1 at the other points" in done.stderr


def test_a_study_may_switch_the_gate_off(hpctrain: Hpctrain) -> None:
    for name, seconds, ranks in (("a", 0.5, 4), ("b", 0.1, 8)):
        lines = [f'@hpct {{"event":"start","world_size":{ranks},"global_batch_size":64}}\n']
        lines += [
            f'@hpct {{"v":1,"event":"step","rank":0,"step":{step},"step_time":{seconds}}}\n'
            for step in range(30)
        ]
        Path(f"{name}.log").write_text("".join(lines))
    points = "points:\n  a.log: {nodes: 1, gpus_per_node: 4}\n  b.log: {nodes: 2, gpus_per_node: 4}"
    for gates, code in (("{}", 1), ("{plausible: false}", 0)):
        Path("p.yaml").write_text(f"gates: {gates}\n{points}\n")
        done = hpctrain("report", "p.yaml", "--check")
        assert done.returncode == code, done.stdout + done.stderr
        assert ("plausible (switched off)" in done.stderr) is (code == 0)


def test_the_check_names_the_gates_that_were_not_checked(hpctrain: Hpctrain) -> None:
    Path("t.csv").write_text(f"{HEAD},samples_per_second\n1,4,256,500\n2,4,256,940\n")
    done = hpctrain("report", "t.csv", "--check")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        "check: Gates checked: plausible, missing. Not checked: efficiency, doubling, node_counts, "
        "script, busbw, regression (no limit set); accuracy, loss (not recorded at the baseline)."
    )


def test_gates_that_cannot_be_read_are_an_error(hpctrain: Hpctrain, tmp_path: Path) -> None:
    home = tmp_path / "study"
    shutil.copytree(STUDY, home)
    assert hpctrain("report", str(home), "--check").returncode == 0
    for file in home.rglob("run.json"):
        manifest = json.loads(file.read_text())
        manifest["plan"]["site"] = "lab7"
        manifest["provenance"]["profile"] = "/gone/lab7.yaml"
        file.write_text(json.dumps(manifest))
    done = hpctrain("report", str(home), "--check", "--junit", "checks.xml")
    assert done.returncode == 2
    assert "Caveats: not every gate could be read. Gates checked: " in done.stdout
    assert "Not checked: site (there is no profile" in done.stderr
    assert 'errors="1"' in Path("checks.xml").read_text()
    assert hpctrain("report", str(home)).returncode == 0


@pytest.mark.parametrize("stored", ["none.json", "damaged.json"])
def test_a_stored_study_that_cannot_be_read_is_an_error(hpctrain: Hpctrain, stored: str) -> None:
    Path("t.csv").write_text(f"{HEAD},samples_per_second\n1,4,256,500\n2,4,256,940\n")
    Path("damaged.json").write_text('{"schema": 1, "runs": [')
    done = hpctrain("report", "t.csv", "--check", "--against", stored)
    assert (done.returncode, done.stdout) == (2, "")
    assert "reference of the regression gate: " in done.stderr


def test_a_log_may_say_that_its_gpus_were_throttled(hpctrain: Hpctrain) -> None:
    for name, text, seconds in (("a", "no", 0.5), ("b", "SW power cap", 0.6)):
        lines = [
            f'@hpct {{"v":1,"event":"step","rank":0,"step":{step},"step_time":{seconds}}}\n'
            for step in range(1, 30)
        ]
        condition = f'@hpct {{"conditions": {{"throttled": "{text}"}}}}\n'
        Path(f"{name}.log").write_text(condition + "".join(lines))
    done = hpctrain("report", "a.log", "b.log", "--check")
    assert "Caveats: GPUs were throttled (SW power cap): the only point." in done.stdout
    # It is one series: throttling is flagged, not a condition of the series.
    assert "throttled differs" not in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("reference", ["gone", "damaged.json"])
def test_a_reference_of_the_study_that_cannot_be_read_is_a_caveat_and_fails_the_check(
    hpctrain: Hpctrain, reference: str
) -> None:
    Path("damaged.json").write_text('{"schema": 1, "rows": [')
    Path("a.log").write_text('@hpct {"event": "end", "samples_per_second": 100}\n')
    Path("points.yaml").write_text(
        f"gates: {{regression: {{against: {reference}}}, node_counts: 1}}\n"
        "points: {a.log: {nodes: 1, gpus_per_node: 4}}\n"
    )
    done = hpctrain("report", "points.yaml")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "Caveats: not every gate could be read. Gates checked: node_counts, " in words
    assert "Not checked: regression (" in words
    checked = hpctrain("report", "points.yaml", "--check")
    assert checked.returncode == 2
    assert "check: gate error: reference of the regression gate: " in checked.stderr
    named = hpctrain("report", "points.yaml", "--against", reference)
    assert (named.returncode, named.stdout) == (2, "")
    assert "reference of the regression gate: " in named.stderr
