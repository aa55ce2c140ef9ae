"""What a template cannot do, and the line that says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.errors import RenderError
from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

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


ESCAPES = [
    ("{{ plan.__class__ }}", "access to attribute '__class__' of 'LaunchPlan' object is unsafe"),
    ("{{ plan['__class__'] }}", "access to attribute '__class__' of 'LaunchPlan'"),
    ("{{ ().__class__.__base__.__subclasses__() }}", "access to attribute '__class__' of 'tuple'"),
    ("{{ plan.name.__init__.__globals__ }}", "access to attribute '__init__' of 'str'"),
    ("{{ [plan] | map(attribute='__class__') | join }}", "access to attribute '__class__'"),
    ("{{ ([plan] | groupby('__class__') | first)[0] }}", "access to attribute '__class__'"),
    ("{{ '{0.__class__}'.format(plan) }}", "access to attribute '__class__' of 'LaunchPlan'"),
    ("{{ '{a.__class__}'.format_map({'a': plan}) }}", "access to attribute '__class__'"),
    ("{{ plan | attr('__class__') }}", "unknown filter 'attr'"),
    ("{{ self.__init__ }}", "access to attribute '__init__' of 'TemplateReference'"),
    ("{{ self._TemplateReference__context }}", "access to attribute '_TemplateReference__context'"),
    ("{% macro m() %}{% endmacro %}{{ m._func }}", "access to attribute '_func' of 'Macro'"),
    ("{{ range.__globals__ }}", "access to attribute '__globals__' of 'function'"),
    ("{{ plan.settings.update({'a': 1}) }}", "access to attribute 'update' of 'dict' object"),
    ("{{ [1].append(2) }}", "access to attribute 'append' of 'list' object is unsafe"),
    ("{{ lipsum() }}", "unknown variable 'lipsum'"),
    ("{{ cycler(1) }}", "unknown variable 'cycler'"),
    ("{{ plan.setup | random }}", "unknown filter 'random'"),
    ("{{ plan.name | e }}", "unknown filter 'e'"),
    ("{% include '../secret.txt' %}", "'../secret.txt' is not a name of a template"),
    ("{% include 'a/../../secret.txt' %}", "is not a name of a template"),
    ("{% include '/etc/passwd' %}", "'/etc/passwd' is not a name of a template"),
    ("{% include 'package:../README.md' %}", "'../README.md' is not a name of a template"),
    ("{% include '0:bad.j2' %}", "'0:bad.j2' is not a name of a template"),
    ("{% extends '.hidden' %}", "'.hidden' is not a name of a template"),
    ("{% from '~/x.j2' import y %}", "'~/x.j2' is not a name of a template"),
    ("{% include ['no.j2', '../secret.txt'] %}", "'../secret.txt' is not a name of a template"),
    ("{% include plan.name ~ '/../../secret.txt' %}", "is not a name of a template"),
    ("{% include '../secret.txt' ignore missing %}", "is not a name of a template"),
]
ENDLESS = [
    ("{% for i in range(1000000000) %}{% endfor %}", "Range too big"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "call one another recursively"),
    ("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "recursively"),
    ("{% include 'there.j2' %}", "call one another recursively"),
]
MISTAKES = [
    ("{{ pln.name }}", "unknown variable 'pln'; did you mean 'plan'?; there is: plan"),
    ("{{ plan.topolgy }}", "unknown field 'plan.topolgy'; did you mean 'topology'?; plan has: na"),
    ("{{ plan.topolgy.nodes }}", "unknown field 'plan.topolgy'; did you mean 'topology'?"),
    ("{% if plan.topolgy %}{% endif %}", "unknown field 'plan.topolgy'"),
    ("{% for x in plan.topolgy %}{% endfor %}", "unknown field 'plan.topolgy'"),
    ("{{ plan.topolgy | sh }}", "sh quotes text"),
    ("{{ plan['topolgy'] }}", "unknown field 'plan.topolgy'; did you mean 'topology'?"),
    ("{{ plan.topology.nods }}", "'plan.topology.nods'; did you mean 'nodes'?; plan.topology has"),
    ("{{ plan.topology.worldsize }}", "did you mean 'world_size'?"),
    ("{{ plan.launch.argv[0].txt }}", "unknown field 'Text.txt'; did you mean 'text'?"),
    ("{{ plan.settings.comand }}", "unknown field 'plan.settings.comand'; did you mean 'command'"),
    ("{{ plan.workdir | sh }}", "sh quotes text, not None"),
    ("{{ plan.name | command }}", "token and command write the arguments of plan.launch, not 'd'"),
    ("{{ 'a b' | directive }}", "'a b' cannot be written as an #SBATCH value"),
    ("{{ plan.name | shh }}", "unknown filter 'shh'; did you mean 'sh'?; allowed: abs,"),
    ("{{ plan.name is nubmer }}", "unknown test 'nubmer'; did you mean 'number'?"),
    ("{{ 1 + 'a' }}", "unsupported operand"),
    ("{{ 1 / 0 }}", "division by zero"),
    ("{{ plan.name() }}", "'str' object is not callable"),
    ("{% include '_strt.sh.j2' %}", "unknown template '_strt.sh.j2'; did you mean '_start.sh.j"),
    ("{% endblock %}", "unknown tag 'endblock'"),
    ("{{ plan.name +* 1 }}", "unexpected '*'"),
    ("{{ plan.topology }}", "a Topology is not text"),
    ("{{ plan.setup }}", "a tuple is not text; use sh, command or join"),
    ("{{ plan.workdir }}", "a NoneType is not text"),
]


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


def test_a_mistake_in_a_block_names_the_file_that_has_the_block(refused: Refused) -> None:
    text = "{% extends 'local.sh.j2' %}\n{% block env %}\n{{ plan.nothing }}{% endblock %}"
    assert refused(text).startswith("bad.j2:3: ")


def test_a_link_may_not_lead_out_of_the_folder(refused: Refused, folder: Path) -> None:
    (folder / "link.j2").symlink_to(folder.parent / "secret.txt")
    (folder / "more").symlink_to(folder.parent)
    assert "link.j2: a link that leads out of " in refused("{% include 'link.j2' %}")
    assert "more/secret.txt: a link that" in refused("{% include 'more/secret.txt' %}")


def test_a_link_inside_the_folder_is_as_good_as_a_file(plan: Plans, folder: Path) -> None:
    (folder / "file.j2").write_text("# {{ plan.name }}\n")
    (folder / "link.j2").symlink_to("file.j2")
    single = plan("local", launcher="single", resources={"cpus_per_task": 1})
    linked = msgspec.structs.replace(single, template="link.j2")
    assert render_script(linked, [folder]).text == "# demo\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "_odd.j2: not UTF-8 text (byte 0)"), (b" " * (1024 * 1024 + 1), "is this a temp")],
)
def test_what_is_no_template(refused: Refused, folder: Path, content: bytes, message: str) -> None:
    (folder / "_odd.j2").write_bytes(content)
    said = refused("{% include '_odd.j2' %}")
    assert said.startswith("bad.j2:1: _odd.j2: ")
    assert message in said
