#!/bin/bash
# Tracks one run: its folder, a log for each rank, status.json, the first failure, the next start. A script of `hpctrain render --plain` does without.
# A job script sources this file, after variables hpctrain_* that say what differs between jobs and schedulers: name, scheduler, launcher, nodes; job, number, restart, array, task, cluster, hosts; and some that only some jobs have.
# Each rank runs `runtime.sh rank`. That part is POSIX sh, because an image may have no bash.
# shellcheck disable=SC1090,SC1091,SC2016,SC2034,SC2154

# hpctrain_listen [1]; COMMAND & hpctrain_follow: a trap runs only after a foreground command has ended. The exit code is in $hpctrain_code.
# The command gets TERM when this shell receives a signal, be it before it started, because a background command ignores INT; with an argument, also USR1.
hpctrain_pass() { hpctrain_early=$1; [ -z "$hpctrain_child" ] || kill -s "$1" "$hpctrain_child" 2>/dev/null; }
hpctrain_listen() {
  hpctrain_child='' hpctrain_early=''
  # A rank that fails after the job received a signal did not fail first; the file prevents its record.
  trap ': >>"$HPCTRAIN_FAILURE_FILE.signal"; hpctrain_pass TERM' HUP INT TERM
  [ -z "${1-}" ] || trap 'hpctrain_pass USR1' USR1
}
hpctrain_follow() {
  hpctrain_child=$!
  [ -z "$hpctrain_early" ] || hpctrain_pass "$hpctrain_early"
  while :; do
    wait "$hpctrain_child"
    hpctrain_code=$?
    # If a signal interrupts `wait`, its code is that of the signal; the shell keeps the child's own code.
    kill -0 "$hpctrain_child" 2>/dev/null || { wait "$hpctrain_child" 2>/dev/null; hpctrain_code=$?; break; }
  done
}

if [ "${0##*/}" = runtime.sh ]; then
  # Around each rank, or each program that starts ranks itself: runtime.sh rank [node] [direct] [usr1] [asks=CODE|…] -- COMMAND…
  # The name of this node; the shell's may be that of the first node, or is not set.
  HOSTNAME=${HPCTRAIN_NODE_NAME:-${SLURMD_NODENAME:-${HPCTRAIN_NODE:-${SM_CURRENT_HOST:-$(uname -n || echo unknown)}}}}
  hpctrain_log=rank-${RANK-} hpctrain_direct='' hpctrain_usr1='' hpctrain_asks=''
  while shift && [ "$1" != -- ]; do
    case $1 in
    node) hpctrain_log=node-$NODE_RANK ;;
    direct) hpctrain_direct=1 ;;
    usr1) hpctrain_usr1=1 ;;
    asks=*) hpctrain_asks=${1#*=} ;;
    esac
  done
  shift
  hpctrain_log=$HPCTRAIN_LOG_DIR/$hpctrain_log.out
  if [ -d "$HPCTRAIN_RUN/attempts" ]; then
    # Each start of the ranks by an elastic torchrun is an attempt with its own record, because a failure before a restart is not a failure of the job, and a faster rank may already have failed. The restart count of torchrun differs between nodes, so a rank that was in the latest attempt begins the next.
    hpctrain_try=0
    while [ -e "$HPCTRAIN_RUN/attempts/$((hpctrain_try + 1))" ]; do hpctrain_try=$((hpctrain_try + 1)); done
    [ ! -e "$HPCTRAIN_RUN/attempts/$hpctrain_try.rank-$RANK" ] || hpctrain_try=$((hpctrain_try + 1))
    : >"$HPCTRAIN_RUN/attempts/$hpctrain_try.rank-$RANK"
    : >"$HPCTRAIN_RUN/attempts/$hpctrain_try"
    export HPCTRAIN_FAILURE_FILE="$HPCTRAIN_RUN/attempts/$hpctrain_try.first_failure"
    [ "$hpctrain_try" = 0 ] || printf '\nhpctrain: restart %s\n' "$hpctrain_try" >>"$hpctrain_log"
  fi
  if [ -n "$hpctrain_direct" ]; then
    hpctrain_listen "$hpctrain_usr1"
    "$@" >>"$hpctrain_log" 2>&1 & hpctrain_follow
  else
    # The launcher signals the program too; this shell ends after it, to record its exit code. A rank that receives a signal did not fail first: another rank failed, or the job was cancelled.
    trap : USR1 USR2
    trap ': >>"$HPCTRAIN_FAILURE_FILE.signal"' HUP INT TERM
    "$@" >>"$hpctrain_log" 2>&1
    hpctrain_code=$?
    # TERM may reach the program shortly before this shell.
    [ "$hpctrain_code" -ne 143 ] || sleep 0.5
  fi
  if [ "$hpctrain_code" -ne 0 ]; then
    # When several ranks fail at once, the launcher must not interrupt the record of the first one.
    trap '' HUP INT TERM
    # A rank that saved at a signal and has more to do asks for another start.
    case "|$hpctrain_asks|" in *"|$hpctrain_code|"*) ;; *) [ ! -e "$HPCTRAIN_FAILURE_FILE.signal" ] || exit "$hpctrain_code" ;; esac
    # The date of an image may lack %N, and an image may have neither date nor tail.
    hpctrain_now=$(date +%s.%3N 2>/dev/null)
    case $hpctrain_now in *[!0-9.]*) hpctrain_now='' ;; esac
    # Of all ranks, one makes the file, and none removes it.
    set -o noclobber
    if { echo "${RANK:-null} $HOSTNAME $hpctrain_code $hpctrain_now" >"$HPCTRAIN_FAILURE_FILE"; } 2>/dev/null; then
      ! command -v tail >/dev/null || tail -c 65536 "$hpctrain_log" | tail -n 20 >"$HPCTRAIN_FAILURE_FILE.log"
    fi
  elif [ "${RANK:-${NODE_RANK-}}" = 0 ]; then
    : >"$HPCTRAIN_RUN/rank_0_ended"
  fi
  exit "$hpctrain_code"
