"""Wrong values are answered with the place, what is wrong and what is allowed."""

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
        ("resources:\n  nodez: 2\n", "4: unknown key 'resources.nodez'; did you mean 'nodes'?"),
        ("resources:\n  nodes: 0\n", "4: resources.nodes: must be a whole number from 1 to 100000"),
        ("resources:\n  tasks_per_node: 5000\n", "from 1 to 4096, not 5000"),
        ("resources:\n  nodes: two\n", "a whole number from 1 to 100000, not 'two'"),
        ("resources: 3\n", "3: resources: must be a mapping, not 3"),
        ("resources:\n  time: 90\n", "4: resources.time: 90 is not a time; write 1h30m"),
        ("resources:\n  mem: 0G\n", "4: resources.mem: '0G' is not a memory size"),
        ("env: {A: 1, B: [1]}\n", "3: env.B: must be text"),
        ("env: {A: null}\n", "not nothing"),
        (
            "launcher: a b\n",
            "3: launcher: must be one of torchrun, srun, mpirun, mpiexec, ibrun, "
            "accelerate, deepspeed, spawn, single, not 'a b'",
        ),
        ("launcher: torch run\n", "not 'torch run'; did you mean 'torchrun'?"),
        ("setup: module load\n", "3: setup: must be a list"),
        # The form of a value, not the meaning of its key.
        ("partition: a b\n", "3: partition: 'a b' is not valid: One word, no blanks"),
    ],
)
def test_a_key_of_a_job(text: str, message: str) -> None:
    assert message in complaint(JOB + text, JobSpec)


STUDY = "name: s\njob: j.yaml\n"
LAUNCHERS = "  allowed: [srun]\n"


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (JobSpec, "name: a\ncommand: [x, 3]\n", "2: command.1: must be text, not 3; write it in"),
        (JobSpec, "name: a\ncommand: []\n", "2: command: must not be empty"),
        (JobSpec, "name: a\n", " missing key 'command' (Program and arguments"),
        (JobSpec, "name: ../a\ncommand: [a]\n", "1: name: '../a' is not valid: 1 to 100 letters, "),
        (JobSpec, "- a\n", " the whole file: must be a mapping, not a list"),
        (
            StudySpec, STUDY + "axes: {nodes: [1]}\nscaling: stong\n",
            "4: scaling: must be 'strong' or 'weak', not 'stong'; did you mean 'strong'?",
        ),
        (
            StudySpec, STUDY + "axes: {nodes: [1]}\nscaling: weak\ngates: {efficiency: 75}\n",
            "5: gates.efficiency: must be a number above 0 and at most 2, not 75",
        ),
        (StudySpec, STUDY + "axes: {}\nscaling: weak\n", "3: axes: must not be empty"),
        (
            SiteProfile, SITE + LAUNCHERS + "partitions:\n- name: a\n- name: b\n  memory: 1G\n",
            "11: unknown key 'partitions.1.memory'; did you mean 'mem_per_node'?",
        ),
        (
            SiteProfile, "schema: 1\nname: a\nscheduler: slurm\n",
            " missing keys 'description' (System, place, hardware in one line), 'launchers'",
        ),
        (SiteProfile, SITE.replace("1", "2") + LAUNCHERS, "1: schema: must be 1, not 2"),
    ],
)  # fmt: skip
def test_a_file(kind: type, text: str, message: str) -> None:
    assert complaint(text, kind).startswith(f"f.yaml:{message}")


def test_origins_are_exact_and_mending_places_near() -> None:
    document = Document("f.yaml", SpecError)
    document.load(JOB + "resources:\n  nodes: 2\n")
    job = decode(document.data, JobSpec, document.origins, SpecError)
    assert job.origin("resources.nodes") == "f.yaml:4"
    assert job.origin("resources.time") == "default"
    assert job.near("resources.time") == "f.yaml:3"
