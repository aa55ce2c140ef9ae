"""Why a GPU had no memory: other processes, fragmentation, or too much work."""

import pytest

from hpc_train.diagnosis.signatures import explain, kind_of
from tests.cases import cases
from tests.logs.sighted import groups, ids, sighted

_HEAD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 3 has a total"
_REST = (
    " capacity of 80.00 GiB of which {free} is free. {others}Including non-PyTorch memory, this"
    " process has 70.00 GiB memory in use. Of the allocated memory {allocated} is allocated"
    " by PyTorch, and {unused} is reserved by PyTorch but unallocated. If reserved but"
    " unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)
_PLAIN = {"others": "", "free": "1.00 GiB"}


def _line(**values: str) -> str:
    return (_HEAD + _REST).format(**(_PLAIN | values))


FULL = _line(tried="2.00 GiB", allocated="76.00 GiB", unused="300.00 MiB")
FOREIGN = _line(
    tried="2.00 GiB",
    allocated="30.00 GiB",
    unused="300.00 MiB",
    others="Process 4711 has 500.00 MiB memory in use. Process 4712 has 40.00 GiB memory in use. ",
)


@pytest.mark.parametrize(
    ("line", "kind"),
    cases("logs/oom.yaml", "three_kinds"),
)
def test_three_kinds(line: str, kind: str | None) -> None:
    assert ids(line) == ["cuda_oom"]
    assert kind_of(groups(line)) == kind


def test_sizes_and_who_are_told() -> None:
    (sighting,) = sighted("[rank11]: " + FULL)
    signature = sighting.of
    assert explain(signature, sighting).title == (
        "GPU 3 of rank 11 ran out of memory: 76.00 GiB of 80.00 GiB are allocated by PyTorch,"
        " 2.00 GiB more were requested"
    )
    (sighting,) = sighted(FOREIGN)
    assert "Process 4712 has 40.00 GiB" in explain(signature, sighting).title
    (sighting,) = sighted(FULL[:70])
    assert "?" not in explain(signature, sighting).title