fi

# From here on it is bash.
hpctrain_job=${hpctrain_job-} hpctrain_number=${hpctrain_number:-${hpctrain_job:-$$}} hpctrain_restart=${hpctrain_restart:-0} hpctrain_array=${hpctrain_array-} hpctrain_task=${hpctrain_task-} hpctrain_hosts=${hpctrain_hosts-} hpctrain_cluster=${hpctrain_cluster-}
# The paths, before the script changes the folder.
hpctrain_beside=$(cd -- "${BASH_SOURCE[0]%/*}" && pwd) || exit 1
hpctrain_ours() { [[ -r $hpctrain_beside/$1.sh && $(<"$hpctrain_beside/$1.sh") == *hpctrain* ]]; }; for hpctrain_file in preflight sagemaker; do ! hpctrain_ours "$hpctrain_file" || . "$hpctrain_beside/$hpctrain_file.sh"; done
case ${hpctrain_folder-} in '' | /*) ;; *) hpctrain_folder=$PWD/$hpctrain_folder ;; esac
# A setup line `source FILE` would pass the arguments on.
set --
# What a rank runs, behind the variables that the script sets for it. A new folder may become visible on a network file system with a delay.
hpctrain_rank='for hpctrain_try in 0 1 2 3 4; do [ ! -d "$HPCTRAIN_LOG_DIR" ] || break; sleep 1; done
[ -d "$HPCTRAIN_LOG_DIR" ] || { echo "hpctrain: $HPCTRAIN_RUN does not exist on ${SLURMD_NODENAME:-${HPCTRAIN_NODE:-$(uname -n)}}; the results must be on a file system that all nodes share (--results DIR)" >&2; exit 1; }
exec "${BASH:-sh}" "$HPCTRAIN_RUN/runtime.sh" rank'
hpctrain_rank+="${hpctrain_forks:+ node}${hpctrain_direct:+ direct}$([ "${hpctrain_usr1-}" != pass ] || echo " usr1")${hpctrain_asks_again:+ asks='$hpctrain_asks_again'} -- \"\$@\""

# Begin: hpctrain_start RUN. Without a run folder, one below the working folder.
hpctrain_start() {
  local log file
  # The variables of an outer job describe other ranks.
  unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK NNODES MASTER_ADDR MASTER_PORT
  HPCTRAIN_RUN=$1
  [ "$hpctrain_scheduler:$hpctrain_job" != pbs: ] || { echo "hpctrain: this shell is in no job of PBS; submit the script with qsub" >&2; exit 1; }
  [ -d "${HPCTRAIN_RUN:-.}" ] || { echo "hpctrain: $HPCTRAIN_RUN does not exist on $HOSTNAME; the results must be on a file system that all nodes share (--results DIR)" >&2; exit 1; }
  export HPCTRAIN_RUN="${HPCTRAIN_RUN:-$PWD/results/$hpctrain_name/$hpctrain_number}"
  export HPCTRAIN_LOG_DIR="$HPCTRAIN_RUN/logs" HPCTRAIN_FAILURE_FILE="$HPCTRAIN_RUN/first_failure"
  rm -rf -- "$HPCTRAIN_RUN/attempts"
  mkdir -p -- "$HPCTRAIN_LOG_DIR" ${hpctrain_elastic:+"$HPCTRAIN_RUN/attempts"} || exit 1
  [ -n "$1" ] || echo "hpctrain: the logs of the ranks are in $HPCTRAIN_LOG_DIR"
  # The ranks find the runtime in the run folder.
  for file in runtime preflight each_node mpi_hosts; do
    ! hpctrain_ours "$file" || [ -e "$HPCTRAIN_RUN/$file.sh" ] || cp -- "$hpctrain_beside/$file.sh" "$HPCTRAIN_RUN/" || exit 1
  done
  rm -f -- "$HPCTRAIN_FAILURE_FILE" "$HPCTRAIN_FAILURE_FILE.log" "$HPCTRAIN_FAILURE_FILE.signal" "$HPCTRAIN_RUN/rank_0_ended" "$HPCTRAIN_RUN/stop"
  # After a submission with --export=NONE, srun would drop the variables that the script exports.
  [ "$hpctrain_scheduler" != slurm ] || export SLURM_EXPORT_ENV=ALL
  if [ -n "${hpctrain_requeue_on-}" ]; then
    export HPCTRAIN_CHECKPOINTS="$HPCTRAIN_RUN/checkpoints"
    # Slurm sends TERM to the ranks of a job that it preempts, a while before it ends them.
    export HPCTRAIN_STOP_AT_TERM=1
    nccl_trace="$HPCTRAIN_LOG_DIR/nccl_trace_rank_"
    hpctrain_find_lost_start
  fi
  if [ "$hpctrain_restart" -gt 0 ]; then
    # Logs are appended to; mark the start of another attempt. The last line before it may be incomplete.
    echo "hpctrain: restart $hpctrain_restart"
    for log in "$HPCTRAIN_LOG_DIR"/{rank,node}-*.out; do
      [ ! -e "$log" ] || printf '\nhpctrain: restart %s\n' "$hpctrain_restart" >>"$log"
    done
  fi
  # status.json: written at the start and, however the script ends, at the end.
  started=$(date +%s.%3N) ranks_ended='' bad_nodes=() run_nodes=$hpctrain_hosts
  trap hpctrain_record_end EXIT
  case ${hpctrain_usr1-} in
  file) export HPCTRAIN_STOP_FILE="$HPCTRAIN_RUN/stop" && trap ': >"$HPCTRAIN_STOP_FILE"' USR1 ;;
  # Slurm's warning before the time limit may arrive before the ranks start.
  ?*) trap 'echo "hpctrain: USR1 arrived before the ranks had started" >&2' USR1 ;;
  esac
  hpctrain_write_status null null
}

hpctrain_write_status() {
  local failure=null rank host code when job=$hpctrain_job lost=
  [ -z "$hpctrain_array" ] || job=${hpctrain_array}_$hpctrain_task
  if [ -e "$HPCTRAIN_FAILURE_FILE" ] && read -r rank host code when <"$HPCTRAIN_FAILURE_FILE"; then
    [ "$hpctrain_nodes" = 1 ] || lost=", \"lost_peer\": $(hpctrain_lost_peer "$rank" && echo true || echo false)"
    failure="{\"rank\": $rank, \"host\": \"$host\", \"exit_code\": $code, \"time\": ${when:-null}$lost}"
  fi
  printf '{"started": %s, "ended": %s, "exit_code": %s, "restart_count": %s, "host": "%s", "pid": %s, "job": "%s", "nodes": "%s", "failure": %s, "bad_nodes": "%s"}\n' \
    "$started" "$1" "$2" "$hpctrain_restart" "$HOSTNAME" "$$" "$job" "$hpctrain_hosts" "$failure" "$(IFS=,; echo "${bad_nodes[*]-}")" \
    >"$HPCTRAIN_RUN/status.json.new" && mv -f -- "$HPCTRAIN_RUN/status.json.new" "$HPCTRAIN_RUN/status.json"
}

# Whether the log of the rank that failed first says only that it lost another rank, which failed before but could not record it.
hpctrain_lost_peer() {
  { tail -qc 65536 -- "$HPCTRAIN_LOG_DIR"/{rank,node}-"$1".out 2>/dev/null || :; } | awk '
    /^hpctrain: restart / { peer = own = 0 }
    /Connection (closed|reset) by (remote )?peer|remote process exited or there was|Got completion from peer|failed to recv, got 0 bytes|Broken pipe|Timed out waiting [0-9]+ms for (recv|send)|Watchdog caught collective operation timeout/ { peer = 1 }
    /(CUDA|HIP|ECC|cuDNN|CUBLAS|Bus) [Ee]rror|(^|[] .])(Value|Type|Key|Index|Assertion|Attribute|Import|ModuleNotFound|FileNotFound|Permission|Memory|OutOfMemory|Name|UnboundLocal|NotImplemented|ZeroDivision|FloatingPoint|Overflow|UnicodeDecode)Error(: |$)/ { own = 1 }
    END { exit !(peer && !own) }'
}

hpctrain_record_end() {
  local code=$? ended file try=0
  # After a signal, $? is the code of the previous command, which may be 0.
  [ "$code" -ne 0 ] || [ -n "$ranks_ended" ] || code=143
  if [ -n "${hpctrain_elastic-}" ]; then
    # The record of torchrun's last attempt is that of the job.
    while [ -e "$HPCTRAIN_RUN/attempts/$((try + 1))" ]; do try=$((try + 1)); done
    for file in "" .log; do
      [ ! -s "$HPCTRAIN_RUN/attempts/$try.first_failure$file" ] || cp -- "$HPCTRAIN_RUN/attempts/$try.first_failure$file" "$HPCTRAIN_FAILURE_FILE$file"
    done
  fi
  ended=$(date +%s.%3N)
  hpctrain_write_status "$ended" "$code"
  [ -z "${hpctrain_requeue_on-}" ] || hpctrain_requeue "$ended" "$code"
}

# At the end of a start: add its line to restarts.jsonl and, if its ranks saved a checkpoint and have more to do, queue this job again. This is the last command, because Slurm then ends the script.
hpctrain_requeue() {
  local ended=$1 code=$2 step stalled again=false by_slurm=false preempted=false job=$SLURM_JOB_ID host='' rank asked why='' run_time=0
  hpctrain_add_lost_start
  read -r step stalled < <(hpctrain_progress "$started")
  # torchrun exits with 1, whatever its ranks exit with.
  if [ "$code" -ne 0 ] && [ -s "$HPCTRAIN_FAILURE_FILE" ]; then
    read -r rank host code _ <"$HPCTRAIN_FAILURE_FILE"
  fi
  # Slurm ends a start that it preempts, requeues or cancels; its ranks may end with any code then.
  [ "$code" -eq 0 ] || ! hpctrain_ended_by_slurm || by_slurm=true
  # The node whose rank failed first; none if a preflight failed, if it saved and ended, or was ended by Slurm. If that rank lost another one, a node that Slurm has lost, if any.
  case $code:$by_slurm$preempted:${bad_nodes[*]-} in
  0:* | 75:* | 138:* | *:*true*:* | *:*:?*) host= ;;
  esac
  if [ -n "$host" ] && [ "$hpctrain_nodes" -gt 1 ] && hpctrain_lost_peer "$rank"; then
    host=$(scontrol show node --oneliner "$hpctrain_hosts" 2>/dev/null | sed -nE 's/^NodeName=([^ ]*) .* State=(DOWN|FAIL|[A-Z]*[*]).*/\1/p' | head -n 1)
  fi
  asked=$code
  if [ "$preempted" = true ]; then
    # Its ranks ended within the grace time of a preemption; Slurm does not queue it again then. It does not count among the starts without progress.
    asked=138 stalled=$((stalled > 0 ? stalled - 1 : 0))
  fi
  # The seconds that all starts ran together, without starts whose end is not known.
  [ -z "${hpctrain_max_run_time-}" ] || run_time=$({ cat -- "$HPCTRAIN_RUN/restarts.jsonl" 2>/dev/null; echo "\"started\": $started, \"ended\": $ended,"; } |
    sed -n 's/.*"started": \([0-9.]*\), "ended": \([0-9.]*\),.*/\1 \2/p' | awk '{ sum += $2 - $1 } END { printf "%d\n", sum }')
  # 138: USR1 ended a rank that did not yet listen to it.
  if [[ "|$hpctrain_requeue_on|138|" != *"|$asked|"* ]]; then
    :
  elif [ "$hpctrain_restart" -ge "$hpctrain_max_restarts" ]; then
    why=" after step $step: it was restarted $hpctrain_restart times (lifecycle.max_restarts)"
  elif [ "$preempted" = false ] && [ "$stalled" -ge "$hpctrain_max_stalled" ]; then
    why=": $stalled starts in a row have no checkpoint after step $step (lifecycle.max_stalled)"
  elif [ "$run_time" -ge "${hpctrain_max_run_time:-1}" ]; then
    why=" after step $step: its starts ran for $run_time s together (lifecycle.max_run_time)"
  # Slurm would also queue a job again that is cancelled, and preempts without help.
  elif [ "$by_slurm" = true ]; then
    why=": Slurm has ended the job"
  else
    echo "hpctrain: queued again after step $step, restart $((hpctrain_restart + 1)) of at most $hpctrain_max_restarts$([ "$preempted" = false ] || echo ", preempted")"
    again=true
  fi
  [ -z "$why" ] || echo "hpctrain: not queued again$why"
  hpctrain_add_start "$hpctrain_restart" "$started" "$ended" "$code" "$(hpctrain_reached)" "$hpctrain_hosts" "$by_slurm" "$again" "${host%%.*}" "$preempted"
  [ "$again" = true ] || return 0
  # The id of an array would queue all its tasks again.
  [ -z "$hpctrain_array" ] || job=${hpctrain_array}_$hpctrain_task
  # A controller that restarts does not answer for a while; one that answers has refused.
  for try in 1 2 3 4 5 6; do
    scontrol requeue "$job" && return 0
    scontrol show job --oneliner "$SLURM_JOB_ID" >/dev/null && break
    sleep "$((5 * try))"
  done
  echo "hpctrain: Slurm did not queue job $job again; its checkpoints are in $HPCTRAIN_CHECKPOINTS" >&2
}

