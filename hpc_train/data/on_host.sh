#!/bin/bash
# What hpctrain does on a host of a list, as `bash -s` with a line `set -- VERB ARGUMENT...` before this text.
# The answer follows the line ANSWER, because a shell's start-up files may print something first.
set -u
# One lock for all users of a host; it is only opened for reading, so that other users can take it.
lock_folder=/tmp/hpctrain-host

main() {
  local verb=$1
  shift
  echo ANSWER
  "$verb" "$@"
  echo END
}

# look FILE GPUS FOLDER: what the host has and lacks, whose memory of its first GPUs is in use, the text of FILE, which is
# there if it shares the folder, and whether FOLDER can be made and written to.
look() {
  local name said
  for name in flock timeout setsid mkfifo tar grep; do
    command -v "$name" >/dev/null || echo "lacks $name"
  done
  ((BASH_VERSINFO[0] >= 4)) || echo "lacks bash 4"
  ! command -v rsync >/dev/null || echo "has rsync"
  echo "boot $(boot)"
  echo "hostname $(uname -n)"
  [ -z "${1-}" ] || echo "text $(cat -- "$1" 2>/dev/null)"
  [ -z "${3-}" ] || writable "$(absolute "$3")"
  # A run that holds the lock uses the GPUs, and the next one waits for it.
  if [ ! -e "$lock_folder/lock" ] || (exec 9<"$lock_folder/lock" && flock -n 9) 2>/dev/null; then gpus_in_use "${2:-0}"; fi
  if ended_by_logind; then
    if ! lingers; then
      echo "killed"
    elif ! said=$(outlive true 2>&1); then
      echo "killed ${said##*$'\n'}"
    fi
  fi
}

