"""Plain rows of points -> a note for each value of the hardware: its scope and its aggregation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hpc_train.model.operations import wrong_numbers
from hpc_train.reports.plain_rows import Row

if TYPE_CHECKING:
    import pandas as pd

_MEANING = {
    "mfu": "MFU = median over a run's measured steps, mean over ranks, as printed; mean over runs",
    "tflops_per_gpu": (
        "TFLOP/s a GPU = median over a run's measured steps, mean over ranks, as printed (a total "
        "of the job is divided by its GPUs, else by its ranks); mean over runs"
    ),
    "tflops_per_gpu_computed": (
        "computed TFLOP/s a GPU = flops_per_sample x samples/s / GPUs; without flops_per_sample, 6 "
        "N x tokens/s / GPUs, N = parameters (Chowdhery et al., PaLM, 2022, appendix B; Narayanan "
        "et al., Megatron-LM, SC21): forward and backward pass of a transformer whose parameters "
        "are all active and trained, without attention (12 L d s a token) and without recomputed "
        "activations; only of runs that printed none"
    ),
    "mfu_computed": (
        "computed MFU = TFLOP/s a GPU, printed or else computed, / gpu_peak_tflops, the peak that "
        "the run, the study or the site's profile states for the precision of the run; only of "
        "runs that printed none"
    ),
    "memory_gib": "memory = highest value of any rank and step; the highest of the runs",
    "power_w": (
        "power = sum over all ranks, mean over a run's measured steps, as printed; mean over runs"
    ),
    "power_per_rank_w": (
        "power of a rank = mean over the ranks that printed one; it is not known of every rank, so "
        "there is no power of the job"
    ),
    "energy_j": (
        "energy = as printed of a whole run, else the sum over its ranks and steps, warm-up "
        "included; mean over runs"
    ),
    "energy_per_sample_j": (
        "J per sample = printed energy of the measured steps / their samples; without energy of "
        "steps, that of the run / all its samples; mean over runs"
    ),
    "energy_per_token_j": "J per token = J per sample / tokens of a sample",
    "power_per_rate_j": (
        "power / rate = power / samples per second, J per sample if that power is constant; it is "
        "computed, not measured as energy"
    ),
}


def hardware_notes(points: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """Yield what each value is, if a point has it, and the conditions that are no numbers."""
    wrong: dict[str, str] = {}
    for first, own in enumerate(runs["conditions"]):
        for text in wrong_numbers(own):
            wrong.setdefault(text, runs["run_id"].iloc[first])
    for text, name in wrong.items():
        yield f"{text} is no number above 0 for the run's precision, and not used (run {name})."
    for key, meaning in _MEANING.items():
        if any(row.get(key) is not None for row in points):
            yield f"{meaning}."
