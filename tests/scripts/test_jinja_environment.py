"""What a template cannot do, and the line that says so."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import RenderError
from hpc_train.plans.plan import FirstOf, LaunchPlan
from hpc_train.scripts.render import comment, quoted_directive, render_script, required, sh, token
from tests.cases import cases

Plans = Callable[..., LaunchPlan]
Refused = Callable[[str], str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "templates").mkdir()
    (tmp_path / "secret.txt").write_text("password\n")
    return tmp_path / "templates"


@pytest.fixture
def refused(plan: Plans, folder: Path) -> Refused:
    """Render a template that must not be; return the message, below the folder's name."""
    single = plan("local", launcher="single", resources={"cpus_per_task": 1})
    bad = msgspec.structs.replace(single, template="bad.j2")

    def render(text: str) -> str:
        (folder / "bad.j2").write_text(text)
        with pytest.raises(RenderError) as caught:
            render_script(bad, [folder])
        return caught.value.message.replace(f"{folder}/", "")

    return render


ESCAPES, ENDLESS, MISTAKES = (
    cases("scripts/refused_templates.yaml", key) for key in ("escapes", "endless", "mistakes")
)


@pytest.mark.parametrize(("text", "message"), ESCAPES)
def test_there_is_no_way_out(refused: Refused, text: str, message: str) -> None:
    said = refused(f"# one\n# two\n{text}")
    assert said.startswith("bad.j2:3: ")
    assert message in said
    assert "password" not in said


@pytest.mark.parametrize(("text", "message"), ENDLESS)
def test_there_is_an_end(refused: Refused, folder: Path, text: str, message: str) -> None:
    (folder / "there.j2").write_text("{% include 'back.j2' %}")
    (folder / "back.j2").write_text("{% include 'there.j2' %}")
    assert message in refused(text)


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_answered_with_its_line(refused: Refused, text: str, message: str) -> None:
    said = refused(f"# one\n\n{{% if true %}}\n{text}\n{{% endif %}}\n")
    assert said.startswith("bad.j2:4: ")
    assert message in said


def test_a_mistake_in_a_part_names_the_part(refused: Refused, folder: Path) -> None:
    (folder / "_part.j2").write_text(
        "{% macro m(x) %}\n{{ x.nothing }}\n{% endmacro %}\n\n{% if %}"
    )
    assert refused("{% include '_part.j2' %}").startswith("_part.j2:5: ")
    (folder / "_part.j2").write_text("{% macro m(x) %}\n{{ x.nothing }}\n{% endmacro %}")
    text = "\n{% from '_part.j2' import m %}\n{{ m(plan) }}"
    assert refused(text).startswith("_part.j2:2: unknown field 'plan.nothing'")


def test_a_link_may_not_lead_out_of_the_folder(refused: Refused, folder: Path) -> None:
    (folder / "link.j2").symlink_to(folder.parent / "secret.txt")
    (folder / "more").symlink_to(folder.parent)
    assert "link.j2: a link that leads out of " in refused("{% include 'link.j2' %}")
    assert "more/secret.txt: a link that" in refused("{% include 'more/secret.txt' %}")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "_odd.j2: not UTF-8 text (byte 0)"), (b" " * (1024 * 1024 + 1), "is this a temp")],
)
def test_what_is_no_template(refused: Refused, folder: Path, content: bytes, message: str) -> None:
    (folder / "_odd.j2").write_bytes(content)
    said = refused("{% include '_odd.j2' %}")
    assert said.startswith("bad.j2:1: _odd.j2: ")
    assert message in said


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


def test_a_value_that_begins_with_an_equals_sign_is_no_comparison() -> None:
    assert sh("=mlx5_0") == "'=mlx5_0'"
    assert sh("=it's") == "'=it'\"'\"'s'"
    assert sh("a=b") == "a=b"


def test_a_line_of_a_value_ends_no_here_document() -> None:
    value = "first\nEND\nlast"
    script = f"cat <<END | bash\nprintf %s {sh(value)}\nEND\n"
    assert subprocess.check_output(["bash", "-c", script], text=True) == value


def test_a_comment_has_no_line_end_of_any_kind() -> None:
    ends = "\n\r\v\f\x1b\x85\u2028\u2029"
    assert comment(f"a{ends}b é") == f"a{' ' * len(ends)}b é"
