"""Metrics of the use of the hardware: operations, memory, power and energy."""

from __future__ import annotations

from hpc_train.model.metric import Metric, TextColumn

HARDWARE_METRICS: tuple[Metric, ...] = (
    Metric(
        key="mfu", name="mfu", direction="higher", record="mfu", run_heading="MFU",
        text=TextColumn(heading="MFU\n[%]", decimals=1, factor=100),
    ),
    Metric(
        key="tflops_per_gpu", name="tflops_per_gpu", unit="TFLOP/s", direction="higher",
        record="tflops", of_run="computed", run_heading="TFLOP/s per GPU",
        text=TextColumn(heading="TFLOP/s\na GPU"),
    ),
    Metric(
        key="mfu_computed", name="mfu_computed", direction="higher", of_run="computed",
        text=TextColumn(heading="computed\nMFU [%]", decimals=1, factor=100),
    ),
    Metric(
        key="tflops_per_gpu_computed", name="tflops_per_gpu_computed", unit="TFLOP/s",
        direction="higher", of_run="computed",
        text=TextColumn(heading="computed\nTFLOP/s\na GPU"),
    ),
    Metric(
        key="memory_gib", name="memory", unit="GiB", direction="lower", record="memory",
        variant="max_", of_run="highest", over_runs="most", run_heading="memory [GiB]",
        text=TextColumn(heading="memory\n[GiB]"),
    ),
    Metric(
        key="power_w", name="power", unit="W", direction="lower", record="power",
        of_run="computed", run_heading="power [W]", text=TextColumn(heading="power\n[W]"),
    ),
    Metric(
        key="power_per_rank_w", name="power_per_rank", unit="W", direction="lower",
        of_run="computed", text=TextColumn(heading="power of\na rank [W]"),
    ),
    Metric(
        key="energy_j", name="energy", unit="J", direction="lower", record="energy",
        of_run="computed", run_heading="energy [J]", text=TextColumn(heading="energy\n[J]"),
    ),
    Metric(
        key="energy_per_sample_j", name="energy_per_sample", unit="J", direction="lower",
        of_run="computed", run_heading="J per sample", text=TextColumn(heading="J per\nsample"),
    ),
    Metric(
        key="energy_per_token_j", name="energy_per_token", unit="J", direction="lower",
        of_run="computed", text=TextColumn(heading="J per\ntoken"),
    ),
    Metric(
        key="power_per_rate_j", name="power_per_rate", unit="J", direction="lower",
        of_run="computed", text=TextColumn(heading="power /\nrate [J]"),
    ),
)  # fmt: skip