# The step of the last checkpoint, and the number of starts in a row, with the one that began at a time, without progress: that saved no later one than they loaded or, if the last one of the start before was damaged, than any start.
hpctrain_progress() {
  local step=0 stalled=0 last='' count highest loaded
  [ ! -r "$HPCTRAIN_CHECKPOINTS/step" ] || read -r step <"$HPCTRAIN_CHECKPOINTS/step" || step=0
  read -r last count highest < <(sed -n 's/.*"step": \([0-9]*\), "stalled": \([0-9]*\).*/\1 \2/p' "$HPCTRAIN_RUN/restarts.jsonl" 2>/dev/null |
    awk '$1 > highest { highest = $1 } { last = $0 } END { if (NR) print last, highest + 0 }')
  if [ -n "$last" ]; then
    read -r loaded _ < <(hpctrain_loaded "$1")
    [ "$loaded" != null ] || loaded=$last
    if [ "$step" -le "$loaded" ] || { [ "$loaded" -lt "$last" ] && [ "$step" -le "$highest" ]; }; then
      stalled=$((count + 1))
    fi
  fi
  echo "$step $stalled"
}

# The last step that rank 0 printed in the newest start of its log.
hpctrain_reached() {
  tail -qc 65536 -- "$HPCTRAIN_LOG_DIR"/{rank,node}-0.out 2>/dev/null | awk '
    /^hpctrain: restart / { step = "" }
    /^@hpct .*"step": *[0-9]/ { sub(/.*"step": */, ""); step = $0 + 0 }
    END { print step == "" ? "null" : step }'
}

