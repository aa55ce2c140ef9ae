import pytest

from hpc_train.trainer import WorkloadError
from hpc_train.trainer.trainer_options import parse_options, share_batch
from tests.trainer.launching import finish, start, trainer

BATCH = ("--global-batch-size", "128")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "one of the arguments --global-batch-size --batch-size is required"),
        ((*BATCH, "--batch-size", "2"), "not allowed with"),
        (("--batch-size", "0"), "'0' is not a whole number of at least 1"),
        ((*BATCH, "--learning-rate", "nan"), "'nan' is not a number above 0"),
        ((*BATCH, "--epochs", "x"), "--epochs"),
        ((*BATCH, "--seed", "-1"), "--seed"),
        ((*BATCH, "--backend", "smoke"), "smoke"),
        ((*BATCH, "--lr", "1"), "--lr"),
        (
            (*BATCH, "--steps", "6", "--profile-steps", "5"),
            "5 steps from step 3 on are to be profiled, but the training has 6; at most 4",
        ),
    ],
)
def test_wrong_option_is_one_line_and_code_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_options(arguments)
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "extra", "words"),
    [
        (("--global-batch-size", "9"), {"WORLD_SIZE": 2}, "nearest: 8 or 10"),
        ((*BATCH, "--data", "/nowhere"), {}, "--data /nowhere: no set of images"),
        (BATCH, {"LOCAL_WORLD_SIZE": "two"}, "LOCAL_WORLD_SIZE='two'"),
        (BATCH, {}, "MASTER_ADDR and MASTER_PORT"),
        ((*BATCH, "--model", "gpt-tiny", "--compile", "block"), {"PATH": "/"}, "a C++ compiler"),
    ],
)
def test_wrong_job_is_said_once_before_ranks_start(
    arguments: tuple[str, ...], extra: dict[str, object], words: str
) -> None:
    code, out, err = finish(start(trainer(*arguments), **{"LOCAL_WORLD_SIZE": 2, **extra}))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_global_batch_is_constant_and_batch_per_rank_grows() -> None:
    strong = [share_batch(128, None, ranks) for ranks in (1, 2, 4)]
    weak = [share_batch(None, 64, ranks) for ranks in (1, 2, 4)]
    assert [(b.global_size, b.size) for b in strong] == [(128, 128), (128, 64), (128, 32)]
    assert [(b.global_size, b.size) for b in weak] == [(64, 64), (128, 64), (256, 64)]


def test_batch_smaller_than_the_ranks() -> None:
    with pytest.raises(WorkloadError, match=r"nearest: 4$"):
        share_batch(3, None, 4)
