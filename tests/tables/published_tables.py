"""Tables that others have published, as CSV files of ours, and what their sources conclude.

One row for each job. Rates of DDP, DLPerf, MPT and BERT are of all GPUs together, times in seconds.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from hpc_train.model.expected_study import ExpectedRun, ExpectedStudy
from hpc_train.model.plan import Topology
from hpc_train.model.record import Record
from hpc_train.model.study import Scaling
from tests.tables.studies import record, study

FOLDER = Path(__file__).parent / "published"
TIMES = ("epoch_time", "time_to_train")


class Published(NamedTuple):
    """Speedups and efficiencies in percent, as printed; empty where the source has none.

    `late` says that the source divided numbers which it had not yet rounded, so that the last digit
    of the rates counts as well as that of the speedups.
    """

    source: str
    speedups: tuple[float, ...] = ()
    percents: tuple[float, ...] = ()
    late: bool = False


BERT = "NVIDIA/DeepLearningExamples@729963d PyTorch/LanguageModeling/BERT, DGX A100 80 GB"
DDP = "pytorch/pytorch@bf69c14 benchmarks/distributed/ddp/README.md, p50 of 32 V100s"
DLPERF = "Oneflow-Inc/DLPerf@c89430b, 4 nodes of 8 V100s"
MPT = "mosaicml/llm-foundry@8c8dd48 scripts/train/benchmarking/README.md"
MLPERF = "mlcommons/training_results"
PUBLISHED = {
    "book": Published("Accelerate Model Training with PyTorch 2.X, ch. 10", (1, 6.5), (100, 81)),
    "nvidia_resnet50_amp": Published(
        "NVIDIA/DeepLearningExamples@729963d ConvNets/resnet50v1.5, DGX A100", (1, 6.729), (100, 84)
    ),
    "nvidia_bert_fp16_s128": Published(BERT, (1, 2.02, 3.98, 7.86, 15.50, 30.37), late=True),
    "nvidia_bert_tf32_s128": Published(BERT, (1, 2.00, 3.97, 7.97, 15.63, 30.45), late=True),
    "nvidia_bert_fp16_s512": Published(BERT, (1, 2.00, 3.92, 7.89, 15.51, 30.13), late=True),
    "nvidia_bert_tf32_s512": Published(BERT, (1, 1.97, 3.86, 7.63, 14.21, 24.95), late=True),
    "ddp_resnet50": Published(DDP, (1, 1.94, 3.89, 7.70, 15.35), (100, 97, 97, 96, 96)),
    "ddp_resnet50_against_no_ddp": Published(
        DDP, (1, 1.88, 3.77, 7.47, 14.88), (100, 94, 94, 93, 93)
    ),
    "ddp_resnet101": Published(DDP, (1, 1.95, 3.89, 7.66, 15.23)),
    "ddp_resnet101_against_no_ddp": Published(DDP, (1, 1.85, 3.70, 7.27, 14.46)),
    "ddp_resnext50": Published(DDP, (1, 1.93, 3.83, 7.52, 14.97)),
    "ddp_resnext50_against_no_ddp": Published(DDP, (1, 1.90, 3.78, 7.42, 14.76)),
    "ddp_resnext101": Published(DDP, (1, 1.95, 3.84, 7.57, 15.15)),
    "ddp_resnext101_against_no_ddp": Published(DDP, (1, 1.90, 3.74, 7.38, 14.75)),
    "dlperf_resnet50": Published(DLPERF, (1, 3.95, 7.86, 15.56, 29.72)),
    "dlperf_bert": Published(DLPERF, (1, 3.83, 7.70, 12.54, 24.13)),
    "dlperf_bert_amp": Published(DLPERF, (1, 3.76, 7.32, 11.11, 20.99), (100, 94, 91, 69, 66)),
    "mlperf_llama_405b": Published(
        "mlcommons/training_results_v5.0, Llama 3.1 405B, H100", (), (100, 91, 80, 92, 73)
    ),
    "mpt_1b_a100": Published(MPT, (), (100, 99, 81, 99, 97)),
    "mpt_7b_h100": Published(MPT, (), (100, 98.4, 95.1, 90.9)),
    "mpt_1b_h100": Published(MPT, (), (100, 98.0, 96.4, 95.8, 92.4, 86.5)),
    "mlperf_lora_gb200": Published(
        f"{MLPERF}_v5.0, Llama 2 70B LoRA, GB200", (), (100, 74, 55, 31)
    ),
    "mlperf_gpt3_tpu": Published(f"{MLPERF}_v4.0, GPT-3, TPU v5p", (), (100, 101, 98, 78)),
    "mlperf_resnet50_pcie": Published(
        f"{MLPERF}_v3.1, ResNet-50, A100-PCIe", (), (100, 98, 97, 95)
    ),
    "mlperf_transformer_a100": Published(
        f"{MLPERF}_v0.7, Transformer, A100", (), (100, 90, 43, 38, 21)
    ),
    "mlperf_bert_a100": Published(f"{MLPERF}_v2.1, BERT, A100", (), (100, 85, 31, 16)),
    "torchtitan_8b": Published(
        "pytorch/torchtitan@b5bcd76 benchmarks/llama3_h100_202412", (), (100, 97.3)
    ),
    "athena": Published(
        "Some-random/athena docs/tutorials, 1S-1, 1S-4, 2S-2x2, 2S-2x4",
        (1, 2.23, 2.43, 4.32),
        (100, 56, 61, 54),
    ),
    "princeton_tf": Published(
        "PrincetonUniversity/multi_gpu_training@2e975ad tensorflow/README",
        (1, 1.69, 2.26, 2.63),
        (100, 85, 75, 66),
    ),
}


def path_of(name: str) -> Path:
    """Return the CSV file of a published table."""
    return FOLDER / f"{name}.csv"


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table, as text."""
    with path_of(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def measured(
    name: str, scaling: Scaling | None = None, parser: str = "event"
) -> tuple[ExpectedStudy, list[Record]]:
    """Return a published table as a study: one run for each row, and its numbers as records."""
    runs, records = [], []
    for number, row in enumerate(rows_of(name), start=1):
        nodes, gpus, tasks = (
            int(row.pop(key)) for key in ("nodes", "gpus_per_node", "tasks_per_node")
        )
        run = f"row {number}"
        topology = Topology(nodes=nodes, gpus_per_node=gpus, tasks_per_node=tasks, cpus_per_task=1)
        runs.append(
            ExpectedRun(run_id=run, axes={}, repetition=1, topology=topology, state="COMPLETED")
        )
        records += [
            record(run, metric, float(text), parser=parser, step=1 if metric in TIMES else None)
            for metric, text in row.items()
        ]
    return study(runs, scaling=scaling), records


def half_unit(text: str) -> float:
    """Return half of the last digit's place: how far a rounded number may be off."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])
