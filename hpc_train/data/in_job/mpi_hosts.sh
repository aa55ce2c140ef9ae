# Start mpirun (the arguments) on the first host, and on each other one the daemon that mpirun asks for. No ssh between the hosts is needed: the others connect to the first one, and get the command of their daemon over that connection.
# shellcheck shell=bash
if [ "$HPCTRAIN_NODE_RANK" != 0 ]; then
  for ((tries = 0; tries < 600; tries++)); do
    { exec 7<>"/dev/tcp/$MASTER_ADDR/$HPCTRAIN_PORT"; } 2>/dev/null && break
    sleep 0.5
  done
  # Only a process of this run knows the words, so that nobody else gives a command.
  { printf '%s %s\n' "$HPCTRAIN_NODE_RANK" "${HPCTRAIN_WORDS%,*}" >&7; } 2>/dev/null
  { IFS= read -r -d "" word <&7 && IFS= read -r -d "" command <&7; } 2>/dev/null
  if [ "${word-}" != "${HPCTRAIN_WORDS#*,}" ]; then
    echo "hpctrain: mpirun on the first host, $MASTER_ADDR, did not ask for its daemon here" >&2
    exit 1
  fi
  # Ranks must not keep the connection open: its end is that of the daemon.
  bash -c "$command" 7>&- &
else
  folder=$(mktemp -d "/tmp/hpctrain-mpi.XXXXXX") || exit 1
  trap 'rm -rf -- "$folder"' EXIT
  cat >"$folder/relay" <<'RELAY'
import ipaddress, os, socket, sys, threading

folder = os.path.dirname(os.path.abspath(__file__))


def serve():
    """Keep the connections of the hosts; give each the command of its agent, and the agent its exit code."""
    ask, reply = os.environ["HPCTRAIN_WORDS"].split(",")
    hosts, here = {}, threading.Condition()

    def greet(connection):
        connection.settimeout(60)
        words = connection.makefile("r").readline().split()
        if len(words) == 2 and words[1] == ask:
            with here:
                hosts[words[0]] = connection
                here.notify_all()

    def relay(agent):
        rank, command = agent.makefile("r").read().split("\0")
        with here:
            if not here.wait_for(lambda: rank in hosts, 300):
                return agent.close()
            host = hosts[rank]
        host.settimeout(None)
        host.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            host.sendall(f"{reply}\0{command}\0".encode())
            agent.sendall(host.makefile("rb").read())
        except OSError:
            pass
        agent.close()

    def accept(server, handle):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    port = socket.create_server(("", int(os.environ["HPCTRAIN_PORT"])))
    agents = socket.socket(socket.AF_UNIX)
    agents.bind(f"{folder}/socket.new")
    agents.listen(128)
    os.rename(f"{folder}/socket.new", f"{folder}/socket")
    threading.Thread(target=accept, args=(port, greet), daemon=True).start()
    accept(agents, relay)


def agent(address, *command):
    """What mpirun starts in place of ssh: it ends as the daemon on the host does."""
    rank = os.environ["HPCTRAIN_ADDRESSES"].split(",").index(address)
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"{folder}/socket")
        server.sendall(f"{rank}\0{' '.join(command)}".encode())
        server.shutdown(socket.SHUT_WR)
        code = server.makefile("r").read().strip()
    sys.exit(int(code) if code else f"hpctrain: the daemon of mpirun on {address} has not started, or was killed")


def network(own):
    """Print the network of this host if all hosts are in it."""
    place = ipaddress.ip_interface(own).network
    if all(ipaddress.ip_address(one) in place for one in os.environ["HPCTRAIN_ADDRESSES"].split(",")):
        print(own)


if sys.argv[1] == "--serve":
    serve()
elif sys.argv[1] == "--network":
    network(sys.argv[2])
else:
    agent(*sys.argv[1:])
RELAY
  python3 "$folder/relay" --serve &
  relay=$!
  until [ -S "$folder/socket" ]; do
    kill -0 "$relay" 2>/dev/null || { echo "hpctrain: mpirun on several hosts needs python3 and the port $HPCTRAIN_PORT on the first one" >&2; exit 1; }
    sleep 0.1
  done
  own=$(PATH=$PATH:/usr/sbin:/sbin ip -o addr show 2>/dev/null | awk -v own="$MASTER_ADDR" '{ split($4, part, "/") } part[1] == own { print $4; exit }')
  # Open MPI would also try the networks of containers, which are the same on all hosts.
  network=$([ -z "$own" ] || python3 "$folder/relay" --network "$own" 2>/dev/null)
  if [ -n "$network" ]; then
    export OMPI_MCA_oob_tcp_if_include="${OMPI_MCA_oob_tcp_if_include:-$network}" OMPI_MCA_btl_tcp_if_include="${OMPI_MCA_btl_tcp_if_include:-$network}"
  fi
  # Of Open MPI 4, and of the PRRTE in Open MPI 5. The daemons stay children of the script on their host.
  export OMPI_MCA_plm_rsh_agent="python3 $folder/relay" OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_leave_session_attached=1
  export PRTE_MCA_plm_ssh_agent="$OMPI_MCA_plm_rsh_agent" PRTE_MCA_plm_ssh_no_tree_spawn=1 PRTE_MCA_prte_leave_session_attached=1
  "$@" &
fi
child=$!
trap 'kill -s TERM "$child" 2>/dev/null' HUP INT TERM
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || { wait "$child" 2>/dev/null; code=$?; break; }
done
[ -z "${relay-}" ] || kill "$relay" 2>/dev/null
[ -n "${relay-}" ] || printf '%s\n' "$code" >&7 2>/dev/null
exit "$code"
