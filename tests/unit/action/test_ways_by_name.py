# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guide types with an instance's name (ssh, scp, rsync, ssh-copy-id), by the file that action ssh_config
writes, at a real sshd. If these fail, a user knows an address and a key, and no program takes them.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import text_for
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named

LIMIT = 120


def typed():
    """The commands of the guide, without their comments."""
    lines = named(guide("playbooks"), "way-in").splitlines()
    return [re.sub(r" +# .*", "", line) for line in lines]


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def keygen(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


class User:
    """Who has jackie's key, and the file of ways in; the machine's folder of root is `home`."""

    def __init__(self, top):
        self.top, self.home, self.bin, self.port = top, top / "root", top / "bin", port()
        for folder in (top / "src", top / ".ssh", top / "hetero", self.bin, self.home / ".ssh"):
            folder.mkdir(parents=True)
        top.chmod(0o755)
        (top / "results.txt").write_text("results\n")
        (top / "src" / "a.c").write_text("int a;\n")
        self.friend = keygen(top / "friend")
        self.authorized = self.home / ".ssh" / "authorized_keys"
        self.authorized.write_text(keygen(top / "key") + "\n")
        known = f"[127.0.0.1]:{self.port} " + " ".join(keygen(top / "host").split()[:2])
        instance = dict(instance="jackie", ip="127.0.0.1", known_hosts=known)
        options = [f"Port {self.port}", f"IdentityFile {top}/key", "IdentitiesOnly yes", "BatchMode yes"]
        (top / "hetero" / "jackie").write_text(text_for(instance, options))
        (top / "config").write_text(f"Include {top}/hetero/*\n")
        for name in ("ssh", "scp"):  # ssh finds ~ by the system's table of users, whatever HOME says
            wrapper = self.bin / name
            wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/{name} -F {top}/config "$@"\n')
            wrapper.chmod(0o755)

    def serve(self):
        """sshd, as an instance has it, but that root's folder is one of this test."""
        options = dict(
            Port=self.port, ListenAddress="127.0.0.1", HostKey=f"{self.top}/host", AuthorizedKeysFile=self.authorized,
            PidFile="none", StrictModes="no", UsePAM="no", PermitRootLogin="yes",
            Subsystem="sftp /usr/lib/openssh/sftp-server",
            ForceCommand=f'cd {self.home} && HOME={self.home} exec sh -c "$SSH_ORIGINAL_COMMAND"',
        )  # fmt: skip
        os.makedirs("/run/sshd", exist_ok=True)
        argv = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"]
        argv += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        end = time.monotonic() + LIMIT
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.monotonic() < end
            time.sleep(0.02)
        return process

    def types(self, line):
        path = f"{self.bin}:{os.environ['PATH']}"
        env = dict(os.environ, PATH=path, HOME=str(self.top))
        env.pop("SSH_AUTH_SOCK", None)
        done = subprocess.run(
            shlex.split(line), cwd=self.top, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture
def user(tmp_path):
    made = User(tmp_path)
    process = made.serve()
    yield made
    process.kill()
    process.wait()


def test_an_instance_is_reached_by_its_name(user):
    """Lost: files, ports and friends of a user who knows a name."""
    command, copy, folder, forward, share = typed()
    assert user.types(command) == f"{os.uname().nodename}\n"
    user.types(copy.replace(":/root/", f":{user.home}/"))
    assert (user.home / "results.txt").read_text() == "results\n"
    user.types(folder)
    assert (user.home / "src" / "a.c").read_text() == "int a;\n"
    assert forward.split()[:5] == ["ssh", "-f", "-N", "-L", "8080:localhost:80"]
    user.types(share)
    assert user.authorized.read_text().splitlines()[-1] == user.friend
    config = user.top / "hetero" / "jackie"
    config.write_text(config.read_text().replace(f"{user.top}/key", f"{user.top}/friend"))
    assert user.types(command) == f"{os.uname().nodename}\n"


def test_a_port_of_an_instance_is_one_of_this_machine(user):
    """Lost: a web page of a board that nobody can see."""
    own = port()
    forward = typed()[3].replace("-f -N", "-N").replace("8080:localhost:80", f"{own}:127.0.0.1:{user.port}")
    argv = shlex.split(forward)
    with subprocess.Popen([f"{user.bin}/ssh", *argv[1:]], stderr=subprocess.DEVNULL) as process:
        end, said = time.monotonic() + LIMIT, b""
        while not said and time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", own), 5) as there:
                    there.settimeout(LIMIT)
                    said = there.recv(4)
            except ConnectionRefusedError:
                time.sleep(0.05)
        process.terminate()
    assert said == b"SSH-"
