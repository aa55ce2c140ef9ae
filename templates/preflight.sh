#!/bin/bash
# The checks of nodes before the ranks start. A job script sources this file after runtime.sh; each node runs `preflight.sh check WORD…` or `preflight.sh plugin`.
# shellcheck disable=SC2016,SC2034,SC2086,SC2154

[ "${0##*/}" = preflight.sh ] || set -- script
case $1 in check | plugin)
  node=${HPCTRAIN_NODE_NAME:-${SLURMD_NODENAME:-${HPCTRAIN_NODE:-${SM_CURRENT_HOST:-$(hostname)}}}}
  PATH=$PATH:/usr/sbin:/sbin
  ;;
esac
case $1 in
check)
  # A line `fault` is of this node, `lack` may be of all nodes; the last line has the time.
  fault() { printf 'fault %s %s\n' "$node" "$*"; }
  lack() { printf 'lack %s %s\n' "$node" "$*"; }
  while shift && [ $# -gt 0 ]; do
    value=${1#*=}
    case $1 in
    gpus=*)
      if command -v nvidia-smi >/dev/null; then
        seen=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
      elif [ -n "${CUDA_VISIBLE_DEVICES-}${ROCR_VISIBLE_DEVICES-}" ] || [ ! -d /sys/class/kfd/kfd/topology/nodes ]; then
        devices=${CUDA_VISIBLE_DEVICES:-${ROCR_VISIBLE_DEVICES:-}}
        seen=$(wc -w <<<"${devices//,/ }")
      else
        # AMD GPUs, if Slurm sets no list: entries of CPUs have no SIMD units.
        seen=$(grep -lE '^simd_count [1-9]' /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null | wc -l)
      fi
      [ "$seen" -ge "$value" ] || fault "has $seen visible GPUs, but $value were requested"
      ;;
    program=*) command -v -- "$value" >/dev/null || lack "has no program $value" ;;
    image=*) [ -r "$value" ] || lack "cannot read the image $value" ;;
    resolves=*) ! command -v getent >/dev/null || getent ahosts "$value" >/dev/null || lack "does not resolve $value" ;;
    interface=*)
      link=$(ip -o link show dev "$value" 2>/dev/null) || fault "has no interface $value"
      [[ -z $link || $link =~ [,\<]LOWER_UP[,\>] ]] || fault "interface $value is down"
      ;;
    hca=*)
      port=${value#*:}
      [ "$port" != "$value" ] || port=
      if [ ! -d "/sys/class/infiniband/${value%%:*}" ]; then
        fault "has no HCA ${value%%:*}"
      elif ! cat "/sys/class/infiniband/${value%%:*}/ports/"${port:-[0-9]*}/state 2>/dev/null | grep -q ACTIVE; then
        fault "HCA ${value%%:*} has no active port${port:+ $port}"
      fi
      ;;
    space=*)
      room=$(df -Pk -- "${value#*:}" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }')
      [ "${room:-0}" -ge "${value%%:*}" ] || fault "${value#*:} has ${room:-no} MiB of free space, ${value%%:*} are needed"
      ;;
    memlock) [ "$(ulimit -l)" = unlimited ] || lack "limits locked memory to $(ulimit -l) KiB (ulimit -l); it must be unlimited" ;;
    esac
  done
  printf 'here %s %s\n' "$node" "$(date +%s)"
  exit
  ;;
plugin)
  # NCCL is forced to use a plug-in, so its library must be on each node: a node without it prints its name.
  [ ! -f "${NCCL_NET_PLUGIN:-}" ] || exit 0
  IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}:${CONDA_PREFIX:-}/lib:${VIRTUAL_ENV:-}/lib"
  for file in "${folders[@]/%//libnccl-net}" "${folders[@]/%//librccl-net}"; do
    ! compgen -G "$file*.so*" >/dev/null || exit 0
  done
  ldconfig -p 2>/dev/null | grep -q 'lib[nr]ccl-net.*\.so' || echo "$node"
  exit 0
  ;;
esac

plugin_check='exec bash "$HPCTRAIN_RUN/preflight.sh" plugin'
# Check all nodes in parallel: hpctrain_preflight SECONDS CLOCK "NODE…" COMMAND… A failed check ends the job and is recorded.
hpctrain_preflight() {
  local within=$1 clock=$2 nodes=$3 wrong=0 word node rest begun
  local -A here=()
  begun=$(date +%s)
  # With a timeout, because processes left by a killed srun keep its output open.
  while read -r -t "$((within + 3))" word node rest; do
    case $word in
    here) here[$node]=$rest ;;
    fault) hpctrain_blame "$node" "$rest" ;;
    lack) hpctrain_blame "$node" "$rest" 1 ;;
    esac
  done < <(timeout --kill-after=2 "$within" "${@:4}")
  for node in ${nodes:-${HPCTRAIN_NODE_NAME:-${SLURMD_NODENAME:-$HOSTNAME}}}; do
    if [ -z "${here[$node]-}" ]; then
      hpctrain_blame "$node" "did not answer within $within s"
      continue
    fi
    [[ $hpctrain_scheduler = hosts || " ${*:4} " != *" resolves="* ]] || ! command -v getent >/dev/null || getent ahosts "$node" >/dev/null || hpctrain_blame "$node" "$HOSTNAME does not resolve its name" 1
    if [ -n "$clock" ] && ((here[$node] < begun - clock || here[$node] > $(date +%s) + clock)); then
      hpctrain_blame "$node" "its clock differs by $((here[$node] - begun)) s from that of $HOSTNAME"
    fi
  done
  ((wrong)) || return 0
  # If all nodes fail, the fault is not of a node.
  [ "$hpctrain_nodes" -eq 1 ] || [ "${#bad_nodes[@]}" -lt "$hpctrain_nodes" ] || bad_nodes=()
  [ -z "${bad_nodes[*]-}" ] || echo "null ${bad_nodes[0]} 1 $(date +%s.%3N)" >"$HPCTRAIN_FAILURE_FILE"
  exit 1
}
hpctrain_blame() {
  echo "hpctrain: preflight: $1: $2" | tee -a "$HPCTRAIN_FAILURE_FILE.log" >&2
  wrong=1
  # What a single node lacks is not its fault.
  [ -n "${3-}" ] && [ "$hpctrain_nodes" -eq 1 ] || [[ " ${bad_nodes[*]-} " == *" $1 "* ]] || bad_nodes+=("$1")
}

# NCCL must find its plug-in on each node: hpctrain_require_plugin SETTING REMEDY COMMAND…
hpctrain_require_plugin() {
  local without
  without=$("${@:3}" | sort -u | paste -sd ' ')
  [ -n "$without" ] || return 0
  echo "hpctrain: $1 needs a plug-in of NCCL, and neither LD_LIBRARY_PATH nor the linker's cache has libnccl-net.so on $without; $2 env: {NCCL_NET: Socket}, which is slow" | tee -a "$HPCTRAIN_FAILURE_FILE.log" >&2
  exit 1
}