# Whether the job is not running any more; sets `preempted` if it runs in the grace time of a preemption. A controller that restarts does not answer for a while.
hpctrain_ended_by_slurm() {
  local try answer begun=
  for try in 1 2 3 4 5 6; do
    if answer=$(SLURM_TIME_FORMAT=standard scontrol show job --oneliner "$SLURM_JOB_ID"); then
      # In a trap, `return` alone is the status before it.
      [[ $answer != *" JobState=RUNNING "* ]] && return 0
      # Slurm may still show the preemption of an earlier start. The clock of this node may differ from Slurm's.
      [[ ! $answer =~ \ StartTime=([0-9][^ ]*) ]] || begun=${BASH_REMATCH[1]}
      if [[ $answer =~ \ PreemptTime=([0-9][^ ]*) && ! ${BASH_REMATCH[1]} < $begun ]]; then
        preempted=true
      fi
      return 1
    fi
    sleep "$((5 * try))"
  done
  return 1
}

# Add the line of a start: number, start, end, exit code, last step, nodes, whether Slurm ended it, whether it is queued again, the node that failed first, whether it was preempted.
hpctrain_add_start() {
  local step stalled loaded saved
  read -r step stalled < <(hpctrain_progress "$2")
  read -r loaded saved < <(hpctrain_loaded "$2")
  [ "${10-false}" = false ] || stalled=$((stalled > 0 ? stalled - 1 : 0))
  printf '{"restart": %s, "started": %s, "ended": %s, "exit_code": %s, "nodes": "%s", "step": %s, "stalled": %s, "reached": %s, "by_slurm": %s, "requeued": %s, "saved": %s, "resumed": %s, "failed": "%s", "preempted": %s, "loaded": %s, "loaded_saved": %s}\n' \
    "$1" "$2" "$3" "$4" "$6" "$step" "$stalled" "$5" "$7" "$8" "$(hpctrain_written step)" "$(hpctrain_written resumed)" "${9-}" "${10-false}" "$loaded" "$saved" >>"$HPCTRAIN_RUN/restarts.jsonl"
}

