"""The commands of the small PBS: send their arguments to its server, and print its answer.

It is run as a file, without hpctrain's packages, so that a command costs no more than a real one.
"""

import json
import os
import socket
import sys


def main() -> int:
    """Ask the server of the folder in the first argument; return the exit code of the command."""
    folder, command, *arguments = sys.argv[1:]
    request = {
        "command": command,
        "arguments": arguments,
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib costs more than the command
        "variables": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(f"{folder}/socket")
            server.sendall(json.dumps(request).encode() + b"\n")
            answer = b"".join(iter(lambda: server.recv(1 << 16), b""))
        except OSError as failure:
            text = f"{command}: cannot connect to server pbs (errno=111)"
            sys.stderr.write(f"{failure.strerror}\n{text}\n")
            return 111
    if not answer:
        sys.stderr.write(f"{command}: Communication failure.\n")
        return 1
    code, output, errors = json.loads(answer)
    sys.stdout.write(output)
    sys.stderr.write(errors)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
