# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall time of a provision beside the same boards' own power-on-to-ssh, in one run on the lab.

`bench/provision.py [COUNT]`, from the repository's root, with the lab up. First the play: from the start of
ansible-playbook to its end. Then the same boards, their outlets cut and given power again, with nothing of ours in
the way: from the PDU's own "power on" in the console log to the end of the first ssh command.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

LAB = Path(".lab")
ANSIBLE = os.environ.get("ANSIBLE_PLAYBOOK", ".venv/bin/ansible-playbook")
PHASES = ("image", "power", "tftp", "nfs", "running")


def play(name, **extra):
    argv = [ANSIBLE, f"hetero.compute.{name}"]
    for key, value in extra.items():
        argv += ["-e", f"{key}={value}"]
    start = time.time()
    done = subprocess.run(argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}")
    return time.time() - start, done.stdout


def answering(ip, seconds=300):
    """Wait for a banner on port 22 (run inside the lab's namespace)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with socket.create_connection((ip, 22), timeout=0.3) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"{ip} does not answer within {seconds} s")


def own_boot(lab, instance, board):
    """Seconds from power to the end of the first ssh command."""
    subprocess.run(
        ["nsenter", f"--net=/run/netns/{lab['namespace']}", sys.executable, __file__, "--answering", board["ip"]],
        check=True,
        timeout=310,
    )
    subprocess.run(["ssh", "-F", LAB / "ssh" / instance, instance, "true"], check=True, timeout=60)
    ended = time.time()
    lines = (LAB / "consoles" / f"{board['name']}.log").read_text(errors="replace").splitlines()
    stamp = [line for line in lines if line.endswith("--- power on ---")][-1].split()[0]
    return ended - datetime.fromisoformat(stamp).timestamp()


def switch(lab, boards, state):
    """Every outlet of these boards, one PDU after the other, by the collection's own module on the proxy."""
    for name, pdu in lab["pdus"].items():
        outlets = [
            outlet for outlet, fed in pdu["outlets"].items() if fed["name"] in {board["name"] for board in boards}
        ]
        if outlets:
            arguments = json.dumps({"pdu": name, "outlets": outlets, "state": state})
            argv = [
                ANSIBLE.replace("ansible-playbook", "ansible"),
                "proxy1",
                "-m",
                "hetero.compute.pdu_power",
                "-a",
                arguments,
            ]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=120)


def main(count):
    lab = json.loads((LAB / "lab.json").read_text())
    instances = ["bench"] if count == 1 else [f"bench-{number}" for number in range(1, count + 1)]
    play("terminate_instance", instance="bench", force="true")
    wall, output = play("provision_instance", instance="bench", flavor="tp64.8x8", count=count)
    phases = {
        (match[1], match[3]): (match[2], float(match[4]))
        for match in re.finditer(r"^(\S+) +(board\d+) +(\w+) +.* ([\d.]+) s$", output, re.M)
    }
    boards = {board["name"]: board for board in lab["boards"]}
    given = {instance: boards[phases[instance, "running"][0]] for instance in instances}

    switch(lab, given.values(), "off")
    with ThreadPoolExecutor(count) as pool:
        switch(lab, given.values(), "on")
        own = dict(zip(instances, pool.map(lambda item: own_boot(lab, *item), given.items())))

    print(
        f"{'instance':10} {'board':8}"
        + "".join(f"{phase:>9}" for phase in PHASES)
        + f"{'own boot':>10}   (seconds; tftp, nfs, running: since power on)"
    )
    for instance, board in given.items():
        cells = "".join(
            f"{phases[instance, phase][1]:9.1f}" if (instance, phase) in phases else f"{'-':>9}" for phase in PHASES
        )
        print(f"{instance:10} {board['name']:8}{cells}{own[instance]:10.1f}")
    slowest, tasks = max(own.values()), len(re.findall("^TASK ", output, re.M))
    print(
        f"provision of {count}: {wall:.1f} s; slowest own boot {slowest:.1f} s; "
        f"over it {wall - slowest:.1f} s, {wall / slowest:.2f} times; tasks in the play: {tasks}"
    )
    play("terminate_instance", instance="bench")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answering"]:
        answering(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
