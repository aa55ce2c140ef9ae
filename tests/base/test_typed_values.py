"""Wrong values are answered with the place, what is wrong and what is allowed."""

from __future__ import annotations

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.base.yamlfile import Document
from hpc_train.jobs.job import JobSpec
from hpc_train.jobs.study import StudySpec
from hpc_train.sites.profile import SiteProfile

JOB = "name: a\ncommand: [a]\n"
SITE = "schema: 1\nname: a\ndescription: d\nscheduler: slurm\nlaunchers:\n  default: srun\n"


def complaint(text: str, kind: type) -> str:
    document = Document("f.yaml", SpecError)
    document.load(text)
    with pytest.raises(SpecError) as failure:
        decode(document.data, kind, document.origins, SpecError)
    return failure.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "resources:\n  nodez: 2\n",
            "f.yaml:4: unknown key 'resources.nodez'; did you mean 'nodes'?",
        ),
        ("resources:\n  nodes: 0\n", "f.yaml:4: resources.nodes: must be a whole number from 1 to"),
        ("resources:\n  nodes: -1\n", "from 1 to 100000, not -1"),
        ("resources:\n  tasks_per_node: 5000\n", "from 1 to 4096, not 5000"),
        ("resources:\n  nodes: two\n", "a whole number from 1 to 100000, not 'two'"),
        ("resources: 3\n", "f.yaml:3: resources: must be a mapping, not 3"),
        ("resources:\n  time: 90\n", "f.yaml:4: resources.time: 90 is not a time; write 1h30m"),
        ("resources:\n  mem: 0G\n", "f.yaml:4: resources.mem: '0G' is not a memory size"),
        ("env: {A: 1, B: [1]}\n", "f.yaml:3: env.B: must be text"),
        (
            "launcher: a b\n",
            "f.yaml:3: launcher: must be one of torchrun, srun, mpirun, mpiexec, ibrun, "
            "accelerate, deepspeed, spawn, single, not 'a b'",
        ),
        ("setup: module load\n", "f.yaml:3: setup: must be a list"),
    ],
)
def test_job(text: str, message: str) -> None:
    assert message in complaint(JOB + text, JobSpec)


def test_an_invalid_launcher_is_answered_with_the_nearest_one() -> None:
    message = complaint(JOB + "launcher: torch run\n", JobSpec)
    assert message.endswith("not 'torch run'; did you mean 'torchrun'?")


def test_a_value_is_described_by_its_form_and_not_by_the_meaning_of_its_key() -> None:
    message = complaint(JOB + "partition: a b\n", JobSpec)
    assert message == "f.yaml:3: partition: 'a b' is not valid: One word, no blanks"


def test_a_number_among_arguments_asks_for_quotes() -> None:
    message = complaint("name: a\ncommand: [x, 3]\n", JobSpec)
    assert message == "f.yaml:2: command.1: must be text, not 3; write it in quotes"


def test_an_empty_command() -> None:
    assert complaint("name: a\ncommand: []\n", JobSpec) == "f.yaml:2: command: must not be empty"


def test_a_missing_key_says_what_it_is_for() -> None:
    message = complaint("name: a\n", JobSpec)
    assert message.startswith("f.yaml: the key 'command' is missing (Program and arguments")


def test_a_name_that_is_no_folder_name() -> None:
    message = complaint("name: ../a\ncommand: [a]\n", JobSpec)
    assert "name: '../a' is not valid: 1 to 100 letters, digits, '.', '_' and '-'; it" in message


def test_a_list_where_a_mapping_belongs() -> None:
    assert complaint("- a\n", JobSpec) == "f.yaml: the whole file: must be a mapping, not a list"


def test_words_from_a_list_are_named() -> None:
    text = "name: s\njob: j.yaml\naxes: {nodes: [1]}\nscaling: stong\n"
    assert (
        complaint(text, StudySpec)
        == "f.yaml:4: scaling: must be 'strong' or 'weak', not 'stong'; did you mean 'strong'?"
    )


def test_inside_a_list_of_partitions() -> None:
    text = SITE + "  allowed: [srun]\npartitions:\n- name: a\n- name: b\n  max_tim: 1h\n"
    message = complaint(text, SiteProfile)
    assert "f.yaml:11: unknown key 'partitions.1.max_tim'; did you mean 'max_time'?" in message


def test_limits_and_nothing_are_put_into_words() -> None:
    text = "name: s\njob: j.yaml\naxes: {nodes: [1]}\nscaling: weak\ngates: {efficiency: 75}\n"
    expected = "f.yaml:5: gates.efficiency: must be a number above 0 and at most 2, not 75"
    assert complaint(text, StudySpec) == expected
    assert complaint(JOB + "env: {A: null}\n", JobSpec).count("not nothing") == 1
    text = "name: s\njob: j.yaml\naxes: {}\nscaling: weak\n"
    assert complaint(text, StudySpec) == "f.yaml:3: axes: must not be empty"


def test_a_newer_schema_is_named() -> None:
    text = SITE.replace("schema: 1", "schema: 2") + "  allowed: [srun]\n"
    assert complaint(text, SiteProfile) == "f.yaml:1: schema: must be 1, not 2"


def test_origins_are_exact_and_mending_places_near() -> None:
    document = Document("f.yaml", SpecError)
    document.load(JOB + "resources:\n  nodes: 2\n")
    job = decode(document.data, JobSpec, document.origins, SpecError)
    assert job.origin("resources.nodes") == "f.yaml:4"
    assert job.origin("resources.time") == "default"
    assert job.near("resources.time") == "f.yaml:3"