# writable FOLDER: which folder prevents that FOLDER is made, or written to.
writable() {
  local folder=$1
  while [ ! -e "$folder" ] && [ "${folder%/*}" != "$folder" ]; do folder=${folder%/*}; done
  [ -n "$folder" ] || folder=/
  { [ -d "$folder" ] && [ -w "$folder" ]; } || echo "readonly $folder"
}

# gpus_in_use COUNT: of the first COUNT GPUs, those with over a tenth of their memory in use: number, used and all MiB.
gpus_in_use() {
  (($1 > 0)) || return 0
  {
    ! command -v nvidia-smi || timeout 20 nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv,noheader,nounits
    ! command -v rocm-smi || timeout 20 rocm-smi --showmeminfo vram --csv |
      awk -F, '/^card/ { printf "%s, %d, %d\n", substr($1, 5), $3 / 1048576, $2 / 1048576 }'
  } 2>/dev/null | awk -F', *' -v count="$1" 'NF == 3 && $1 < count + 0 && $3 > 0 && $2 > $3 / 10 { print "gpu_in_use", $1, $2, $3 }'
}

# Whether logind ends the processes of this user when its last connection by ssh ends: setsid and nohup do not prevent it.
ended_by_logind() {
  local line kill=no only="" exclude=""
  while IFS= read -r line; do
    case $line in
    KillUserProcesses=*) kill=${line#*=} ;;
    KillOnlyUsers=*) only=${line#*=} ;;
    KillExcludeUsers=*) exclude=${line#*=} ;;
    esac
  done < <(logind_settings)
  case " $exclude " in *" $(id -un) "*) return 1 ;; esac
  [ -z "$only" ] || case " $only " in *" $(id -un) "*) return 0 ;; *) return 1 ;; esac
  case $kill in yes | true | on | 1) ;; *) return 1 ;; esac
}

# What logind says; else, where systemd runs, what its files say.
logind_settings() {
  local folder
  timeout 10 loginctl show-session -p KillUserProcesses -p KillOnlyUsers -p KillExcludeUsers 2>/dev/null && return
  [ -d /run/systemd/system ] || return 0
  echo "KillExcludeUsers=root"
  for folder in /usr/lib /run /etc; do
    cat "$folder"/systemd/logind.conf "$folder"/systemd/logind.conf.d/*.conf 2>/dev/null
  done
}

# Whether the systemd of this user goes on without a connection.
lingers() {
  [ -e "/var/lib/systemd/linger/$(id -un)" ] || [ "$(timeout 10 loginctl show-user "$(id -un)" -p Linger 2>/dev/null)" = Linger=yes ]
}

# outlive COMMAND...: become the command, outside the session of ssh, which logind ends; for a subshell.
outlive() {
  export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
  exec systemd-run --user --scope --quiet -- "$@"
}

# versions: the lines `version NAME TEXT` of a program of bash on stdin, which ends with the Python of a job.
versions() {
  timeout 40 bash -s 2>/dev/null | grep '^version '
}

# facts FILE: the hardware and the networks of the host, as far as its programs say.
facts() {
  look "$1"
  echo "cpus $(nproc)"
  echo "memory $(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)"
  echo "arch $(uname -m)"
  ! command -v nvidia-smi >/dev/null || nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sed 's/^/gpu /'
  # Without containers' and virtual machines' own networks.
  PATH=$PATH:/usr/sbin:/sbin ip -o -4 addr show scope global 2>/dev/null |
    awk '$2 !~ /^(docker|br-|virbr|veth|cni|flannel)/ { print "address", $4, $2 }'
}

# take FOLDER RUN FIRST COUNT GPUS: take the lock of the host for a run, and wait in the background for its start.
# FIRST and COUNT are the ports that the ranks may use; its first GPUS GPUs must be free.
take() {
  local folder run=$2 said outside
  lock || return
  if ! flock -n 9; then
    # shellcheck disable=SC2012 # the names are ours
    echo "busy $(cat "$(ls -t "$lock_folder"/holder.* 2>/dev/null | head -n 1)" 2>/dev/null)"
    return
  fi
  said=$(gpus_in_use "$5")
  [ -z "$said" ] || { echo "$said"; return; }
  hold "$run of $(id -un)"
  folder=$(absolute "$1")
  said=$(mkdir -p -- "$folder/logs" 2>&1) || { echo "fault ${said##*: }: $folder"; return; }
  rm -f -- "$folder"/{start,end,status.json,first_failure,first_failure.log}
  # Open before and in the background process, or the words would be lost.
  { mkfifo -m 600 -- "$folder/start" && exec 8<>"$folder/start"; } 2>/dev/null || { echo "fault $folder: no named pipe can be made there"; return; }
  outside="env"
  ! ended_by_logind || outside="outlive"
  HPCTRAIN_HOLDER="$folder" "$outside" setsid nohup bash -c "$(declare -f supervise processes end_processes alive write_end); supervise \"\$@\"" \
    hpctrain "$folder" >"$folder/logs/job.out" 2>&1 </dev/null &
  echo "folder $folder"
  echo "boot $(boot)"
  echo "port $(free_port "$3" "$4")"
}

absolute() {
  # shellcheck disable=SC2088 # the home folder of this host
  case $1 in
  "~" | "~/"*) printf '%s\n' "$HOME${1#"~"}" ;;
  *) printf '%s\n' "$1" ;;
  esac
}

boot() {
  cat /proc/sys/kernel/random/boot_id
}

# Open the lock as descriptor 9; the first user of the host makes it.
lock() {
  if [ ! -e "$lock_folder/lock" ]; then
    mkdir -m 1777 -- "$lock_folder" 2>/dev/null
    (umask 022 && set -o noclobber && : >"$lock_folder/lock") 2>/dev/null
  fi
  { exec 9<"$lock_folder/lock"; } 2>/dev/null && return
  echo "fault $lock_folder/lock cannot be opened"
  return 1
}

# Say who holds the lock. A new file replaces the old one, so that a link of another user is not followed.
hold() {
  local fresh
  fresh=$(mktemp "$lock_folder/new.XXXXXXXX") || return 0
  echo "$1" >"$fresh"
  chmod 644 "$fresh"
  mv -f -- "$fresh" "$lock_folder/holder.$(id -u)"
}

free_port() {
  local try port
  for ((try = 0; try < $2; try++)); do
    port=$(($1 + (RANDOM + try) % $2))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

# In the background, with the lock: read words for the start from the pipe, run the script, end what it leaves.
# Nothing that keeps the lock may stay for a submission that was interrupted: it has to write within 5 minutes.
supervise() {
  local folder=$1 word limit=0 code begun
  while :; do
    IFS= read -r -d "" -t 300 word <&8 || exit 1
    case $word in
    limit=*) limit=${word#*=} ;;
    start) break ;;
    end) exit 0 ;;
    *=*) export "${word?}" ;;
    esac
  done
  exec 8<&-
  rm -f -- "$folder/start"
  begun=$SECONDS
  if cd -- "$HPCTRAIN_WORKDIR"; then
    HPCTRAIN_RUN="$folder" timeout --kill-after=30 "$limit" bash "$folder/job.sbatch" "$folder"
    code=$?
  else
    code=1
  fi
  end_processes KILL "$folder"
  write_end "$folder" "$code" "$((limit > 0 && SECONDS - begun >= limit))"
}

write_end() {
  echo "$2 $3" >"$1/end.new" && mv -f -- "$1/end.new" "$1/end"
}

# The processes of a run, in any session: the agent of torchrun gives each rank one of its own.
processes() {
  local file
  # shellcheck disable=SC2013 # one word for each file
  for file in $(grep -lzxF -- "HPCTRAIN_RUN=$1" /proc/[0-9]*/environ 2>/dev/null); do
    file=${file#/proc/}
    echo "${file%/environ}"
  done
}

# Whether a process of a run, or the one that waits for its end, is there.
alive() {
  grep -qzxF -- "HPCTRAIN_HOLDER=$1" /proc/[0-9]*/environ 2>/dev/null
}

# end_processes SIGNAL FOLDER: signal all processes until there is none, for 10 s.
end_processes() {
  local pids tries
  for ((tries = 0; tries < 50; tries++)); do
    pids=$(processes "$2")
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086 # one word for each process
    kill -s "$1" $pids 2>/dev/null
    sleep 0.2
  done
}

# start FOLDER WORD...: the words for the process that `take` left in the background; the last one is `start`.
start() {
  local folder=$1
  shift
  if [ ! -p "$folder/start" ] || ! alive "$folder"; then
    echo "fault the lock of the host was given up before the start"
    return
  fi
  printf '%s\0' "$@" 1<>"$folder/start"
}

# poll FOLDER...: the state of each run.
poll() {
  local folder
  for folder in "$@"; do
    echo "run $folder"
    echo "boot $(boot)"
    # Before the files: a run that ends meanwhile has written them.
    if alive "$folder"; then echo "alive"; fi
    [ ! -e "$folder/status.json" ] || echo "status $(cat -- "$folder/status.json")"
    [ ! -e "$folder/end" ] || echo "end $(cat -- "$folder/end")"
  done
}

# stop FOLDER: end a run; the script gets 10 s to end its ranks.
stop() {
  local folder=$1 pid tries
  [ ! -p "$folder/start" ] || ! alive "$folder" || printf 'end\0' 1<>"$folder/start"
  for pid in $(processes "$folder"); do
    # The job script and its `timeout`; they pass the signal on.
    if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "$folder/job.sbatch"; then
      kill -s TERM "$pid" 2>/dev/null
    fi
  done
  for ((tries = 0; tries < 50; tries++)); do
    [ -n "$(processes "$folder")" ] || break
    sleep 0.2
  done
  end_processes KILL "$folder"
  for ((tries = 0; tries < 25; tries++)); do
    alive "$folder" || break
    sleep 0.2
  done
  ! alive "$folder" || echo "alive"
}

# reach ADDRESS: whether this host reaches another one.
reach() {
  if ping -c 1 -W 3 "$1" >/dev/null 2>&1; then
    echo "reached"
    return
  fi
  # A refused connection is an answer too.
  # shellcheck disable=SC2016 # for the inner shell
  case $(LC_ALL=C timeout 5 bash -c ': <"/dev/tcp/$1/22"' reach "$1" 2>&1; echo " $?") in
  *" 0" | *refused*) echo "reached" ;;
  esac
}

