"""Published steps beside the bounds that a measured step of fewer GPUs gives.

Sources of the tables: `tests.scaling.published_tables`. Parameters: torchvision's models and BERT
base. Networks: DGX A100 eight adapters of 200 Gbit/s, DLPerf 100 Gbit/s a node, PyTorch's DDP
benchmark four adapters of 100 Gbit/s; both have NVLink of V100s, 150 GB/s.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from hpc_train.advice.advice import MeasuredStep, Range
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.advice.rows import make_rows
from tests.advice.questions import ask
from tests.scaling.published_tables import rows_of

DLPERF = MachineSize(
    site="published", partition="V100", gpus_per_node=8, ranks_per_node=8, gpu="V100",
    gpu_link=150.0, node_link=12.5,
)  # fmt: skip
DDP = replace(DLPERF, node_link=50.0)
DGX = replace(DLPERF, gpu="A100", gpu_link=300.0, node_link=200.0)
TABLES = {
    "nvidia_resnet50_amp": (25.56e6, DGX, (1,)),
    "dlperf_resnet50": (25.56e6, DLPERF, (1, 8)),
    "dlperf_bert": (110e6, DLPERF, (1, 8)),
    "dlperf_bert_amp": (110e6, DLPERF, (1, 8)),
    "ddp_resnet50_against_no_ddp": (25.56e6, DDP, (1,)),
    "ddp_resnet101_against_no_ddp": (44.55e6, DDP, (1,)),
    "ddp_resnext50_against_no_ddp": (25.03e6, DDP, (1,)),
    "ddp_resnext101_against_no_ddp": (88.79e6, DDP, (1,)),
}
# Of a measurement that was rounded, and of the network's own name for its speed.
TOLERANCE = 0.03


class Compared(NamedTuple):
    """A published step [s] on `ranks` GPUs, and its bounds from the step on `baseline` GPUs."""

    table: str
    baseline: int
    ranks: int
    seconds: float
    bounds: Range

    @property
    def held(self) -> bool:
        """Whether the step is within the bounds, or 3 % beyond."""
        most = self.bounds.high or float("inf")
        return (1 - TOLERANCE) * self.bounds.low <= self.seconds <= (1 + TOLERANCE) * most


def compared() -> Iterator[Compared]:
    """Yield every published step beyond a baseline."""
    for name, (parameters, machine, baselines) in TABLES.items():
        steps = {_ranks(row): _step(row) for row in rows_of(name)}
        for baseline in baselines:
            for ranks, one in steps.items():
                if ranks > baseline:
                    yield _compared(name, int(parameters), machine, (steps[baseline], one))


def compared_with_fewer() -> Iterator[Compared]:
    """Yield every published step on fewer GPUs than another step of its table."""
    for name, (parameters, machine, _) in TABLES.items():
        steps = [_step(row) for row in rows_of(name)]
        for baseline in steps:
            for one in steps:
                if one.ranks < baseline.ranks:
                    yield _compared(name, int(parameters), machine, (baseline, one))


def _compared(
    name: str, parameters: int, machine: MachineSize, pair: tuple[MeasuredStep, MeasuredStep]
) -> Compared:
    baseline, one = pair
    program = ProgramSize(
        name=name, parameters=parameters, global_batch=int(one.batch or 0), optimizer="sgd"
    )
    rows, _ = make_rows(ask(program, machine, one.ranks, measured=(baseline,)))
    bounds = next(row.step for row in rows if row.strategy == one.strategy)
    return Compared(name, baseline.ranks, one.ranks, one.seconds, bounds)


def _ranks(row: dict[str, str]) -> int:
    return int(row["nodes"]) * int(row["tasks_per_node"])


def _step(row: dict[str, str]) -> MeasuredStep:
    ranks = _ranks(row)
    batch = float(row.get("global_batch_size", 256 * ranks))  # NVIDIA's ResNet-50
    return MeasuredStep(
        seconds=batch / float(row["samples_per_second"]),
        ranks=ranks,
        batch=batch,
        strategy="single" if ranks == 1 else "ddp",
        source="published",
    )
