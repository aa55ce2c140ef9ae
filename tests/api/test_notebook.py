"""In the kernel of a notebook: what its cells show."""

from pathlib import Path

import pytest

from tests.api.kernel import executed, shown

pytestmark = pytest.mark.process
KEPT = "import hpc_train, os\nbefore = os.getcwd(), dict(os.environ)"


def test_values_are_shown(files: Path) -> None:
    _, waited, value, log, loop, kept = executed(
        files,
        f"{KEPT}\nrun = hpc_train.submit('job.yaml')",
        "run.wait()",
        "run",
        "run.logs(rank=0)",
        "import asyncio; asyncio.get_running_loop().is_running()",
        "before == (os.getcwd(), dict(os.environ))",
    )
    assert shown(waited) == ["'COMPLETED'"]
    assert "COMPLETED" in shown(value, "text/html")[0]
    assert shown(value, "text/html")[0].startswith("<pre ")
    assert "X is None" in shown(log, "text/html")[0]
    assert shown(loop) == shown(kept) == ["True"]