# The step of the checkpoint that the start loaded which began at a time, and when that was written.
hpctrain_loaded() {
  local step saved written
  written=$(hpctrain_written resumed)
  [ "$written" = null ] || [ "${written/./}" -lt "${1/./}" ] || read -r step saved <"$HPCTRAIN_CHECKPOINTS/resumed"
  [[ ${step-} =~ ^[0-9]+$ ]] || step=null
  [[ ${saved-} =~ ^[0-9]+([.][0-9]+)?$ ]] || saved=null
  echo "$step $saved"
}

# When a file of the checkpoints was written: `step` by a save, `resumed` by a resume.
hpctrain_written() { date -r "$HPCTRAIN_CHECKPOINTS/$1" +%s.%3N 2>/dev/null || echo null; }

# Note a start before this one without a line, because its node was lost or its script was killed: what status.json and the log still have of it.
hpctrain_find_lost_start() {
  local before=$((hpctrain_restart - 1))
  lost_start=
  [ "$before" -ge 0 ] || return 0
  [[ $(tail -n 1 -- "$HPCTRAIN_RUN/restarts.jsonl" 2>/dev/null) != '{"restart": '"$before, "* ]] || return 0
  lost_start=$(sed -n 's/^{"started": \([0-9.]*\),.*"restart_count": '"$before"',.*"nodes": "\([^"]*\)".*/'"$before"' \1 null null '"$(hpctrain_reached)"' \2/p' "$HPCTRAIN_RUN/status.json" 2>/dev/null)
}
hpctrain_add_lost_start() {
  local -a fields
  [ -n "$lost_start" ] || return 0
  read -ra fields <<<"$lost_start"
  lost_start=
  hpctrain_add_start "${fields[@]:0:5}" "${fields[5]-}" false false
}

