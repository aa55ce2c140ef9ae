"""What messages of errors have in common."""

import pytest

from hpc_train.base.errors import HpcTrainError, UnknownNameError, nearest
from hpc_train.cli.main import complain


@pytest.mark.parametrize(
    ("name", "offered"),
    [("1f1b", "1F1B"), ("pix", "PIX"), ("Torchrun", "torchrun"), ("torchrum", "torchrun")],
)
def test_the_nearest_word_is_found_in_any_case(name: str, offered: str) -> None:
    assert nearest(name, ["GPipe", "1F1B", "PIX", "torchrun"]) == f"; did you mean {offered!r}?"


def test_a_pattern_is_no_name() -> None:
    message = UnknownNameError("site", "lab*", ["lab", "local", "lab"]).message
    assert message == (
        "unknown site 'lab*', and a name is not a pattern; did you mean 'lab'?; known: lab, local"
    )


def test_each_line_of_a_hint_is_indented(capsys: pytest.CaptureFixture[str]) -> None:
    complain(HpcTrainError("two hosts are silent", "ssh a true\nssh b true"))
    assert capsys.readouterr().err == (
        "hpctrain: two hosts are silent\n  ssh a true\n  ssh b true\n"
    )
