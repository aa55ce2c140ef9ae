"""A loss that is NaN is no number, and the run must not look as if its last finite one stood."""

from pathlib import Path

import pytest

from hpc_train.logs.collect import collect
from hpc_train.scaling.measurements import LOSS_LOST, Flag
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import foreign, study

STEPS = {
    "hf_trainer": "{'loss': %s, 'grad_norm': 1.0, 'learning_rate': 0.1, 'epoch': 0.%d}\n",
    "nanogpt": "iter %2$d: loss %1$s, time 100.00ms, mfu 1.00%%\n",
    "events": '@hpct {"v":1,"event":"step","rank":0,"step":%2$d,"step_time":0.1,"loss":%1$s}\n',
}
END = {"hf_trainer": "{'train_runtime': 10.0, 'train_samples_per_second': 100.0}\n"}


def lines(program: str, *losses: str) -> str:
    form = STEPS[program].replace("%1$s", "{loss}").replace("%2$d", "{step}")
    form = form.replace("%s", "{loss}").replace("%d", "{step}").replace("%%", "%")
    said = [form.replace("{loss}", x).replace("{step}", str(n)) for n, x in enumerate(losses, 1)]
    return "".join(said) + END.get(program, "")


def flags(tmp_path: Path, text: str) -> tuple[Flag, ...]:
    (tmp_path / "a.log").write_text(text)
    found = tuple(collect("a.log", [tmp_path / "a.log"]))
    own: tuple[Flag, ...] = run_frame(study([foreign("a.log")]), found)["flags"][0]
    return own


@pytest.mark.parametrize("program", list(STEPS))
def test_a_loss_that_ends_as_nan_is_flagged(program: str, tmp_path: Path) -> None:
    nan = "null" if program == "events" else "nan"
    assert LOSS_LOST in flags(tmp_path, lines(program, "2.1", "1.9", nan))
    assert LOSS_LOST not in flags(tmp_path, lines(program, "2.1", nan, "1.9"))
    assert LOSS_LOST not in flags(tmp_path, lines(program, "2.1", "2.0", "1.9"))


def test_the_loss_of_a_validation_may_be_nan(tmp_path: Path) -> None:
    text = lines("hf_trainer", "2.1") + "{'eval_loss': nan, 'epoch': 0.2}\n"
    assert LOSS_LOST not in flags(tmp_path, text)
