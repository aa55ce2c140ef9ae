"""`hpctrain report --check` on implausible tables: a caveat in the first lines, exit code 1."""

from pathlib import Path

import pytest

from tests.conftest import Hpctrain

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
    answer, _, below = done.stdout.split("\n\n", 2)
    assert answer.startswith("t: ")
    assert "\ncheck: gate not met: " in answer
    assert f"\nCaveats: {words}" in f"\n{below}"
    assert done.returncode == 1
    assert "check: gate not met: " in done.stderr
    assert "check: Gates checked: " in done.stderr
    assert hpctrain("report", "t.csv").returncode == 0


def test_the_check_names_the_gates_that_were_not_checked(hpctrain: Hpctrain) -> None:
    Path("t.csv").write_text(f"{HEAD},samples_per_second\n1,4,256,500\n2,4,256,940\n")
    done = hpctrain("report", "t.csv", "--check")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        "check: Gates checked: plausible, missing. Not checked: efficiency, doubling, node_counts, "
        "script, busbw, regression (no limit set); accuracy, loss (not recorded at the baseline)."
    )


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
