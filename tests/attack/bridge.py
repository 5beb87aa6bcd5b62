# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards' bridge outside of any board: a neighbour that sends what it likes, machines of any address and MAC."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager

from labs import ROOT


def board(lab, number):
    return next(board for board in lab.description["boards"] if board["id"] == number)


def inside(lab):
    return ["nsenter", f"--net=/run/netns/{lab.description['namespace']}"]


@contextmanager
def neighbour(lab, verb, **options):
    """neighbour.py at its work; yields, and ends it. Its last word is in the list that is yielded."""
    argv = [*inside(lab), "/usr/bin/python3", ROOT / "tests" / "attack" / "neighbour.py", verb, json.dumps(options)]
    # unbuffered: its last word may have come with its first one, and `communicate` knows of no buffer
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        done = []
        try:
            assert json.loads(process.stdout.readline())["ready"]
            yield done
        finally:
            output, _nothing = process.communicate(b"end\n", timeout=600)
        done.append(json.loads(output.splitlines()[-1])["done"])


@contextmanager
def machine(lab, name, address, mac):
    """A machine on the boards' bridge with an address and a MAC of its choice; yields words to run something there."""
    with subprocess.Popen([*inside(lab), "unshare", "--net", "sleep", "600"]) as holder:
        there = ["nsenter", "-t", str(holder.pid), "--net"]
        try:
            # It begins in the namespace of the tests, and is then in the lab's, before it has one of its own.
            others = {link("self"), lab.inside("readlink", "/proc/self/ns/net").stdout}
            while link(holder.pid) in others:
                time.sleep(0.01)
            lab.inside("ip", "link", "add", f"{name}0", *f"type veth peer name {name}1 netns {holder.pid}".split())
            lab.inside("ip", "link", "set", f"{name}0", "master", "boards", "up")
            for words in (
                f"link set {name}1 address {mac}",
                f"addr add {address}/24 dev {name}1",
                f"link set {name}1 up",
            ):
                subprocess.run([*there, "ip", *words.split()], check=True)
            yield there
        finally:
            # A namespace goes some time after its last process, and answers for its address until then.
            lab.inside("ip", "link", "delete", f"{name}0", check=False)
            holder.kill()


def link(pid):
    return subprocess.run(["readlink", f"/proc/{pid}/ns/net"], check=True, stdout=subprocess.PIPE, text=True).stdout
