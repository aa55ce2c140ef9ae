"""examples/restart/train.py, which a test holds: before some epochs it waits for `go-EPOCH`."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from hpc_train.trainer import checkpoint
from hpc_train.trainer.emit import emit
from hpc_train.trainer.process_group import any_rank

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "restart"))

import train  # type: ignore[import-not-found]  # noqa: E402

EPOCHS, GATE = 20, 6


class HeldSampler(train.DistributedSampler):  # type: ignore[misc]
    """Waits at the beginning of an epoch, on all ranks, unless the job asks to stop."""

    def set_epoch(self, epoch: int) -> None:
        """Wait every few epochs, with no checkpoint under way."""
        super().set_epoch(epoch)
        gates = Path(sys.argv[1]) if sys.argv[1:] else None
        if gates is None or epoch % GATE or not epoch:
            return
        checkpoint.finish()
        emit(event="held", held=epoch)
        while not checkpoint.should_stop() and not any_rank((gates / f"go-{epoch}").exists()):
            time.sleep(0.02)


def main() -> Any:
    """Train as the example does."""
    emit(event="start", pid=os.getpid())
    train.DistributedSampler = HeldSampler
    return train.main(EPOCHS)


if __name__ == "__main__":
    sys.exit(main())
