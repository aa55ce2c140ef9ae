"""The size of a job's program: of the reference trainer, or as it is stated."""

from pathlib import Path

import pytest

from hpc_train.advice.program import ProgramSize, completed, parse_condition, program_of
from hpc_train.base.errors import SpecError
from tests.jobs.read_files import load_job

TRAINER = "command: [python, -m, hpc_train.trainer.train, --global-batch-size, '512', --steps=90]\n"


def program(folder: Path, text: str, **stated: object) -> ProgramSize:
    path = folder / "job.yaml"
    path.write_text(text)
    return program_of(load_job(path, []), stated, "--condition")


def test_the_reference_trainer_says_what_it_trains(tmp_path: Path) -> None:
    found = program(tmp_path, f"{TRAINER}trainer: {{model: gpt-124m, precision: bf16}}\n")
    assert (found.model, found.precision, found.optimizer) == ("gpt-124m", "bf16", "sgd")
    assert (found.global_batch, found.steps) == (512, 90)
    assert found.parameters == 163_109_376
    assert found.sources["model"] == f"{tmp_path / 'job.yaml'}:2"
    assert found.sources["steps"] == "--steps of the command"
    assert found.sources["optimizer"] == "default of hpc_train.trainer.train"


def test_a_condition_replaces_what_the_file_says(tmp_path: Path) -> None:
    found = program(tmp_path, TRAINER, parameters="7e9", global_batch="64", steps=10)
    assert (found.parameters, found.global_batch, found.steps) == (7_000_000_000, 64, 10)
    assert found.sources["parameters"] == "--condition"


def test_of_another_program_only_what_is_stated_is_known(tmp_path: Path) -> None:
    found = program(tmp_path, "command: [python, own.py, --steps, '5']\n", batch=8)
    assert (found.parameters, found.steps, found.batch) == (None, None, 8)
    assert found.shape is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("parameter=7", "no condition 'parameter'; did you mean 'parameters'[?]", "allowed: "),
        ("colour=red", "no condition 'colour'", "allowed: parameters, "),
        ("steps", "a value is missing", "--condition steps="),
    ],
)
def test_a_wrong_condition_is_named(text: str, message: str, hint: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse_condition(text)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    "stated",
    [{"parameters": "many"}, {"steps": 1.5}, {"steps": -1}, {"parameters": "nan"},
     {"flops_per_sample": 0}, {"precision": "bf17"}, {"optimizer": "adamx"},
     {"checkpointing": "yes"}, {"precision": "'; rm -rf /"}, {"parameters": "7G"},
     {"parameters": "B"}, {"steps": "7K"}, {"trained_parameters": "8B", "parameters": "7B"}],
)  # fmt: skip
def test_a_wrong_value_is_refused(tmp_path: Path, stated: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=next(iter(stated))) as caught:
        program(tmp_path, TRAINER, **stated)
    assert caught.value.hint


def test_words_of_other_programs_are_understood(tmp_path: Path) -> None:
    stated = {"precision": "bf16-mixed", "parameters": "1.3B", "trained_parameters": "4.7m"}
    found = program(tmp_path, TRAINER, **stated)
    assert found.precision == "bf16"
    assert (found.parameters, found.trained_parameters) == (1_300_000_000, 4_700_000)


def test_runs_complete_what_is_not_known(tmp_path: Path) -> None:
    found = program(tmp_path, "command: [own]\n", global_batch=8)
    stated = {"parameters": "7e9", "flops_per_sample": "nonsense"}
    whole = completed(found, stated, "runs")
    assert (whole.parameters, whole.flops_per_sample) == (7_000_000_000, None)
    assert whole.sources["parameters"] == "runs"
    assert completed(whole, {"parameters": "1e9"}, "others").parameters == 7_000_000_000
