"""Programs of a cluster in small: each notes its argv and then does what the real one does."""

from collections.abc import Iterator
from pathlib import Path

SITE = """\
schema: 1
name: big
description: d
scheduler: slurm
launchers:
  default: srun
  allowed: [srun, torchrun, mpirun, ibrun, accelerate, deepspeed, spawn, single]
"""
# A file for each call.
NOTE = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" >"$NOTES/${0##*/}.$$"
"""
# Only what the runtime lets in is there inside: no variable of the host, and $INSIDE for PATH.
APPTAINER = (
    NOTE
    + """shift
while [[ $1 == -* ]]; do
  case $1 in --bind | --pwd) shift ;; esac
  shift
done
[ -e "$1" ] || { echo "FATAL: no image $1" >&2; exit 255; }
shift
names=()
for name in $(compgen -v APPTAINERENV_); do
  names+=("${name#APPTAINERENV_}=${!name}")
done
exec /usr/bin/env -i PATH="${INSIDE:-$PATH}" "${names[@]}" "$@"
"""
)
PODMAN = (
    NOTE
    + """names=()
while [[ $1 != *.img ]]; do
  case $1 in
    --env)
      for name in $(compgen -v | grep -x -- "${2/\\*/.*}"); do
        [[ -z ${!name+x} ]] || names+=("$name=${!name}")
      done
      shift
      ;;
    --volume | --workdir) shift ;;
  esac
  shift
done
shift
exec /usr/bin/env -i PATH="$PATH" "${names[@]}" "$@"
"""
)
SHIFTER = NOTE + 'while [[ $1 == -* ]]; do shift; done\nexec "$@"\n'
# PMI's words for a rank, as Hydra gives them; W processes on this machine.
IBRUN = (
    NOTE
    + """size=$2
shift 4
for ((i = 0; i < size; i++)); do
  PMI_RANK=$i PMI_SIZE=$size MPI_LOCALRANKID=$i "$@" &
  ranks+=($!)
done
code=0
for rank in "${ranks[@]}"; do
  wait "$rank" || code=$?
done
exit "$code"
"""
)
# What torch's agent does with the words that accelerate and torchrun are given.
AGENT = (
    NOTE
    + """machine=${PET_NODE_RANK:-0} size=1 machines=1
while [[ $1 != --no?python ]]; do
  case $1 in
    --machine_rank | --node-rank) machine=$2 ;;
    --num_processes) size=$2 ;;
    --num_machines | --nnodes) machines=$2 ;;
    --nproc-per-node) local=$2 ;;
  esac
  shift
done
shift
local=${local:-$((size / machines))}
for ((i = 0; i < local; i++)); do
  RANK=$((machine * local + i)) LOCAL_RANK=$i WORLD_SIZE=$((machines * local)) "$@" &
  ranks+=($!)
done
code=0
for rank in "${ranks[@]}"; do
  wait "$rank" || code=1
done
exit "$code"
"""
)
SRUN = NOTE + 'exec {srun} "$@"\n'
PROGRAMS = {
    "apptainer": APPTAINER,
    "podman-hpc": PODMAN,
    "shifter": SHIFTER,
    "ibrun": IBRUN,
    "accelerate": AGENT,
    "torchrun": AGENT,
}


def install(folder: Path) -> None:
    """Put the programs beside `srun` and `scontrol`, and let srun note its words."""
    folder.joinpath("srun").rename(folder / "slurms_srun")
    texts = {**PROGRAMS, "srun": SRUN.replace("{srun}", str(folder / "slurms_srun"))}
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)


def calls(notes: Path, program: str) -> Iterator[list[str]]:
    """Yield the argv of each call of a program."""
    for path in sorted(notes.glob(f"{program}.*")):
        yield path.read_text().split("\0")[:-1]
