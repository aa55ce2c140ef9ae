"""Run table -> operations per second of its model, computed, and their share of the peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hpc_train.model.operations import FLOPS, PARAMETERS, PEAK, number_of, peak_tflops
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.plausible_range import bounded, positive
from hpc_train.tables.run_sizes import Sizes

# Of a parameter for each token: two operations forward, four backward.
_PER_PARAMETER = 6.0


def computed_operations(found: Mapping[str, Any], sizes: Sizes) -> dict[str, Floats]:
    """Return TFLOP/s per GPU and MFU of the runs that state their operations, NaN for others.

    TFLOP/s = flops_per_sample x samples/s; without that number 6 N x tokens/s, N the parameters
    (Chowdhery et al., PaLM, 2022, appendix B; Narayanan et al., Megatron-LM, SC21), without the
    attention (12 L d s per token) and without recomputed activations. MFU = TFLOP/s per GPU,
    printed or else computed, over the peak. A run that printed the value has none computed.
    """
    conditions = found["conditions"]
    per_sample = _numbers(conditions, lambda own: number_of(own.get(FLOPS)))
    parameters = _numbers(conditions, lambda own: number_of(own.get(PARAMETERS)))
    length = _numbers(conditions, lambda own: number_of(own.get("sequence_length")))
    peak = _numbers(conditions, lambda own: peak_tflops(own.get(PEAK), own.get("precision")))
    rate, tokens = found["samples_per_second"], found["tokens_per_second"]
    gpus = np.where(sizes.gpus > 0, sizes.gpus, np.nan)
    by_tokens = _product(_PER_PARAMETER * parameters, _either(tokens, _product(rate, length)))
    each = _tflops(_either(_product(per_sample, rate), by_tokens), gpus)
    printed = found["tflops_per_gpu"]
    mfu = _share(_either(printed, each), peak)
    return {
        "tflops_per_gpu_computed": np.where(np.isnan(printed), each, np.nan),
        "mfu_computed": np.where(np.isnan(found["mfu"]), mfu, np.nan),
    }


def _numbers(
    conditions: Sequence[Mapping[str, str]], number: Callable[[Mapping[str, str]], float | None]
) -> Floats:
    return np.array([number(own) for own in conditions], dtype=np.float64)


def _either(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(first), second, first)


@bounded
def _product(one: Any, other: Any) -> Any:
    return one * other


def _tflops(per_second: Floats, gpus: Floats) -> Floats:
    return positive(_share(per_second, gpus * 1e12))


@bounded
def _share(part: Any, whole: Any) -> Any:
    return part / whole
