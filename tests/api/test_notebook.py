"""In the kernel of a notebook: one cell that is updated, and `%%hpctrain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.kernel import errors, executed, shown

pytestmark = pytest.mark.process
KEPT = "import hpc_train, os\nbefore = os.getcwd(), dict(os.environ)"


def test_wait_updates_one_display(files: Path) -> None:
    _, waited, value, log, loop, kept = executed(
        files,
        f"{KEPT}\nrun = hpc_train.submit('job.yaml')",
        "run.wait()",
        "run",
        "run.logs(rank=0)",
        "import asyncio; asyncio.get_running_loop().is_running()",
        "before == (os.getcwd(), dict(os.environ))",
    )
    display, result = waited
    assert display["output_type"] == "display_data"
    assert "COMPLETED" in display["data"]["text/html"]
    assert result["data"]["text/plain"] == "'COMPLETED'"
    assert shown(value, "text/html")[0].startswith("<pre ")
    assert "X is None" in shown(log, "text/html")[0]
    assert shown(loop) == shown(kept) == ["True"]


def test_a_cell_runs_as_a_script_of_its_own(files: Path) -> None:
    (files / "beside.py").write_text("VALUE = 'from the folder'\n")
    code = (
        "import sys, os, beside\n"
        "print(sys.argv[1:], beside.VALUE, sys.executable == os.environ['KERNEL'])\n"
        "print(os.environ.get('MPLBACKEND'), os.environ.get('FORCE_COLOR'), 'x' in globals())\n"
    )
    outputs = executed(
        files,
        "%load_ext hpc_train\nimport os, sys\nx, os.environ['KERNEL'] = 1, sys.executable",
        f"%%hpctrain --name mine --launcher single --var run --wait -- a 'b c'\n{code}",
        "print(run.logs(rank=0), run.state, (run.folder / 'cell.py').read_text())",
        "%%hpctrain --launcher single --set env.X=2\nprint(1)",
    )
    assert len(shown(outputs[1])) == 1
    assert "COMPLETED" in shown(outputs[1], "text/html")[0]
    printed = outputs[2][0]["text"]
    assert printed.startswith("['a', 'b c'] from the folder True\nNone None False\n COMPLETED")
    assert printed.endswith(f"{code}\n")
    assert shown(outputs[3], "text/html")
    assert sorted(path.name for path in (files / "results").iterdir()) == [".cells", "cell", "mine"]


WRONG = {
    "--nodez 3\nx = 1": "unknown option '--nodez'; did you mean '--nodes'?",
    "--nodes many\nx = 1": "--nodes: resources.nodes: must be a whole number",
    "--site nowhere\nx = 1": "unknown site 'nowhere'",
    "--max-gpu-hours x\nx = 1": "argument --max-gpu-hours: invalid float value: 'x'",
    "--max-gpu-hours nan\nx = 1": "max_gpu_hours: Expected `float` >= 0.0: nan",
    "--set nodes\nx = 1": "--set nodes: write KEY=VALUE",
    "--var a-b\nx = 1": "'a-b' is not the name of a variable",
    "'a\nx = 1": "No closing quotation",
    "\nx = (": "cell, line 1: not a Python program",
    "\nTOKEN = 'abcdefghijk1'": "cell, line 1: TOKEN looks like a secret",
    "\n1\nf('hf_abcdefghijklmnopqrstuvwx')": "cell, line 2: it contains a secret (hf_…)",
    "\nf('from-the-shell')": "cell: it contains the value of MY_API_KEY",
    "\n\n": "%%hpctrain: the cell is empty",
}


def test_a_wrong_cell_is_an_error_of_ours_and_stores_nothing(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "from-the-shell")
    cells = [f"%%hpctrain {text}" for text in WRONG]
    _, *outputs = executed(files, "%load_ext hpc_train", *cells, failing=True)
    for pattern, output in zip(WRONG.values(), outputs, strict=True):
        ((name, text),) = errors(output)
        assert pattern in text
        assert name in ("ArgumentError", "SpecError", "UnknownNameError")
    assert not (files / "results").exists()
