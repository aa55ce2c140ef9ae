# The runs of a study one after another in one allocation; its script sources this file.
# shellcheck shell=bash disable=SC2034,SC2154

# The counts of the whole allocation, which a program without srun would use as those of its run.
unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE
# Since Slurm 23.11, an srun with another number of cores fails if both are set.
unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
# With them, an srun that requests fewer GPUs, or uses another option, is refused.
unset SLURM_GPUS SLURM_GPUS_PER_NODE
# SLURM_NODELIST and SLURM_TASKS_PER_NODE are kept: mpirun reads its hosts from them.

child=
signalled=
stopped=
failed=0
# shellcheck disable=SC2317,SC2329 # the trap calls it
stop() {
  stopped=1
  # Once for each run: a second TERM could end its script before the exit code is recorded.
  if [ -n "$child" ] && [ "$child" != "$signalled" ]; then
    signalled=$child
    kill -s TERM "$child" 2>/dev/null
  fi
}
trap stop TERM INT

say() {
  printf '%s %s: %s\n' "$(date +%FT%T)" "$1" "$2"
}

has_ended() {
  grep -Eqs '"ended": *[0-9]' "$1/status.json"
}

ended_well() {
  grep -Eqs '"exit_code": *0[,}]' "$1/status.json"
}

# Run it in the background, because bash runs a trap only after the foreground command has ended. The exit code is in $code.
run_script() {
  local run=$1 limit=$2
  HPCTRAIN_RUN=$run HPCTRAIN_TURN=$turn timeout --foreground --signal=TERM --kill-after=30 "$limit" \
    bash "$run/job.sbatch" "$run" >>"$run/logs/job.out" 2>&1 &
  child=$!
  [ -z "$stopped" ] || stop
  while :; do
    wait "$child"
    code=$?
    # If a signal interrupts `wait`, its code is that of the signal; bash keeps the child's own code.
    kill -0 "$child" 2>/dev/null || { wait "$child" 2>/dev/null; code=$?; break; }
  done
  child=
}

# A script that was killed or does not exist wrote no status. An interrupted run did not succeed, even if its program exited with 0: it must run again.
settle() {
  local run=$1 started=$2
  if [ -n "$stopped" ] && ended_well "$run"; then
    code=143
  elif has_ended "$run"; then
    return
  fi
  printf '{"started": %s, "ended": %s, "exit_code": %s, "restart_count": %s, "host": "%s", "job": "%s"}\n' \
    "$started" "$(date +%s.%3N)" "$code" "${SLURM_RESTART_COUNT:-0}" "$HOSTNAME" "$SLURM_JOB_ID" \
    >"$run/status.json.new" && mv -f -- "$run/status.json.new" "$run/status.json"
}

# Leftovers of a run: its steps on all nodes, and other processes on this node, found by HPCTRAIN_TURN.
steps_left() {
  squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i | grep -E '\.[0-9]+$'
}
processes_left() {
  grep -lzsx "HPCTRAIN_TURN=$turn" /proc/[0-9]*/environ | cut -d / -f 3
}

# A run must not affect the next one. mpirun's daemons end shortly after it; the ranks of a launcher that was killed do not end by themselves.
clear_away() {
  local try steps processes
  for ((try = 0; try < 60; try++)); do
    mapfile -t steps < <(steps_left)
    mapfile -t processes < <(processes_left)
    [ -n "${steps[*]-}${processes[*]-}" ] && [ -z "$stopped" ] || return 0
    if ((try == 5)); then
      say "$1" "ending leftover steps and processes: ${steps[*]-} ${processes[*]-}"
      [ -z "${processes[*]-}" ] || kill -s KILL "${processes[@]}" 2>/dev/null
      [ -z "${steps[*]-}" ] || scancel "${steps[@]}"
    fi
    sleep 1
  done
  say "$1" "leftover steps and processes remain during the next runs: ${steps[*]-} ${processes[*]-}"
}

# A run that succeeded before the allocation was requeued is not repeated; a run without a folder was removed. A limit of 0 means no limit.
take_turn() {
  local name=$1 limit=$2 run="$home/$1" begin=$SECONDS started
  turn=$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}.$((++turns))
  [ -z "$stopped" ] && [ -d "$run" ] && ! ended_well "$run" || return 0
  say "$name" "starts"
  started=$(date +%s.%3N)
  # Remove the status of an earlier attempt.
  rm -f -- "$run/status.json"
  mkdir -p -- "$run/logs"
  rm -f -- "$run/cut_off"
  run_script "$run" "$limit"
  if ((code && limit && SECONDS - begin >= limit)); then
    say "hpctrain" "ended after its time limit of $limit s" >>"$run/logs/job.out"
  fi
  settle "$run" "$started"
  # The run did not fail: the allocation received a signal.
  [ -z "$stopped" ] || ((code == 0)) || : >"$run/cut_off"
  clear_away "$name"
  say "$name" "exit code $code"
  ((code == 0)) || failed=1
}

# After a requeue, the runs that did not succeed are repeated.
forget() {
  local name
  turns=0
  for name; do
    ended_well "$home/$name" || rm -f -- "$home/$name/status.json" "$home/$name/cut_off"
  done
}

finish() {
  [ -z "$stopped" ] || exit 143
  exit "$failed"
}