# listen FIRST COUNT: accept connections for 30 s at a free port of COUNT, so that other hosts can try it; nothing
# without python3.
listen() {
  local tries port
  local program='import socket, sys
both = socket.has_dualstack_ipv6()
family = socket.AF_INET6 if both else socket.AF_INET
server = socket.create_server(("", int(sys.argv[1])), family=family, dualstack_ipv6=both)
server.settimeout(30)
try:
    while True:
        server.accept()[0].close()
except OSError:
    pass'
  command -v python3 >/dev/null || return 0
  port=$(free_port "$1" "$2")
  [ -n "$port" ] || return 0
  setsid python3 -c "$program" "$port" </dev/null >/dev/null 2>&1 &
  for ((tries = 0; tries < 50; tries++)); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "port $port"
      echo "pid $!"
      return
    fi
    sleep 0.1
  done
}

# connect ADDRESS PORT...: the addresses at which a process of this host cannot connect.
connect() {
  while [ $# -gt 1 ]; do
    # shellcheck disable=SC2016 # for the inner shell
    { timeout 10 bash -c ': <"/dev/tcp/$1/$2"' connect "$1" "$2" 2>/dev/null || echo "unreached $1:$2"; } &
    shift 2
  done
  wait
}

# unlisten PID: end `listen`.
unlisten() {
  kill "$1" 2>/dev/null
}

# logs FOLDER [NAME OFFSET]...: the new bytes of each log, after a line with name and number; at most 8 MiB of each.
logs() {
  local folder=$1 file name size offset
  local -A known=()
  shift
  while [ $# -gt 1 ]; do
    known[$1]=$2
    shift 2
  done
  for file in "$folder"/logs/*.out; do
    [ -f "$file" ] || continue
    name=${file##*/}
    offset=${known[$name]:-0}
    size=$(($(stat -L -c %s -- "$file") - offset))
    ((size <= 8388608)) || size=8388608
    ((size > 0)) || continue
    echo "log $size $name"
    tail -c "+$((offset + 1))" -- "$file" | head -c "$size"
  done
}

# clear FOLDER [NAME SIZE]...: remove the files of a run that has ended: those of hpctrain, and the logs that were fetched
# to their end. What the job wrote beside them stays.
clear() {
  local folder=$1 file
  local -A known=()
  shift
  ! alive "$folder" || return 0
  while [ $# -gt 1 ]; do
    known[$1]=$2
    shift 2
  done
  for file in "$folder"/logs/*.out; do
    # An empty one is never fetched.
    [ ! -f "$file" ] || [ "$(stat -c %s -- "$file")" != "${known[${file##*/}]:-0}" ] || rm -f -- "$file"
  done
  # Its state is asked for again as long as there is something to fetch.
  if ! rmdir -- "$folder/logs" 2>/dev/null; then return; fi
  rm -f -- "$folder"/{job.sbatch,start,status.json,rank_0_ended,first_failure,first_failure.log,first_failure.signal,end} "$folder"/*.sh
  rmdir -- "$folder" "${folder%/*}" 2>/dev/null
}

# unpack FOLDER: take a tar from stdin, which follows this text.
unpack() {
  local said
  said=$(tar --no-same-owner -C "$1" -xf - 2>&1) || echo "fault $1: ${said##*$'\n'}"
}

# make FOLDER: make a folder, and say its absolute name.
make() {
  local folder said
  folder=$(absolute "$1")
  if said=$(mkdir -p -- "$folder" 2>&1); then
    echo "folder $folder"
  else
    echo "fault ${said##*: }: $folder"
  fi
}

# prune FOLDER: remove the files of the previous list that are not in the one on stdin, each name ended by NUL.
prune() {
  local list=$1/.hpctrain-files
  sort -z >"$list.new" || { echo "fault $list cannot be written"; return; }
  if [ -e "$list" ]; then
    comm -z -23 -- "$list" "$list.new" | (cd -- "$1" && xargs -0 -r rm -f --)
  fi
  mv -f -- "$list.new" "$list"
}

main "$@"
