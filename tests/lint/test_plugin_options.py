"""Options of a site's plug-ins: known at the site, a doubt elsewhere."""

import pytest

from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.rule import LintContext
from tests.lint.conftest import TIGHT, site


def found(line: str, context: LintContext | None = None) -> list[tuple[str, str]]:
    text = f"#!/bin/bash\n#SBATCH {line} --time=1:00:00\nsrun hostname\n"
    return [(one.id, one.severity) for one in lint_script(text, context)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--image docker:me/torch:24", [("HT013", "info")]),
        ("--gpu-debug on", [("HT013", "info")]),
        ("--array1-5", [("HT013", "warning")]),
        ("--ARRAY=1-5", [("HT013", "warning")]),
        ("--q-backend=a", [("HT013", "info")]),
        ("--nods=2", [("HT013", "warning")]),
        ("--walltime=2", [("HT013", "warning")]),
        ("-l", [("HT013", "error")]),
        ("--container-image=a", []),
    ],
)
def test_only_what_no_plugin_can_add_is_an_error(
    line: str, expected: list[tuple[str, str]]
) -> None:
    assert found(line) == expected


def test_the_site_declares_its_own_options() -> None:
    tight = LintContext(site=site({**TIGHT, "required": []}))
    assert found("--gpu-debug on --nv", tight) == []
    assert found("--gpu-debg=on", tight) == [("HT013", "warning")]
    image = {**TIGHT, "required": [], "plugin_options": {"image": "value"}}
    assert found("--image x", LintContext(site=site(image))) == []


def test_srun_of_the_site_has_them_too() -> None:
    text = "#!/bin/bash\n#SBATCH -N2 --time=1:00:00\nsrun --gpu-debug torchrun --nnodes=3 t.py\n"
    assert "HT225" in [one.id for one in lint_script(text)]
    tight = LintContext(site=site({**TIGHT, "required": []}))
    assert "HT225" not in [one.id for one in lint_script(text, tight)]
