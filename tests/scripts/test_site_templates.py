"""Templates of a site: where they are found, what their blocks change, what the digest covers."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import RenderError
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import allocate
from hpc_train.scripts.render import render_allocation, render_script
from hpc_train.sites.load import load_site

Plans = Callable[..., LaunchPlan]
Write = Callable[..., Path]
SINGLE = {"launcher": "single", "resources": {"cpus_per_task": 1}}
LAUNCH = 'hpctrain_run bash -c "$rank_wrapper" rank python train.py'
# Each block, and a line of the script that it and no other block has.
LINES = {
    "header": "#SBATCH --nodes=1",
    "tracking": 'hpctrain_start "$hpctrain_folder"',
    "setup": "module load cuda",
    "env": "export NOTE=x  # default",
    "launch": LAUNCH,
    "rendezvous": "export MASTER_ADDR MASTER_PORT=$(hpctrain_free_port 61000 4000)",
    "finish": 'hpctrain_exit "$code"',
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a template into a folder; return the folder."""

    def make(text: str, name: str = "mine.j2", folder: str = "templates") -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return tmp_path / folder

    return make


def mine(plan: Plans, site: str = "slurm-generic", template: str = "mine.j2") -> LaunchPlan:
    keys = {**SINGLE, "setup": ["module load cuda"], "env": {"NOTE": "x"}}
    return msgspec.structs.replace(plan(site, **keys), template=template)


@pytest.mark.parametrize("block", LINES)
def test_a_block_is_replaced_and_the_rest_stays(plan: Plans, write: Write, block: str) -> None:
    extend = "{% extends 'slurm.sbatch.j2' %}"
    folder = write(f"{extend}{{% block {block} %}}\n# replaced\n{{% endblock %}}")
    lines = render_script(mine(plan), [folder]).text.splitlines()
    assert {name for name, line in LINES.items() if line not in lines} == {block}
    assert lines.count("# replaced") == 1


@pytest.mark.parametrize("template", ["slurm.sbatch.j2", "local.sh.j2"])
@pytest.mark.parametrize("block", [*LINES, "preflight"])
def test_super_stands_for_ours(plan: Plans, write: Write, block: str, template: str) -> None:
    site = "local" if template == "local.sh.j2" else "slurm-generic"
    blocks = f"{{% block {block} %}}\n{{{{ super() -}}}}\n# after\n{{% endblock %}}"
    folder = write(f"{{% extends '{template}' %}}{blocks}")
    text = render_script(mine(plan, site), [folder]).text
    assert text.count("# after\n") == 1
    assert text.replace("# after\n", "") == render_script(plan_of(plan, site)).text


def plan_of(plan: Plans, site: str) -> LaunchPlan:
    ours = "local.sh.j2" if site == "local" else "slurm.sbatch.j2"
    return mine(plan, site, template=ours)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% block lunch %}{% endblock %}", "2: unknown block 'lunch'; did you mean 'launch'?"),
        ("\n{% block zzz %}{% endblock %}", "3: unknown block 'zzz'; allowed: env, finish, head"),
        ("{% if 1 %}{% block a %}{% endblock %}{% endif %}", "2: unknown block 'a'; allowed: env"),
    ],
)
def test_a_block_without_a_place_is_refused(
    plan: Plans, write: Write, text: str, said: str
) -> None:
    folder = write(f"{{% extends 'slurm.sbatch.j2' %}}\n{text}")
    with pytest.raises(RenderError) as failure:
        render_script(mine(plan), [folder])
    assert failure.value.message.startswith(f"{folder}/mine.j2:{said}")


def test_the_script_of_an_allocation_is_found_on_the_path(plan: Plans, write: Write) -> None:
    folder = write(
        "{% extends 'nested.sbatch.j2' %}{% block header %}\n"
        "{{ super() -}}\n#SBATCH --hint=nomultithread\n{% endblock %}",
        "nested.sbatch.j2",
    )
    site = load_site("slurm-generic")
    allocation = allocate(site, [("r", plan_of(plan, "slurm-generic"))], "s")
    ours, changed = render_allocation(allocation), render_allocation(allocation, [folder])
    assert changed.text.replace("#SBATCH --hint=nomultithread\n", "") == ours.text
    assert changed.text != ours.text


def test_the_digest_changes_with_what_is_used_and_nothing_else(plan: Plans, write: Write) -> None:
    folder = write("{% include '_part.j2' %}\n")
    write("# a\n", "_part.j2")
    first = render_script(mine(plan), [folder])
    write("# b\n", "_other.j2")
    assert render_script(mine(plan), [folder]).template_digest == first.template_digest
    # Unused, but for its comment: the text stays, the template is another.
    write("# a\n{# b #}", "_part.j2")
    second = render_script(mine(plan), [folder])
    assert second.text == first.text
    assert second.template_digest != first.template_digest


def test_the_profile_that_names_a_missing_template_is_named(tmp_path: Path, plan: Plans) -> None:
    profile = tmp_path / "mysite.yaml"
    profile.write_text(
        "schema: 1\nname: mysite\ndescription: d\nscheduler: slurm\ntemplate: slurm.sbtch.j2\n"
        "launchers: {default: single, allowed: [single]}\n"
    )
    with pytest.raises(RenderError) as caught:
        render_script(plan(str(profile), **SINGLE))
    start = f"{profile}:5: unknown template 'slurm.sbtch.j2'; did you mean 'slurm.sbatch.j2'?"
    assert caught.value.message.startswith(start)
