"""Quoting: once, by kind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.errors import RenderError
from hpc_train.model.plan import FirstOf, JobVar, LaunchPlan, Setting, Text
from hpc_train.scripts.jinja_environment import exports
from hpc_train.scripts.quote_filters import (
    command,
    comment,
    directive,
    line,
    quoted_directive,
    required,
    sh,
    token,
)


def test_a_literal_is_quoted_and_a_job_variable_expands() -> None:
    assert token(Text(text="a $(id)")) == "'a $(id)'"
    assert token(JobVar(name="MASTER_ADDR")) == '"$MASTER_ADDR"'
    assert required(JobVar(name="R")) == '"${R:?the launcher did not set it}"'
    assert required(Text(text="0")) == "0"


@pytest.mark.parametrize(
    ("given", "written", "value"),
    [
        ({"A": "1", "B": "2", "C": "3"}, token, "1"),
        ({"B": "2", "C": "3"}, token, "2"),
        ({"A": "", "C": "3"}, required, "3"),
        ({}, token, ""),
        ({}, required, None),
    ],
)
def test_of_several_variables_the_first_that_is_set_counts(
    given: dict[str, str], written: Callable[[FirstOf], str], value: str | None
) -> None:
    word = written(FirstOf(names=("A", "B", "C")))
    script = f'printf "%s" {word}'
    done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True)
    if value is None:
        assert (done.returncode, "the launcher did not set it" in done.stderr) == (127, True)
    else:
        assert (done.returncode, done.stdout) == (0, value)


def test_a_directive_with_blanks_keeps_its_backslashes_and_quotes() -> None:
    assert quoted_directive("gpu:4") == "gpu:4"
    assert quoted_directive('a\\b "c"') == '"a\\\\b \\"c\\""'


def test_variables_of_two_files_have_lines_of_their_own(plan: Callable[..., LaunchPlan]) -> None:
    why = "the fabric"
    made = msgspec.structs.replace(
        plan(),
        env=(("A", "1"), ("B", "2"), ("C", "3")),
        settings={
            "env.A": Setting(value="1", origin="site.yaml:3", why=why),
            "env.B": Setting(value="2", origin="site.yaml:4", why=why),
            "env.C": Setting(value="3", origin="job.yaml:5", why=why),
        },
    )
    assert exports(made, notes=False) == "export A=1 B=2\nexport C=3\n"


def test_a_value_that_begins_with_an_equals_sign_is_no_comparison() -> None:
    assert sh("=mlx5_0") == line("=mlx5_0") == "'=mlx5_0'"
    assert sh("=it's") == "'=it'\"'\"'s'"
    assert sh("a=b") == "a=b"


@pytest.mark.parametrize("value", ["gpu", "a100&nvlink", "01:30:00", "gpu:a100:4", "[a|b]*2"])
def test_a_directive_takes_what_slurm_uses(value: str) -> None:
    assert directive(value) == value


@pytest.mark.parametrize("value", ["a b", "x\n#SBATCH --qos=high", "$(id)", "`id`", "a'b", '"', ""])
def test_a_directive_cannot_become_another(value: str) -> None:
    with pytest.raises(RenderError, match="cannot be written as an #SBATCH value"):
        directive(value)


def test_a_long_command_breaks_before_options() -> None:
    words = [Text(text=word) for word in ["srun", *[f"--option-number-{i}=x" for i in range(9)]]]
    lines = command(words).split(" \\\n  ")
    assert len(lines) > 1
    assert all(len(line) < 100 for line in lines)
    assert all(line.startswith("--") for line in lines[1:])


HOSTILE = st.text(st.sampled_from("a b\n\\'\"$`n!=#\r\t"), max_size=12)


@settings(deadline=None, max_examples=15)
@given(HOSTILE, HOSTILE)
def test_bash_reads_back_what_was_quoted(one: str, other: str) -> None:
    values = [one, other, "a\\nb\n", "\\'\n"]
    words = " ".join([*map(sh, values), *map(line, values)])
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True
    )
    # As bytes: text would lose the carriage returns.
    assert printed.stdout.decode() == "".join(f"{value}\0" for value in [*values, *values])


def test_one_line_stays_one_line() -> None:
    assert "\n" not in line("a\nb'c\n")


def test_a_comment_has_no_line_end_of_any_kind() -> None:
    ends = "\n\r\v\f\x1b\x85\u2028\u2029"
    assert comment(f"a{ends}b é") == f"a{' ' * len(ends)}b é"
