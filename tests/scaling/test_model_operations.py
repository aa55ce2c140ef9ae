"""Operations per second and MFU: computed where stated, named so, and never above a printed one."""

import warnings
from collections.abc import Mapping
from typing import Any

import msgspec
import pandas as pd
import pytest

from hpc_train.jobs.operations import peak_tflops, wrong_numbers
from hpc_train.logs.record import Record
from hpc_train.scaling.caveats import with_implausible
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import expected, record, study

TOKENS = record("a", "tokens_per_second", 4 * 10475)


def row(stated: Mapping[str, str], *records: Record, gpus: int = 4) -> dict[str, Any]:
    run = msgspec.structs.replace(expected("a", gpus=gpus), conditions=dict(stated))
    frame = with_implausible(run_frame(study([run]), records))
    return {str(name): frame.at[0, name] for name in frame.columns}


def test_operations_of_a_transformer_are_six_for_each_parameter_and_token() -> None:
    found = row({"parameters": "7e9", "gpu_peak_tflops": "989.5"}, TOKENS)
    assert found["tflops_per_gpu_computed"] == pytest.approx(6 * 7e9 * 10475 / 1e12)
    assert found["mfu_computed"] == pytest.approx(6 * 7e9 * 10475 / 989.5e12)


def test_tokens_may_be_samples_times_the_length_of_a_sequence() -> None:
    rate = record("a", "samples_per_second", 40)
    found = row({"parameters": "1e9", "sequence_length": "2048"}, rate)
    assert found["tflops_per_gpu_computed"] == pytest.approx(6e9 * 2048 * 10 / 1e12)
    assert pd.isna(row({"parameters": "1e9"}, rate)["tflops_per_gpu_computed"])


def test_stated_operations_of_a_sample_win_over_parameters() -> None:
    rate = record("a", "samples_per_second", 400)
    found = row({"flops_per_sample": "1.2e12", "parameters": "1e9"}, rate, TOKENS)
    assert found["tflops_per_gpu_computed"] == pytest.approx(120)


def test_what_the_run_printed_is_not_computed() -> None:
    printed = [
        record("a", name, value, scope="per_gpu") for name, value in (("tflops", 400), ("mfu", 0.4))
    ]
    found = row({"parameters": "7e9", "gpu_peak_tflops": "800"}, TOKENS, *printed)
    assert pd.isna(found["tflops_per_gpu_computed"])
    assert pd.isna(found["mfu_computed"])
    found = row({"parameters": "7e9", "gpu_peak_tflops": "800"}, TOKENS, printed[0])
    assert found["mfu_computed"] == 0.5


def test_the_peak_is_that_of_the_precision() -> None:
    both = "bf16=989.5 fp32=67"
    assert peak_tflops(both, "torch.bfloat16") == peak_tflops(both, "bf16-mixed") == 989.5
    assert peak_tflops(both, "float32") == 67
    assert peak_tflops(both, "fp8") is None
    assert peak_tflops(both, None) is None
    assert pd.isna(row({"parameters": "7e9", "gpu_peak_tflops": both}, TOKENS)["mfu_computed"])


def test_more_operations_than_the_gpu_can_do_are_implausible() -> None:
    found = row({"parameters": "7e9", "gpu_peak_tflops": "312"}, TOKENS)
    assert [str(flag) for flag in found["flags"] if flag.code is FlagCode.MFU] == [
        "MFU: MFU 141 % of the GPU's peak"
    ]
    sound = row({"parameters": "7e9", "gpu_peak_tflops": "989.5"}, TOKENS)
    assert FlagCode.MFU not in [flag.code for flag in sound["flags"]]


@pytest.mark.parametrize("text", ["0", "-3", "seven", "nan", "inf", "1e308", "7 B", "=", "bf16="])
def test_a_condition_that_is_no_number_computes_nothing_and_is_named(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("parameters", "flops_per_sample", "gpu_peak_tflops"):
            stated = {"parameters": "7e9", name: text}
            found = row(stated, TOKENS)
            assert pd.isna(found["mfu_computed"])
            assert wrong_numbers(stated) == [f"{name} {text!r}"]


def test_without_a_number_of_gpus_nothing_is_computed() -> None:
    assert pd.isna(row({"parameters": "7e9"}, TOKENS, gpus=0)["tflops_per_gpu_computed"])
