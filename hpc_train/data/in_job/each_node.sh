# Start the arguments on each node of a job of PBS with pbs_tmrsh, which passes on no variable and whose processes print into the log of the job. A node that fails ends the others.
# shellcheck shell=bash
PATH=$PATH:${PBS_EXEC:-/opt/pbs}/bin
on_node=$(cat <<'NODE'
. "$1" || exit 1
export HPCTRAIN_NODE=$2 HPCTRAIN_NODE_RANK=$3
[ -z "$4" ] || exec >"$4"
cd -- "$5" || exit 1
while IFS="=" read -r name file; do
  [ -z "$file" ] || export "$name=$(<"$file")"
done <<<"${HPCTRAIN_SECRETS-}"
shift 5
exec "$@"
NODE
)
tasks=()
variables=${HPCTRAIN_RUN:-$PWD}/.pbs-$$
trap 'rm -f -- "$variables" "$variables".*' EXIT
trap '[ -z "${tasks[*]-}" ] || kill -s TERM "${tasks[@]}" 2>/dev/null; exit 143' HUP INT TERM
# Each task has its own values of these variables; secrets (lines NAME=FILE) are written into no file.
mapfile -t secrets <<<"${HPCTRAIN_SECRETS-}"
# shellcheck disable=SC2068 # names of variables
(umask 077; unset HOSTNAME PBS_NODENUM PBS_TASKNUM ${secrets[@]%%=*}; export -p >"$variables") || exit 1
mapfile -t nodes < <(awk '!seen[$0]++' "$PBS_NODEFILE")
if [ "$(awk '!seen[$0]++' "$PBS_NODEFILE" | wc -l)" -ne "${HPCTRAIN_NODES:=0}" ]; then
  echo "hpctrain: PBS gave the job the nodes ${nodes[*]}, but it requested $HPCTRAIN_NODES; -l place=scatter keeps chunks apart" >&2
  exit 1
fi
for number in "${!nodes[@]}"; do
  output=
  # A pipe waits for the output of the nodes.
  [ ! -p /dev/stdout ] || output=$variables.$number
  pbs_tmrsh "${nodes[number]}" bash -c "$on_node" node "$variables" "${nodes[number]}" "$number" "$output" "$PWD" "$@" </dev/null &
  tasks+=("$!")
done
code=0 left=("${tasks[@]}")
# Not `wait -n`: bash forgets a task that ended before it.
while [ -n "${left[*]-}" ] && [ "$code" -eq 0 ]; do
  running=()
  for task in "${left[@]}"; do
    if kill -0 "$task" 2>/dev/null; then running+=("$task"); else wait "$task" || code=$?; fi
  done
  left=("${running[@]}")
  [ -z "${left[*]-}" ] || sleep 0.5
done
[ ! -p /dev/stdout ] || cat -- "$variables".[0-9]* 2>/dev/null
[ "$code" -eq 0 ] || kill -s TERM "${tasks[@]}" 2>/dev/null
exit "$code"
