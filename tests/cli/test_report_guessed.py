"""`hpctrain report` of logs in no known format: the values, and that they were guessed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
LINES = "".join(f"step {n}, loss: 2.5, dt: 5{n % 2}.00ms\n" for n in range(1, 40))


def test_the_first_lines_say_that_values_are_guessed(hpctrain: Hpctrain) -> None:
    Path("own.log").write_text("begin\n" + LINES)
    done = hpctrain("report", "own.log")
    assert done.returncode == 0, done.stderr
    head = " ".join(done.stdout.split())
    assert (
        "Caveats: values of own.log were read by the generic parser (e.g. line 2: "
        "`step 1, loss: 2.5, dt: 51.00ms` as loss 2.5): check them, or give a pattern" in head
    )
    assert "ms a step" in head


def test_stored_records_stay_guessed(hpctrain: Hpctrain) -> None:
    Path("own.log").write_text(LINES)
    Path("two.log").write_text(LINES.replace("2.5", "2.25"))
    assert hpctrain("collect", "own.log", "two.log", "-o", "all.csv").returncode == 0
    done = hpctrain("report", "all.csv")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "values of own.log and of 1 more run were read by the generic parser" in said
    assert "(e.g. line 1: loss 2.5)" in said
