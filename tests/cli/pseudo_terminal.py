"""What a command sends to a pseudo-terminal or a pipe."""

import os


def read_to_end(descriptor: int) -> str:
    """Return all text until the last writer has gone, and close the descriptor."""
    sent = b""
    # Linux says EIO when the last writer of a terminal has gone.
    try:
        while part := os.read(descriptor, 65536):
            sent += part
    except OSError:
        pass
    os.close(descriptor)
    return sent.decode()
