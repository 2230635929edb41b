"""The command that the conformance suite starts as a client: it passes the work on to a running process.

The suite starts it for every scenario; importing the plugin each time would take most of the time.
"""

from __future__ import annotations

import json
import os
import socket
import sys

if __name__ == "__main__":
    job = {
        "url": sys.argv[2],
        "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
        "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(json.dumps(job).encode() + b"\n")
        failure = connection.makefile("r", encoding="utf-8").read()
    sys.exit(failure or 0)
