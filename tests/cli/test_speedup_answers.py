"""`hpctrain report` answers with whatever was measured; the speedups are computed by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Hpctrain

STEPS = "gpus,step_time\n1,0.5\n4,0.13\n"
SLOWER = "gpus,step_time\n1,0.5\n4,0.55\n"
EPOCHS = "gpus,epoch_time\n1,100\n4,27\n"
SAME_BATCH = "assuming the same global batch at every size."


@pytest.fixture
def answer(
    hpctrain: Hpctrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Return the rows and the summary, in one line, of a report of files."""
    monkeypatch.chdir(tmp_path)

    def answered(files: dict[str, str], *options: str) -> tuple[list[dict[str, Any]], str]:
        for name, text in files.items():
            Path(name).write_text(text)
        done = hpctrain("report", *files, *options, "-f", "json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        return report["rows"], " ".join(report["summary"])

    return answered


def speedup(row: dict[str, Any]) -> tuple[float, float]:
    return row["speedup"]["value"], row["efficiency"]["value"]


WEAK = ("--scaling", "weak")
ONE_EPOCH = "assuming the same data in an epoch at every size."


@pytest.mark.parametrize(
    ("table", "options", "wanted", "said"),
    [
        # T(1)/T(4) = 0.5/0.13, and 4 T(1)/T(4) = 4 x 0.5/0.55.
        (STEPS, (), 3.8462, f"3.85 times 1 GPU, efficiency 96 %, {SAME_BATCH}"),
        (STEPS, ("--scaling", "strong"), 3.8462, "with the same global batch at every size, as"),
        (SLOWER, WEAK, 3.6364, "with the same batch per rank, as declared."),
        (SLOWER, (*WEAK, "--batch", "32"), 3.6364, "4 GPUs 232.7 samples/s"),
        # An epoch is all data, whatever a step is.
        (EPOCHS, (), 3.7037, ONE_EPOCH),
        (EPOCHS, WEAK, 3.7037, ONE_EPOCH),
        (
            "gpus,time_to_train\n1,900\n4,250\n",
            (),
            3.6,
            "assuming the same training at every size.",
        ),
        ("gpus,tokens_per_second\n1,100\n4,350\n", (), 3.5, "4 GPUs 350.0 tokens/s"),
    ],
)
def test_each_quantity_alone_makes_a_speedup(
    answer: Callable[..., Any], table: str, options: tuple[str, ...], wanted: float, said: str
) -> None:
    points, summary = answer({"t.csv": table}, *options)
    assert speedup(points[1]) == pytest.approx((wanted, wanted / 4), rel=1e-4)
    assert said in summary


def test_step_times_that_hardly_change_are_said_first(answer: Callable[..., Any]) -> None:
    points, summary = answer({"t.csv": SLOWER})
    assert speedup(points[1])[0] == pytest.approx(0.5 / 0.55)
    assert summary.startswith("The step time hardly falls with the size (0.5000 s at 1 GPU, 0.5500")
    assert "the same batch per rank: hpctrain report t.csv --scaling weak" in summary
    assert "hardly falls" not in answer({"t.csv": STEPS})[1]
    assert "hardly falls" not in answer({"t.csv": SLOWER}, "--scaling", "strong")[1]


def test_recorded_batches_that_contradict_are_named(hpctrain: Hpctrain, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("gpus,global_batch_size,step_time\n1,32,0.5\n4,128,0.55\n")
    strong = hpctrain("report", str(path), "--scaling", "strong")
    assert "global batch is 32 in row 1 and 128 in row 2" in strong.stderr
    assert "report --scaling weak" in strong.stderr
    stated = hpctrain("report", str(path), "--batch", "32")
    assert "a global batch of 32 is stated, but row 2 recorded 128" in stated.stderr
    assert {strong.returncode, stated.returncode} == {2}


def nanogpt(ranks: int, seconds: float, first: str = "tokens per iteration will be: 2,048") -> str:
    """Return a log in which every tenth step takes five times as long, for an evaluation."""
    times = (seconds * (5 if step % 10 == 0 else 1) for step in range(40))
    lines = (
        f"iter {step}: loss 2.5196, time {1000 * time:.2f}ms, mfu -100.00%"
        for step, time in enumerate(times)
    )
    return "\n".join((f"running on rank 0 with world size {ranks}", first, *lines, ""))


def test_tokens_and_evaluations_of_nanogpt(answer: Callable[..., Any]) -> None:
    logs = {"one.log": nanogpt(1, 0.4), "two.log": nanogpt(2, 0.22)}
    points, summary = answer(logs)
    # 2048 tokens in the median step, of 400 and of 220 ms; the mean of 39 steps, without the first,
    # is (36 + 3 x 5)/39 times as long.
    assert [row["tokens_per_second"] for row in points] == pytest.approx([5120, 9309.09], rel=1e-5)
    assert not any("throughput" in row for row in points)
    assert speedup(points[1]) == pytest.approx((0.4 / 0.22, 0.2 / 0.22))
    assert points[1]["regime"] == "strong"
    assert "2048 tokens in a step" in summary
    assert (
        "the mean step takes 1.31 times the median, and by the mean the speedup is 1.82" in summary
    )
    # Without the tokens the same speedup is one of step times.
    points, summary = answer({"one.log": nanogpt(1, 0.4, ""), "two.log": nanogpt(2, 0.22, "")})
    assert speedup(points[1])[0] == pytest.approx(0.4 / 0.22)
    assert SAME_BATCH in summary


@pytest.mark.parametrize(("of", "rates"), [("job", [500, 800]), ("rank", [500, 1600])])
def test_a_printed_rate_is_assumed_to_be_of_the_job(
    hpctrain: Hpctrain, tmp_path: Path, of: str, rates: list[float]
) -> None:
    names = [str(tmp_path / "one.log"), str(tmp_path / "two.log")]
    for ranks, name, rate in zip((1, 2), names, (500, 800), strict=True):
        lines = "".join(f"step {step}: {rate} samples/s\n" for step in range(1, 30))
        Path(name).write_text(f"running on rank 0 with world size {ranks}\n{lines}")
    assumed = " ".join(hpctrain("report", *names).stdout.split())
    assert (
        "2 ranks 800.0 samples/s, 1.60 times 1 rank, efficiency 80 %, reading printed rates as "
        "those of the whole job; if each rank prints its own: --rates rank (3.20 times)." in assumed
    )
    hpctrain("report", *names, "-o", "f.svg")
    assert "rates rank" not in Path("f.svg").read_text()
    settled = hpctrain("report", *names, "--rates", of, "-f", "json")
    assert settled.returncode == 0
    assert f"are of the {of}, as declared" in settled.stdout
    points = json.loads(settled.stdout)["rows"]
    assert [row["throughput"]["value"] for row in points] == rates
    assert speedup(points[1])[0] == pytest.approx(rates[1] / 500)


def test_a_rate_that_is_not_clear_gives_way_to_a_time(answer: Callable[..., Any]) -> None:
    logs = {
        f"{ranks}.log": f"running on rank 0 with world size {ranks}\n"
        + "".join(f"step {n}: step time: {ms} ms, 812 samples/s\n" for n in range(1, 30))
        for ranks, ms in ((2, 40), (4, 25))
    }
    points, summary = answer(logs)
    assert speedup(points[1]) == pytest.approx((1.6, 0.8))
    assert "printed rates" not in summary
