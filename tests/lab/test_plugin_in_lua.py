"""The plug-in of a twin, run by the library of Lua that slurmctld loads, without a controller."""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path

import pytest

from hpc_train.lab.twins.start_and_stop import job_submit
from hpc_train.sites.load import load_site
from tests.conftest import refuse
from tests.lab.test_twin_text import profile

# The numbers of slurm.h; a job that does not state its nodes has NO_VAL.
SLURM = """
refusal = ""
slurm = {NO_VAL = 4294967294, NO_VAL16 = 65534, INFINITE = 4294967295, ERROR = -1, SUCCESS = 0}
slurm.log_user = function(form, text) refusal = string.format(form, text) end
"""
NODES = {
    "1": "min_nodes = 1, max_nodes = 1",
    "2": "min_nodes = 2, max_nodes = 2",
    "1-3": "min_nodes = 1, max_nodes = 3",
    "": "min_nodes = slurm.NO_VAL, max_nodes = slurm.NO_VAL",
}
SHARED = """\
partitions:
  - {name: a, gpus_per_node: 4, max_nodes: 8, select: {constraint: x}}
  - {name: b, gpus_per_node: 2, max_nodes: 8, select: {constraint: y}}
"""


def library() -> ctypes.CDLL:
    """Return a library of Lua; Debian's slurmctld needs one, other builds another version."""
    for version in ("5.1", "5.3", "5.4"):
        if name := ctypes.util.find_library(f"lua{version}"):
            return ctypes.CDLL(name)
    refuse("Lua is not installed")


def call(lua: ctypes.CDLL, state: ctypes.c_void_p) -> int:
    """Call the function on the stack; 5.2 replaced `lua_pcall` by a macro of `lua_pcallk`."""
    if hasattr(lua, "lua_pcallk"):
        return int(lua.lua_pcallk(state, 0, 1, 0, 0, None))
    return int(lua.lua_pcall(state, 0, 1, 0))


def refusal(plugin: str, job: str) -> str:
    """Return what the plug-in prints for a job; empty if it takes it."""
    lua = library()
    lua.luaL_newstate.restype, lua.lua_tolstring.restype = ctypes.c_void_p, ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    lua.luaL_openlibs(state)
    body = plugin.removesuffix("return slurm.SUCCESS\n")
    text = f"{SLURM}{body}slurm_job_submit({{{job}}}, {{}}, 0)\nreturn refusal"
    failed = lua.luaL_loadstring(state, text.encode()) or call(lua, state)
    said: bytes = lua.lua_tolstring(state, -1, None)
    lua.lua_close(state)
    assert not failed, said
    return said.decode()


@pytest.mark.parametrize(
    ("nodes", "gpus", "most"),
    [("1", 4, 4), ("1", 5, 4), ("2", 8, 8), ("2", 9, 8), ("1-3", 12, 12), ("1-3", 13, 12)],
)
def test_gpus_of_the_job_fit_its_nodes(nodes: str, gpus: int, most: int) -> None:
    plugin = job_submit(load_site("isambard-ai").value)
    said = refusal(plugin, f"{NODES[nodes]}, tres_per_job = 'gres:gpu:{gpus}'")
    assert (f"has at most {most}" in said) is (gpus > most), said


@pytest.mark.parametrize(
    ("gpus", "feature", "taken"),
    [(32, "x", True), (33, "x", False), (16, "y", True), (17, "y", False)],
)
def test_the_nodes_of_the_partition_limit_a_job_that_states_none(
    tmp_path: Path, gpus: int, feature: str, taken: bool
) -> None:
    plugin = job_submit(profile(tmp_path, SHARED))
    job = f"{NODES['']}, features = '{feature}', tres_per_job = 'gres:gpu:{gpus}'"
    assert (refusal(plugin, job) == "") is taken
