"""Peak memory of a rank of the reference trainer on gloo, beside the formulas of `advise`.

A GPT of 163 million parameters, so that states, activations and logits are gigabytes. Minutes for
each strategy: name some, or all of them run.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from tests.advice.measured_memory import MODEL, predicted

ROOT = Path(__file__).resolve().parents[2]
# Strategy -> ranks, samples of one forward pass of a rank, and the global batch.
SIZES = {
    "single": (1, 2, 2),
    "ddp": (2, 1, 2),
    "zero1": (2, 1, 2),
    "fsdp": (2, 1, 2),
    "hsdp": (4, 1, 4),
}
# The state of the optimiser exists from the second step on, all buckets of ddp from the third.
STEPS = 3


def main() -> None:
    """Print the measured peak, the bounds, and how far their middle is from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("strategies", nargs="*", metavar="STRATEGY", default=list(SIZES))
    print("strategy  ranks  measured [GiB]  bounds [GiB]  middle")
    for name in parser.parse_args().strategies:
        ranks, samples, batch = SIZES[name]
        peak, found = measured(name, ranks, batch), predicted(name, ranks, samples)
        middle = (found.low + (found.high or 0.0)) / 2
        bounds = f"{found.low:.2f} to {found.high:.2f}"
        print(f"{name:13} {ranks:6} {peak:15.3f}  {bounds} {middle / peak - 1:+7.1%}", flush=True)


def measured(strategy: str, ranks: int, batch: int) -> float:
    """Train with a global batch of so many samples; return the largest peak of a rank [GiB]."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    trainer = ["-m", "hpc_train.trainer.train", "--model", MODEL, "--strategy", strategy]
    size = ["--global-batch-size", str(batch), "--steps", str(STEPS), "--optimizer", "adamw"]
    command = [sys.executable, *torchrun, *trainer, *size, "--no-accuracy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (line.partition("@hpct ")[2] for line in done.stdout.splitlines())
    events = [json.loads(line) for line in lines if line]
    return max(float(event["memory"]) for event in events if event["event"] == "memory")


if __name__ == "__main__":
    main()