# Two trainings with one folder of checkpoints would resume from one another's, and replace them. The lines of its file `owner`: the name of the job that last started with it, its run folder, its cluster.
hpctrain_own_checkpoints() {
  local owner=$HPCTRAIN_CHECKPOINTS/owner mine="$HPCTRAIN_CHECKPOINTS/owner.$HOSTNAME.$$" name run cluster before
  local unowned="hpctrain: no owner noted in $HPCTRAIN_CHECKPOINTS: another job could use it, too"
  { mkdir -p -- "$HPCTRAIN_CHECKPOINTS" && printf '%s\n' "$hpctrain_name" "$HPCTRAIN_RUN" "$hpctrain_cluster" >"$mine"; } || { echo "$unowned" >&2; return 0; }
  # A link is made whole and by one of several jobs only.
  until ln -- "$mine" "$owner" 2>/dev/null; do
    # Some file systems have no links.
    before=$(cat -- "$owner" 2>/dev/null) || { mv -n -- "$mine" "$owner" || echo "$unowned" >&2; break; }
    { IFS= read -r name; IFS= read -r run; IFS= read -r cluster; } <<<"$before"
    [ "$run" != "$HPCTRAIN_RUN" ] || break
    if hpctrain_may_run "$run" "$cluster"; then
      hpctrain_refuse_checkpoints "the run $run has not ended, and each would replace what the other saves" "start this job after that one (directives: {dependency: singleton}), or give it another folder; if that run is lost, rm $owner"
    elif [ "$name" != "$hpctrain_name" ]; then
      hpctrain_refuse_checkpoints "they are those of the job $name ($run), and this one is $hpctrain_name" "give this job another folder; to go on from them under this name, rm $owner"
    fi
    echo "hpctrain: the checkpoints in $HPCTRAIN_CHECKPOINTS are those of the run $run, which has ended"
    mv -- "$owner" "$mine.before" || { echo "$unowned" >&2; break; }
    # Another job may have replaced it since it was read.
    [ "$(cat -- "$mine.before")" = "$before" ] || ln -- "$mine.before" "$owner"
  done
  rm -f -- "$mine" "$mine.before"
}
hpctrain_refuse_checkpoints() {
  rm -f -- "$mine"
  echo "hpctrain: the checkpoints in $HPCTRAIN_CHECKPOINTS are not used: $1; $2" >&2
  # Without a requeue.
  trap - EXIT
  hpctrain_write_status "$(date +%s.%3N)" 2
  exit 2
}

