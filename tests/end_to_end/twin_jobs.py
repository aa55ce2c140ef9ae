"""Jobs as users write them, for the twins of seven sites, and the answer of each twin."""

from __future__ import annotations

from typing import NamedTuple

ACCEPTED = "to start at"
# Slurm's own words.
TOO_MANY_NODES = "Node count specification invalid"
TOO_LONG = "Requested time limit is invalid"
NO_SUCH_NODE = "Requested node configuration is not available"
QOS_NODES, QOS_GPUS, QOS_TIME = "QOSMaxNode", "QOSMaxGRES", "QOSMaxWall"
NO_MEMORY = f"{NO_SUCH_NODE}|Memory specification"
NO_SUCH_QOS, NO_SUCH_PARTITION = "Invalid qos", "invalid partition specified|Invalid partition"
NO_SUCH_FEATURE = "Invalid feature specification"


class TwinJob(NamedTuple):
    """The options of sbatch, and a regular expression of its answer."""

    site: str
    options: str
    answer: str


_PERLMUTTER = (
    ("-A m1234 -C gpu -q regular -N 256 -t 48:00:00 --gpus-per-node=4", ACCEPTED),
    ("-A m1234_g -C gpu -q regular -N 1 -t 48:01:00", QOS_TIME),
    ("-A m1234_g -C gpu -q debug -N 8 -t 30 --gpus-per-node=4", ACCEPTED),
    ("-A m1234_g -C gpu -q debug -N 9 -t 30", QOS_NODES),
    ("-A m1234_g -C gpu -q debug -N 8 -t 31", QOS_TIME),
    # A job without a QOS gets debug.
    ("-A m1234_g -C gpu -N 8 -t 30", ACCEPTED),
    ("-A m1234_g -C gpu -N 9 -t 30", QOS_NODES),
    ("-A m1234_g -C gpu -N 1 -t 1:00:00", QOS_TIME),
    ("-A m1234_g -q regular -N 1 -t 30", "perlmutter: needs a constraint"),
    ("-A m1234_g -C knl -q regular -N 1 -t 30", NO_SUCH_FEATURE),
    ("-A m1234_g -C gpu&hbm80g -q regular -N 256 -t 30", ACCEPTED),
    (
        "-A m1234_g -C gpu&hbm80g -q regular -N 257 -t 30",
        "nodes = 257, but gpu-hbm80g",
    ),
    ("-A m1234_g -C gpu -q shared -N 1 -t 30 --gpus-per-node=2", ACCEPTED),
    ("-A m1234_g -C gpu -q shared -N 1 -t 30 --gpus-per-node=3", QOS_GPUS),
    ("-A m1234_g -C gpu -q interactive -N 4 -t 4:00:00", ACCEPTED),
    ("-A m1234_g -C gpu -q interactive -N 5 -t 4:00:00", QOS_NODES),
    ("-A m1234_g -C gpu -q preempt -N 129 -t 30", QOS_NODES),
    ("-A m1234_g -C gpu -q regulr -N 1 -t 30", NO_SUCH_QOS),
    (
        "-A m1234_g -C gpu -q regular -N 1 -t 30 --gpus-per-node=5",
        "GPUs of a node = 5, but gpu has",
    ),
)
_FRONTIER = (
    ("-A abc123 -N 200 -t 12:00:00", ACCEPTED),
    ("-A ABC123 -N 2000 -t 12:00:00 --gpus-per-node=8", ACCEPTED),
    ("-A abc123 -N 200 -t 12:01:00", "minutes = 721, but batch has at most 720"),
    ("-A abc123 -N 183 -t 6:00:00", ACCEPTED),
    ("-A abc123 -N 183 -t 6:01:00", "minutes = 361, but batch has at most 360"),
    ("-A abc123 -N 91 -t 2:00:00", ACCEPTED),
    ("-A abc123 -N 91 -t 2:01:00", "minutes = 121, but batch has at most 120"),
    ("-A abc123 -p extended -N 64 -t 24:00:00", ACCEPTED),
    ("-A abc123 -p extended -N 65 -t 24:00:00", TOO_MANY_NODES),
    ("-A abc123 -p extended -N 1 -t 24:01:00", TOO_LONG),
    ("-A abc123 -q debug -N 92 -t 2:00:00", ACCEPTED),
    ("-A abc123 -q debug -N 92 -t 2:01:00", QOS_TIME),
    ("-N 1 -t 10", "frontier: needs an account"),
    ("-A abc123 -p gpu -N 1 -t 10", NO_SUCH_PARTITION),
    ("-A abc123 -N 1 -t 10 --gpus-per-node=9", "GPUs of a node = 9, but batch has at most 8"),
)
_LUMI = (
    ("-A project_462000001 -p standard-g -N 1024 -t 48:00:00 --gpus-per-node=8", ACCEPTED),
    ("-A project_462000001 -p standard-g -N 1025 -t 1:00:00", TOO_MANY_NODES),
    ("-A project_462000001 -p standard-g -N 1 -t 48:01:00", TOO_LONG),
    ("-A project_462000001 -p small-g -N 4 -t 72:00:00 --gpus-per-node=1", ACCEPTED),
    ("-A project_462000001 -p small-g -N 5 -t 1:00:00", TOO_MANY_NODES),
    ("-A project_462000001 -p dev-g -N 32 -t 3:00:00", ACCEPTED),
    ("-A project_462000001 -p dev-g -N 1 -t 3:01:00", TOO_LONG),
    ("-A project_462000001 -p dev-g -N 1 -t 10 --gpus-per-node=9", NO_SUCH_NODE),
    ("-A project_462000001 -N 1 -t 10", "No partition specified"),
)
_LEONARDO = (
    ("-A IscrC_ABC -p boost_usr_prod -N 64 -t 24:00:00 --gres=gpu:4", ACCEPTED),
    ("-A euhpc_b01_001 -p boost_usr_prod -q boost_qos_dbg -N 2 -t 30 --gres=gpu:4", ACCEPTED),
    ("-A IscrC_ABC -p boost_usr_prod -q boost_qos_dbg -N 1 -t 31 --gres=gpu:4", QOS_TIME),
    ("-p boost_usr_prod -N 1 -t 30 --gres=gpu:4", "leonardo: needs an account"),
    ("-A IscrC_ABC -p boost_usr_prod -N 1 -t 30 --gres=gpu:5", NO_SUCH_NODE),
    (
        "-A IscrC_ABC -p boost_usr_prod -N 1 -t 30 --mem=482G",
        NO_MEMORY,
    ),
    ("-A IscrC_ABC -p booster -N 1 -t 30", NO_SUCH_PARTITION),
)
_JEAN_ZAY = (
    ("-A abc@v100 -N 8 -t 20:00:00 --gres=gpu:4", ACCEPTED),
    ("-A abc@v100 -N 8 -t 20:01:00 --gres=gpu:4", QOS_TIME),
    ("-A abc@v100 -N 129 -t 1:00:00 --gres=gpu:4", QOS_GPUS),
    ("-A abc@v100 -q qos_gpu-t4 -N 4 -t 100:00:00 --gres=gpu:4", ACCEPTED),
    ("-A abc@v100 -q qos_gpu-t4 -N 5 -t 100:00:00 --gres=gpu:4", QOS_GPUS),
    ("-A abc@v100 -q qos_gpu-dev -N 1 -t 2:01:00 --gres=gpu:4", QOS_TIME),
    ("-A abc@a100 -C a100 -N 2 -t 20:00:00 --gres=gpu:8", ACCEPTED),
    ("-A abc@a100 -C a100 -N 2 -t 20:01:00 --gres=gpu:8", QOS_TIME),
    ("-A abc@h100 -C h100 -q qos_gpu_h100-t4 -N 16 -t 100:00:00 --gres=gpu:4", ACCEPTED),
    ("-A abc@h100 -C h100 -q qos_gpu_h100-dev -N 9 -t 2:00:00 --gres=gpu:4", QOS_GPUS),
    ("-A abc@v100 -C a100 -N 2 -t 10 --gres=gpu:8", "account = abc@v100, but a100 wants @a100"),
    ("-A abc@a100 -C a100 -q qos_gpu-t4 -N 2 -t 10", "qos qos_gpu-t4 is not for a100"),
    ("-A abc@h100 -C h100 -N 1 -t 10 --gres=gpu:5", "GPUs of a node = 5, but h100 has at most 4"),
    ("-N 1 -t 10 --gres=gpu:4", "jean-zay: needs an account"),
)
_DELTA = (
    ("-A bbka-delta-gpu -p gpuA100x4 -N 16 -t 48:00:00 --gpus-per-node=4", ACCEPTED),
    ("-A bbka-delta-gpu -p gpuA100x4 -N 1 -t 48:01:00", TOO_LONG),
    ("-A bbka-delta-gpu -p gpuA100x4-interactive -N 4 -t 1:00:00", ACCEPTED),
    ("-A bbka-delta-gpu -p gpuA100x4-interactive -N 5 -t 1:00:00", TOO_MANY_NODES),
    ("-A bbka-delta-gpu -p gpuA100x4-interactive -N 1 -t 1:01:00", TOO_LONG),
    ("-A bbka-delta-gpu -p gpuA100x4 -N 1 -t 10 --gpus-per-node=8", NO_SUCH_NODE),
    ("-A bbka-delta-gpu -p gpuH200x8 -N 1 -t 10 --gpus-per-node=h200:8", ACCEPTED),
)
_ISAMBARD = (
    ("-N 1 -t 10 --gpus=4", ACCEPTED),
    # Slurm 26.05 itself accepts it.
    ("-N 1 -t 10 --gpus=5", "GPUs of all nodes = 5, but gpu, with nodes = 1, has at most 4"),
    ("-N 2 -t 10 --gpus=8", ACCEPTED),
    ("-N 2 -t 10 --gpus=9", "GPUs of all nodes = 9, but gpu, with nodes = 2, has at most 8"),
    ("-N 1-2 -t 10 --gpus=8", ACCEPTED),
    ("-t 10 --gpus=8", ACCEPTED),
)
TWIN_JOBS = tuple(
    TwinJob(site, options, answer)
    for site, jobs in {
        "perlmutter": _PERLMUTTER,
        "frontier": _FRONTIER,
        "lumi-g": _LUMI,
        "leonardo": _LEONARDO,
        "jean-zay": _JEAN_ZAY,
        "delta": _DELTA,
        "isambard-ai": _ISAMBARD,
    }.items()
    for options, answer in jobs
)
