# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Redfish service that is not ours, sushy-tools' emulator with two systems, and Debian's fence_redfish."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import bcrypt

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import certificate

NODES = ("da69abcc-dae0-4913-9a7b-d344043097c0", "27946b59-9e44-4fa7-8e91-f3527a1ef094")
SECRETS = {"username": "operator", "password": "xyzzy-1957"}


class Place(NamedTuple):
    """Where an emulator listens, and what begins its command: where it is in a network of its own, nsenter."""

    address: str = "127.0.0.1"
    port: int = 0
    within: tuple[str, ...] = ()


HERE = Place()


@contextlib.contextmanager
def emulated_redfish(folder, place=HERE, program=None, **environment):
    """Settings of an emulated service with two systems, over TLS and with a password.

    :param program: a Python file that runs the emulator with a driver of its own, which gets `environment`.
    """
    files = certificate(folder, place.address)
    secret = bcrypt.hashpw(SECRETS["password"].encode(), bcrypt.gensalt(4)).decode()
    (folder / "users").write_text(f"{SECRETS['username']}:{secret}\n")
    systems = [{"uuid": node, "name": node[:4], "power_state": "Off", "nics": []} for node in NODES]
    (folder / "config").write_text(
        f"SUSHY_EMULATOR_AUTH_FILE = {str(folder / 'users')!r}\nSUSHY_EMULATOR_FAKE_SYSTEMS = {systems!r}\n"
    )
    port = place.port
    if not port:
        with socket.create_server((place.address, 0)) as free:
            port = free.getsockname()[1]
    emulator = Path(sys.executable).parent / "sushy-emulator"
    assert emulator.exists(), "sushy-tools is not installed: run tools/setup test"
    argv = [*place.within, *((sys.executable, program) if program else (emulator,)), "--fake", "-i", place.address]
    argv += ["-p", str(port), "--config", folder / "config", "--ssl-certificate", files[0], "--ssl-key", files[1]]
    with open(folder / "log", "w", encoding="utf-8") as log:
        # what it keeps of its systems lies in the folder for temporary files
        process = subprocess.Popen(argv, stdout=log, stderr=log, env={"TMPDIR": str(folder), **environment})
    try:
        end = Deadline(60)
        # werkzeug's serving.py, run_simple: its socket listens by then
        while "Running on https" not in (folder / "log").read_text():
            assert not end.passed, (folder / "log").read_text()
            end.nap(0.05)
        yield {"driver": "redfish", "host": place.address, "port": port, "tls_ca": str(files[0])}
    finally:
        process.kill()
        process.wait()


def fence(port, path, action, secrets, place=HERE):
    """(exit code, what it said) of fence_redfish."""
    agent = shutil.which("fence_redfish", path="/usr/sbin")
    assert agent, "fence_redfish (Debian: fence-agents) is not installed: run tools/setup test"
    options = dict(ip=place.address, ipport=port, systems_uri=path, ssl_insecure=1, action=action, power_timeout=40)
    given = "".join(f"{name}={value}\n" for name, value in {**options, **secrets}.items())
    argv = [*place.within, agent]
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=1000, check=False)
    return done.returncode, done.stderr
