"""No test of real logs is collected where there are none."""

from tests.known.folder import there

collect_ignore_glob = [] if there() else ["test_*.py"]
