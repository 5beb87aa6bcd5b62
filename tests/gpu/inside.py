# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The init of the proof's container: at each connection it runs the CUDA program and says how it ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
#: Seconds for the program: loading libcuda and the first use of a GPU take some.
LIMIT = 120


def main(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            peer, _address = server.accept()
            with peer:
                peer.sendall(json.dumps(run()).encode())


def run():
    argv = [sys.executable, os.path.join(FOLDER, "cuda_program.py")]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"code": 124, "said": f"did not end within {LIMIT} s"}
    words = (done.stdout + done.stderr).strip().splitlines()
    return {"code": done.returncode, "said": words[-1] if words else "nothing"}


if __name__ == "__main__":
    main(sys.argv[1])
