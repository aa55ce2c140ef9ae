"""A manifest to store."""

from collections.abc import Callable

import pytest

from hpc_train.runs.run import Manifest, Script
from tests.submissions.runs_of import manifest

Entry = tuple[Manifest, Script]


@pytest.fixture
def entry() -> Callable[[str], Entry]:
    job = {"resources": {"time": "1h", "mem": "4G"}}
    script = Script(text="#!/bin/bash\n", digest="d", template_digest="t")
    return lambda run_id: (manifest(run_id, job), script)
