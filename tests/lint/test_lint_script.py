"""Severity by version and site, lines, silence, selection, mending."""

import sys
from typing import Any

import pytest

from hpc_train.base.errors import SpecError, UnknownNameError
from hpc_train.base.values import Version
from hpc_train.lint.lint_script import chosen_rules, lint_script, repair_script
from hpc_train.lint.rule import NCCL, LintContext, parse_version
from hpc_train.sites.profile import SiteProfile
from tests.cases import cases

PORT = "export MASTER_PORT=29500"


def ids(text: str, context: LintContext | None = None) -> list[str]:
    return [finding.id for finding in lint_script(f"#!/bin/bash\n{text}\n", context)]


def severity(text: str, context: LintContext) -> str:
    (found,) = lint_script(f"#!/bin/bash\n{text}\npython train.py\n", context)
    return found.severity


def test_findings_have_the_line_of_what_is_wrong() -> None:
    text = (
        "#!/bin/bash\n#SBATCH --nods=2\n"
        "srun bash -c '\n  torchrun \\\n --nproc-per-node 2 \\\n t.py'\n"
    )
    found = {finding.id: finding.line for finding in lint_script(text)}
    assert found["HT013"] == 2
    assert found["HT221"] == 3
    assert found["HT229"] == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("srun bash -c '\n  torchrun t.py'\necho torchrun\n", 4),
        ('run="\nsrun=1\ntorchrun \\\n t.py"\ndate\nsrun bash -c "$run"\necho torchrun\n', 8),
        ('list="\na\nb"\nsrun bash -c "echo $list\ntorchrun t.py"\n', 6),
    ],
)
def test_a_launch_below_a_shell_has_its_own_line(text: str, line: int) -> None:
    found = lint_script(f"#!/bin/bash\n#SBATCH --signal=USR1@60\n{text}")
    (message,) = [one.message for one in found if one.id == "HT407"]
    assert message.endswith(f"the torchrun of line {line}")


def test_a_known_version_makes_sure() -> None:
    text = "export NCCL_IB_GID_INDEX=3"
    assert severity(text, LintContext()) == "info"
    assert severity(text, LintContext(nccl=Version.parse("2.30"))) == "warning"
    assert ids(f"{text}\npython train.py", LintContext(nccl=Version.parse("2.12"))) == []


def test_a_known_fabric_makes_sure() -> None:
    interface = "export NCCL_SOCKET_IFNAME=eth0"
    assert severity(interface, LintContext()) == "info"
    assert severity(interface, LintContext(fabric="slingshot")) == "warning"
    algorithm = "export NCCL_ALGO=Ring"
    assert severity(algorithm, LintContext(fabric="efa")) == "warning"
    assert ids("export NCCL_IB_DISABLE=1\npython t.py", LintContext(fabric="ethernet")) == []


def test_the_site_names_what_it_knows(demo_site: SiteProfile) -> None:
    text = "#!/bin/bash\n#SBATCH -A a -p gpuu --time=2-0\nmpirun --bind-to none x\n"
    found = {f.id: f for f in lint_script(text, LintContext(site=demo_site))}
    assert "did you mean 'gpu'" in found["HT701"].message
    assert "no MPI here" in found["HT703"].message
    fitting = text.replace("gpuu", "gpu")
    over = next(f for f in lint_script(fitting, LintContext(site=demo_site)) if f.id == "HT702")
    assert over.message == "--time: 2-0, but gpu has at most 1-00:00:00"


@pytest.mark.parametrize(
    "text",
    [
        f"{PORT} # hpctrain: ignore HT303",
        f"# hpctrain: ignore HT001, HT303\n{PORT}",
        f"# hpctrain: ignore\n\n{PORT}",
        f"# hpctrain: ignore HT303\n# hpctrain: ignore HT001\n{PORT}",
        f"{PORT}\n# hpctrain: ignore-file HT303",
        "srun torchrun \\\n  --master-port 29500 t.py # hpctrain: ignore HT303, HT221",
        "# hpctrain: ignore\nsrun torchrun \\\n  --master-port 29500 t.py",
    ],
)
def test_a_comment_silences(text: str) -> None:
    assert ids(text) == []


@pytest.mark.parametrize(
    "text",
    [
        f"# hpctrain: ignore HT301\n{PORT}",
        f"# hpctrain: ignore HT303\necho\n{PORT}",
        f"{PORT}\n# hpctrain: ignore HT303",
    ],
)
def test_a_comment_elsewhere_does_not(text: str) -> None:
    assert ids(text) == ["HT303"]


def test_rules_are_chosen_by_the_beginnings_of_their_ids() -> None:
    every = chosen_rules()
    assert {rule.id for rule in chosen_rules(["HT5"])} == {
        rule.id for rule in every if rule.id.startswith("HT5")
    }
    assert [rule.id for rule in chosen_rules(["ht303,HT001"])] == ["HT001", "HT303"]
    assert len(chosen_rules((), ["HT7"])) == len(every) - 7
    for word in ("HT999", "H", "303", "HT3X"):
        with pytest.raises(UnknownNameError, match=f"unknown rule '{word}'"):
            chosen_rules([word])


@pytest.mark.parametrize(
    "text", ["two", "2.x", "", "2.3.4.5.6", "0", "2", "99", "9" * 10_000, "-1", "2.21\n\n3"]
)
def test_a_version_is_numbers_that_the_product_has(text: str) -> None:
    with pytest.raises(SpecError, match="is not a version of NCCL") as caught:
        parse_version(text, "--nccl", NCCL)
    assert caught.value.hint == "write it like 2.21.5"
    assert len(caught.value.message) < 100
    assert parse_version("v2.21.5-1", "--nccl", NCCL) == "2.21.5"


@pytest.mark.parametrize(
    ("wrong", "right"),
    cases("lint/lint_script.yaml", "what_is_fixable_is_mended_and_nothing_else"),
)
def test_what_is_fixable_is_mended_and_nothing_else(wrong: str, right: str) -> None:
    text, mended = repair_script(wrong)
    assert text == right
    assert mended
    assert repair_script(right) == (right, ())


def test_what_is_silenced_or_not_chosen_is_not_mended() -> None:
    text = "#!/bin/bash\n#sbatch --nodes=2 # hpctrain: ignore HT003\npython t.py\n"
    assert repair_script(text) == (text, ())
    rules = chosen_rules(["HT001"])
    assert repair_script("#!/bin/bash\n#sbatch -N 2\nx", rules=rules)[0].count("#sbatch") == 1


@pytest.mark.parametrize(
    "line",
    [
        "if x; then y=1",
        'if [ -n "$A" ]; then export A=1',
        "while x; do srun python t.py &",
        "case x in a)",
        "torchrun t.py",
        "ssh node torchrun t.py",
    ],
)
def test_the_work_grows_as_the_script(line: str) -> None:
    worked = 0

    def count(*_: object) -> Any:
        nonlocal worked
        worked += 1
        return count

    works = []
    for lines in (100, 400):
        worked = 0
        sys.settrace(count)
        lint_script("#!/bin/bash\n" + f"{line}\n" * lines)
        sys.settrace(None)
        works.append(worked)
    assert works[1] < 6 * works[0]


def test_late_directives_are_one_finding_at_the_first_of_them() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=1\ncd work\n#SBATCH --time=1:00:00\n#SBATCH --mem=4G\n"
    (finding,) = [one for one in lint_script(text) if one.id == "HT002"]
    assert finding.line == 4
    assert finding.message == "ignored, and 1 more: line 3 (`cd work`) is a command"
