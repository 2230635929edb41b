"""Runs a shop of the fork server, as the program that a host starts: `shop_shim.py SOCKET ARGUMENT...`.

It passes its streams on, keeps none of them, and ends like the shop. If it is killed, the shop is killed.
Python runs it with `-S -I`, so it imports little.
"""

import json
import os
import signal
import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forks:
    forks.connect(sys.argv[1])
    request = {"arguments": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109
    socket.send_fds(forks, [json.dumps(request).encode()], [0, 1, 2])
    os.closerange(0, 3)
    forks.recv(64)
    # Empty if the fork server has ended.
    status = int(forks.recv(64) or 1)
if status < 0:
    os.kill(os.getpid(), -status)
    signal.pause()
os._exit(status)