# Whether a run may go on: Slurm lists its job or, if that is of another cluster or Slurm does not answer, its status.json has no end.
hpctrain_may_run() {
  local status job answer try
  status=$(cat -- "$1/status.json" 2>/dev/null) || return 1
  job=$(sed -n 's/.*"job": "\([0-9_]*\)".*/\1/p' <<<"$status")
  # An earlier run in this allocation.
  [ "$hpctrain_scheduler" != slurm ] || [ "$job" != "$hpctrain_job" ] || return 1
  for try in 1 2 3 4 5 6; do
    [ "$hpctrain_scheduler" = slurm ] && [ -n "$job" ] && [ "$2" = "$hpctrain_cluster" ] || break
    if answer=$(squeue --noheader --jobs="$job" --format=%T 2>&1) && [ "$answer" != COMPLETING ]; then
      [ -n "$answer" ]
      return
    fi
    [[ $answer != *"Invalid job id"* ]] || return 1
    sleep "$((5 * try))"
  done
  [[ $status == *'"ended": null'* ]] && { [[ $status != *"\"host\": \"$HOSTNAME\""* ]] || [ -e "/proc/$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' <<<"$status")" ]; }
}

# A program that starts the ranks must be available and, if it is a Python, have a module.
hpctrain_require() {
  local lack="is not on PATH"
  [[ $1 != */* ]] || lack="does not exist"
  if ! command -v -- "$1" >/dev/null; then
    echo "hpctrain: $1 $lack on $HOSTNAME; load its module with setup: [module load …] in the job or the site profile" >&2
    exit 127
  fi
  if [ $# -eq 2 ] && ! "$1" -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$2"; then
    echo "hpctrain: $1 ($(command -v -- "$1")) on $HOSTNAME has no $2; install it there, or load it with modules: or setup: in the job or the site profile" >&2
    exit 127
  fi
}

# A secret: inherited, or read from a file that only its owner can read; never written to a file.
hpctrain_secret() {
  if [ $# -eq 1 ]; then
    [ -z "${!1+set}" ] || return 0
    echo "hpctrain: $1 is not set in the job; export it in the shell that submits the job" >&2
    exit 1
  fi
  # Do not trace the value, even if a setup line enabled `set -x`.
  if [[ $- == *x* ]]; then
    { set +x; } 2>/dev/null
    hpctrain_secret "$@"
    set -x
    return
  fi
  # Without a local variable, because a secret may have its name.
  set -- "$1" "$2" "$(stat -L -c %a -- "$2" 2>/dev/null)"
  case $3 in
  [46]00) export "$1=$(<"$2")" ;;
  '') echo "hpctrain: $1: the file $2 does not exist on $HOSTNAME" >&2 && exit 1 ;;
  *) echo "hpctrain: $1: the file $2 has mode $3, so other users can read it; run chmod 600" >&2 && exit 1 ;;
  esac
}

# The first free port of $2 ports from $1. The start depends on the job, so that jobs on one node do not collide.
hpctrain_free_port() {
  local try port
  for ((try = 0; try < $2; try++)); do
    port=$(($1 + (hpctrain_number + hpctrain_restart + try) % $2))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  echo "hpctrain: no port is free among $2 ports from $1" >&2
  return 1
}

# Paths with some characters cannot be mounted: hpctrain_check_mounts RUNTIME CHARACTERS
hpctrain_check_mounts() {
  local folder
  for folder in "$HPCTRAIN_RUN" "$PWD"; do
    [[ $folder == *["$2"]* ]] || continue
    echo "hpctrain: $1 cannot mount $folder; use a path without any of $2" >&2
    exit 1
  done
}

# Run the command that starts the ranks, in the background.
hpctrain_run() {
  [ -n "$MASTER_PORT" ] || [ "$hpctrain_scheduler" = hosts ] || exit 1
  case $hpctrain_scheduler in hosts | sagemaker) ;; *) [ -z "${HPCTRAIN_CHECKPOINTS-}" ] || hpctrain_own_checkpoints ;; esac
  [ -z "${lost_start-}" ] || hpctrain_add_lost_start
  hpctrain_listen "$([ "${hpctrain_usr1-}" != pass ] || echo 1)"; "$@" & hpctrain_follow
  code=$hpctrain_code && return "$code"
}

# Record the end, and end the job with the exit code of the ranks.
hpctrain_exit() {
  local code=$1
  # srun may exit with 0 when its node fails.
  if [ "$hpctrain_scheduler" = slurm ] && [ "$code" -eq 0 ] && [ ! -e "$HPCTRAIN_RUN/rank_0_ended" ]; then
    echo "hpctrain: $hpctrain_launcher exited with 0, but rank 0 did not" >&2
    code=1
  fi
  ranks_ended=yes
  exit "$code"
}
