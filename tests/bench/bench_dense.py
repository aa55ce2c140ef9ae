"""A log in which every line counts: `collect` beside a script that a user writes by hand.

The log is all samples, one behind the other, again and again: those of tests/logs, and those of the
folder that tests/known reads, where there is one. Both write a CSV file; both are whole processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.whole_process import ROOT, compared, main
from tests.known.folder import FOLDER as SAMPLES

FOLDER = Path("build/bench/logs")
_COLLECT = [sys.executable, "-m", "hpc_train", "collect"]
_BY_HAND = [sys.executable, str(ROOT / "tests/bench/by_hand.py")]


def samples() -> list[Path]:
    """Return the logs of which the dense one is made."""
    folders = (ROOT / "tests/logs", SAMPLES)
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if path.name != "MANIFEST.tsv"]


def dense_log(folder: Path, size: int) -> Path:
    """Write the log, unless it is there."""
    once = b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in samples())
    path = folder / f"dense-{size}-{len(once)}.log"
    if not path.exists():
        with path.open("wb") as file:
            for _ in range(max(1, size // len(once))):
                file.write(once)
    return path


def measure(quick: bool) -> tuple[str, list[tuple[str, ...]]]:
    """Measure both; return what was read, and the rows."""
    size, rounds = (100_000_000, 3) if quick else (1_000_000_000, 3)
    FOLDER.mkdir(parents=True, exist_ok=True)
    log, out = str(dense_log(FOLDER, size)), str(FOLDER / "dense.csv")
    sides = [
        ("a script of 40 lines", [*_BY_HAND, log, out]),
        ("hpctrain collect -o", [*_COLLECT, log, "-o", out]),
    ]
    return f"{size / 1e9:g} GB, {len(samples())} samples repeated", compared(sides, rounds, 1.0)


if __name__ == "__main__":
    main("A log in which every line counts", __doc__ or "", measure)
