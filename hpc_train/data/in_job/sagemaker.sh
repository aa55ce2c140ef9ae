# The ends of a job on a host of SageMaker; its script sources this file after runtime.sh.
# shellcheck shell=bash disable=SC2154
# Start on one host of a training job. The first process of a container ignores TERM unless it has a trap.
hpctrain_start_host() {
  trap 'exit 143' TERM
  hpctrain_read_hosts || return 1
  HPCTRAIN_RUN=/opt/ml/output/data/$SM_CURRENT_HOST
  mkdir -p "$HPCTRAIN_RUN" /opt/ml/code && cd /opt/ml/code || return 1
  tar -xzf /opt/ml/input/data/code/code.tar.gz || return 1
  # It exists in jobs on spare capacity, and is kept in S3.
  [ ! -d /opt/ml/checkpoints ] || export HPCTRAIN_CHECKPOINTS=/opt/ml/checkpoints
  hpctrain_start "$HPCTRAIN_RUN" || return 1
  followed=
  trap hpctrain_end_host EXIT
}

# Variables of the hosts, with the names of the SageMaker training toolkit. Hosts are ordered by number, because algo-10 would come before algo-2.
hpctrain_read_hosts() {
  local python found
  python=$(command -v python3 || command -v python) || { echo "hpctrain: the image has no python" >&2; return 1; }
  found=$("$python" - <<'HOSTS'
import json, os, re, shlex

with open("/opt/ml/input/config/resourceconfig.json") as stream:
    config = json.load(stream)
hosts = sorted(config["hosts"], key=lambda host: [int(part) for part in re.findall(r"\d+", host)])
here, data = config["current_host"], "/opt/ml/input/data"
channels = sorted(set(os.listdir(data)) - {"hpctrain", "code"}) if os.path.isdir(data) else []
channels = [name for name in channels if os.path.isdir(os.path.join(data, name))]
found = {
    "hpctrain_hosts": ",".join(hosts),
    "first_host": hosts[0],
    "HOSTNAME": here,
    "SM_HOSTS": json.dumps(hosts),
    "SM_HOST_COUNT": len(hosts),
    "SM_CURRENT_HOST": here,
    "SM_CURRENT_HOST_RANK": hosts.index(here),
    "SM_CURRENT_INSTANCE_TYPE": config.get("current_instance_type", ""),
    "SM_NETWORK_INTERFACE_NAME": config.get("network_interface_name", "eth0"),
    "SM_NUM_CPUS": len(os.sched_getaffinity(0)),
    "SM_NUM_GPUS": len([name for name in os.listdir("/dev") if re.match(r"nvidia\d+$", name)]),
    "SM_MODEL_DIR": "/opt/ml/model",
    "SM_OUTPUT_DATA_DIR": "/opt/ml/output/data",
    "SM_CHANNELS": json.dumps(channels),
}
for name in channels:
    found["SM_CHANNEL_" + re.sub(r"\W", "_", name).upper()] = os.path.join(data, name)
for name, value in found.items():
    print("export %s=%s" % (name, shlex.quote(str(value))))
HOSTS
  ) || return 1
  eval "$found"
}

# The hosts start at different times, and a host that has not started has no address yet.
hpctrain_await_first_host() {
  local tries
  MASTER_ADDR=$first_host
  for ((tries = 0; tries < 600; tries++)); do
    ! getent hosts "$MASTER_ADDR" >/dev/null || return 0
    sleep 1
  done
  echo "hpctrain: $SM_CURRENT_HOST cannot resolve $MASTER_ADDR" >&2
  return 1
}

# CloudWatch has one stream for each host: the lines of each rank go there behind its number. So do those of a program that starts ranks.
hpctrain_follow_ranks() {
  local number first=$((SM_CURRENT_HOST_RANK * hpctrain_tasks))
  sleep infinity >/dev/null 2>&1 &
  followed=$!
  followers=()
  [ -z "${hpctrain_forks-}" ] || hpctrain_follow_log node "$SM_CURRENT_HOST_RANK"
  for ((number = first; number < first + hpctrain_tasks; number++)); do
    hpctrain_follow_log rank "$number"
  done
}
hpctrain_follow_log() {
  tail -n +1 -s 0.2 --pid="$followed" -F "$HPCTRAIN_LOG_DIR/$1-$2.out" 2>/dev/null | sed -u "s/^/[$1 $2] /" &
  followers+=("$!")
}

# The end of this host: the rest of the logs, status.json as a line of the log, and the reason for SageMaker.
hpctrain_end_host() {
  local code=$? rank host failed
  trap '' TERM
  if [ -n "$followed" ]; then
    kill "$followed" 2>/dev/null
    wait "${followers[@]}" 2>/dev/null
  fi
  (exit "$code")
  hpctrain_record_end
  echo
  echo "hpctrain: status $(cat "$HPCTRAIN_RUN/status.json")"
  [ "$code" -ne 0 ] || return 0
  if [ -s "$HPCTRAIN_FAILURE_FILE" ] && read -r rank host failed _ <"$HPCTRAIN_FAILURE_FILE"; then
    { echo "rank $rank on $host: exit code $failed"; tail -c 900 -- "$HPCTRAIN_FAILURE_FILE.log"; } >/opt/ml/output/failure
  else
    echo "exit code $code on $SM_CURRENT_HOST before any rank failed" >/opt/ml/output/failure
  fi
}
