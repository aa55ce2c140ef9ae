"""The probe script for a machine, and its output as sections.

The script is one argument of bash, so that it also runs in a job without hpctrain.
"""

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from hpc_train.base.processes import whole
from hpc_train.base.registry import BUILT_IN

MARK = "@@hpctrain"

_INTERFACES = r"""
for path in /sys/class/net/*; do
  real=$(readlink -f "$path"); virtual=0
  [[ $real == */virtual/* ]] && virtual=1
  printf '%s %s %s %s %s\n' "${path##*/}" "$(cat "$path/type")" "$(cat "$path/operstate")" \
    "$(cat "$path/speed" || echo -1)" "$virtual"
done
"""
_PORTS = r"""
for path in /sys/class/infiniband/*/ports/*; do
  [[ -e $path/state ]] || continue
  adapter=${path%/ports/*}; driver=$(readlink -f "$adapter/device/driver")
  printf '%s|%s|%s|%s|%s|%s\n' "${adapter##*/}" "${path##*/}" "$(cat "$path/state")" \
    "$(cat "$path/rate")" "$(cat "$path/link_layer")" "${driver##*/}"
done
"""
_PROGRAMS = rf"""
for name in sbatch {" ".join(BUILT_IN["launchers"])} mpiexec python \
  apptainer singularity podman-hpc shifter enroot docker; do
  command -v "$name" > /dev/null && echo "$name"
done
"""
_SETTINGS = r"""
echo "modules $LMOD_VERSION|$MODULESHOME"
echo "memlock $(ulimit -l)"
echo "open_files $(ulimit -n)"
echo "memory $(sed -n 's/^MemTotal: *\([0-9]*\) kB.*/\1/p' /proc/meminfo)"
"""
_TORCH = r"""
import json, torch, torch.distributed as dist
there = dist.is_available()
has = lambda name: getattr(dist, f"is_{name}_available", bool)()
names = [name for name in ("nccl", "xccl", "gloo", "mpi", "ucc") if there and has(name)]
nccl = ".".join(map(str, torch.cuda.nccl.version())) if "nccl" in names else ""
print(json.dumps({
    "version": torch.__version__, "backends": names, "cuda": torch.version.cuda or "",
    "hip": torch.version.hip or "", "nccl": nccl, "devices": torch.cuda.device_count()}))
"""

# What a topology is read from.
_PLACES = r"""
part() {
  printf '\n@@hpctrain %s\n' "$1"; shift
  timeout -k 2 20 "$@"; printf '\n@@hpctrain = %s\n' $?
}
part host uname -nm
part nvidia nvidia-smi --query-gpu=index,name,memory.total,driver_version \
  --format=csv,nounits
part nvidia_topology nvidia-smi topo -m
part rocm rocm-smi --showproductname --showtopo --json
part numa grep -H '' /sys/devices/system/node/node[0-9]*/cpulist
"""
# From Open MPI 5 on, PRRTE starts its daemons; without a list of its parts nothing is known.
_SLURM_OF_MPI = """
found=$(ompi_info --parsable; prte_info --parsable)
grep -q -e ':plm:' -e 'MCA plm:' <<<"$found" || exit 127
grep -c -e ':plm:slurm' -e ':ras:slurm' -e 'MCA plm: slurm' <<<"$found"
"""
# Section -> timeout in seconds, and command.
_SECTIONS = {
    "settings": (5, _SETTINGS),
    "cpus": (10, "lscpu"),
    "addresses": (10, "ip -j addr"),
    "interfaces": (10, _INTERFACES),
    "ports": (10, _PORTS),
    "shm": (10, "df -PTk /dev/shm"),
    "programs": (10, _PROGRAMS),
    "pyxis": (10, "srun --help | grep -c -e --container-image"),
    "mpirun": (10, "mpirun --version"),
    "ompi_info": (20, _SLURM_OF_MPI),
    "torch": (90, f"python -c {shlex.quote(_TORCH)}"),
}
ABSENT = 127
_LATE = (124, 137)


def probe_script() -> str:
    """Return the script."""
    lines = ["export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin", f"{{{_PLACES}}} 2>/dev/null </dev/null"]
    for name, (seconds, command) in _SECTIONS.items():
        inside = f"timeout -k 2 {seconds} bash -c {shlex.quote(command)} 2> /dev/null < /dev/null"
        # The line break before the mark ends an unterminated last line.
        lines.append(f"printf '\\n{MARK} {name}\\n'; {inside}; printf '\\n{MARK} = %s\\n' $?")
    return "\n".join(lines) + "\nexit 0\n"


class Section(NamedTuple):
    """The output of one program, and its exit code; None if the output is truncated."""

    text: str
    returncode: int | None = None

    @property
    def problem(self) -> str:
        """Return the error of a program; empty if it has printed output or is not installed."""
        if self.returncode is None:
            return "the output is truncated"
        return "no output within the time limit" if self.returncode in _LATE else ""


def sections(text: str) -> Mapping[str, Section]:
    """Return the sections by name; the output of login scripts is dropped."""
    found: dict[str, Section] = {}
    _, *parts = re.split(rf"^{MARK} (.*)$", text, flags=re.MULTILINE)
    name = ""
    for word, body in zip(parts[::2], parts[1::2], strict=True):
        if word.startswith("=") and name in found:
            found[name] = found[name]._replace(returncode=whole(word.removeprefix("=").strip()))
        else:
            name = word.strip()
            found[name] = Section(text=body.strip("\n"))
    return found
