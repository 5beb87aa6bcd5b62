# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall time of a provision of 1 and of 8 boards, beside the same boards' own power-on-to-ssh, in one run on the lab.

`bench/provision.py [COUNT …]`, from the repository's root, with the lab up. First the play: from the start of
ansible-playbook to its end. Then the same boards, all their outlets cut and given power again at once, with nothing of
ours in the way: from the PDUs' own first "power on" in the console logs to the end of the last first ssh command. What
Ansible itself takes for a play that does nothing, which no boot can hide, is measured beside. Beside each measured
provision stands the simulated one (simulated_boots.py). For more boards than the lab has, it is brought up with a
larger file: `bench/storm.py --lab-boards 16 >FILE`, then lab_up with `-e lab_boards_file=FILE`.
"""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record, say, turns  # noqa: E402

from ansible_collections.hetero.compute.bench.simulated_boots import lab as simulated_lab  # noqa: E402
from ansible_collections.hetero.compute.bench.simulated_boots import running  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session, set_outlets  # noqa: E402

LAB = Path(".lab")
ANSIBLE = os.environ.get("ANSIBLE_PLAYBOOK", ".venv/bin/ansible-playbook")
PHASES = ("image", "power", "tftp", "nfs", "running")
PHASE = re.compile(r"^(\S+) +(board\d+) +(\w+) +.* ([\d.]+) s$", re.M)
#: Runs, of which the median counts: one boot differs from the next by some tenths of a second.
TIMES = {1: turns(3), 8: 1}
#: A run that takes longer has gone wrong (seconds); ten boards at once take a minute on two cores.
LIMIT = 300


def play(name, **extra):
    """(seconds, output) of a playbook; what it says of boards is shown as it comes."""
    argv = [ANSIBLE, f"hetero.compute.{name}"]
    for key, value in extra.items():
        argv += ["-e", f"{key}={value}"]
    say(" ".join(argv[1:]))
    start, lines = time.time(), []
    with subprocess.Popen(
        ["timeout", "--foreground", str(LIMIT), *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as done:
        for line in done.stdout:
            lines.append(line)
            if PHASE.match(line):
                say(f"  {line.rstrip()}")
    output = "".join(lines)
    if done.returncode:
        sys.exit(f"{' '.join(argv)} ended with {done.returncode}:\n{output}")
    return time.time() - start, output


def in_the_lab(lab, *words):
    """This very file, as a program inside the lab's namespace."""
    argv = ["nsenter", f"--net=/run/netns/{lab['namespace']}", sys.executable, __file__, *words]
    subprocess.run(argv, check=True, timeout=LIMIT + 10)


def answering(ip):
    """Wait for a banner on port 22 (inside the namespace).

    Who hangs up before a busy board's sshd has spoken, and comes back, keeps it busy: eight boards never got ready.
    """
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        try:
            with socket.create_connection((ip, 22), timeout=0.3) as connection:
                connection.settimeout(30)
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"{ip} does not answer within {LIMIT} s")


def switch(state, names):
    """Cut or give power to boards, all PDUs at once (inside the namespace); no proxy node and no Ansible takes part."""
    pdus = json.loads((LAB / "lab.json").read_text())["pdus"]

    def one(name):
        pdu, deadline = pdus[name], Deadline(60)
        wanted = {outlet: state for outlet, fed in pdu["outlets"].items() if fed["name"] in names}
        settings, secrets = {"host": pdu["address"]}, {key: pdu[key] for key in ("username", "password")}
        if wanted:
            with session(name, settings, secrets, deadline, folder) as opened:
                set_outlets(opened, wanted, deadline)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(pdus)) as pool:
        list(pool.map(one, pdus))


def own_boot(lab, instance, board):
    """(when its power came on, when the first ssh command ended)."""
    in_the_lab(lab, "--answering", board["ip"])
    subprocess.run(["ssh", "-F", LAB / "ssh" / instance, instance, "true"], check=True, timeout=60)
    ended = time.time()
    lines = (LAB / "consoles" / f"{board['name']}.log").read_text(errors="replace").splitlines()
    stamp = [line for line in lines if line.endswith("--- power on ---")][-1].split()[0]
    return datetime.fromisoformat(stamp).timestamp(), ended


def own_boots(lab, given):
    """{instance: (power on, end)} of the same boards, all at once."""
    names = [board["name"] for board in given.values()]
    in_the_lab(lab, "--switch", "off", *names)
    in_the_lab(lab, "--switch", "on", *names)
    say(f"own boots of {' '.join(names)}")
    own = {}
    with ThreadPoolExecutor(len(given)) as pool:
        waits = {pool.submit(own_boot, lab, *item): item[0] for item in given.items()}
        for wait in as_completed(waits):
            own[waits[wait]] = wait.result()
            on, ended = wait.result()
            say(f"  {waits[wait]:10} own boot {ended - on:32.1f} s")
    return own


def pair(lab, count):
    """(seconds of the provision, of the own boots, tasks of the play, seconds of the provision again, of status)."""
    instances = ["bench"] if count == 1 else [f"bench-{number}" for number in range(1, count + 1)]
    play("terminate_instance", instance="bench", force="true")
    wall, output = play("provision_instance", instance="bench", flavor="tp64.8x8", count=count)
    phases = {(match[1], match[3]): (match[2], float(match[4])) for match in PHASE.finditer(output)}
    boards = {board["name"]: board for board in lab["boards"]}
    given = {instance: boards[phases[instance, "running"][0]] for instance in instances}
    again, _output = play("provision_instance", instance="bench", flavor="tp64.8x8", count=count)
    looked, _output = play("status")
    own = own_boots(lab, given)
    play("terminate_instance", instance="bench")

    print(
        f"{'instance':10} {'board':8}"
        + "".join(f"{phase:>9}" for phase in PHASES)
        + f"{'own boot':>10}   (seconds; tftp, nfs, running: since power on)"
    )
    for instance, board in given.items():
        cells = "".join(
            f"{phases[instance, phase][1]:9.1f}" if (instance, phase) in phases else f"{'-':>9}" for phase in PHASES
        )
        on, ended = own[instance]
        print(f"{instance:10} {board['name']:8}{cells}{ended - on:10.1f}")
    boots = max(ended for _on, ended in own.values()) - min(on for on, _ended in own.values())
    tasks = len(re.findall("^TASK ", output, re.M))
    print(f"provision of {count}: {wall:.1f} s; own boots {boots:.1f} s; over them {wall - boots:.1f} s", flush=True)
    simulated = running(count, simulated_lab(os.cpu_count() or 1))[-1]
    print(f"simulated (bench/storm.py), without Ansible: {simulated:.1f} s", flush=True)
    return wall, boots, tasks, again, looked


def nothing(folder):
    """Seconds of a play without a task."""
    path = Path(folder) / "nothing.json"
    path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": []}]))
    start = time.time()
    subprocess.run([ANSIBLE, path], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
    return time.time() - start


def main(counts):
    lab, tasks = json.loads((LAB / "lab.json").read_text()), {}
    for count in counts:
        seen = [pair(lab, count) for _turn in range(TIMES.get(count, 1))]
        tasks[count] = seen[0][2]
        wall, boots, over = (statistics.median(values) for values in zip(*((w, b, w - b) for w, b, *_more in seen)))
        measured = f"{over:.1f} s ({wall:.1f} s beside {boots:.1f} s)"
        if count == 1:
            with tempfile.TemporaryDirectory() as folder:
                own = statistics.median(nothing(folder) for _turn in range(TIMES[1]))
            record("of it, a play of Ansible that does nothing", f"{own:.1f} s")
            record("provision of 1: over its own boot", measured, over <= 0.8)
            times = statistics.median(wall / boots for wall, boots, *_more in seen)
            record("provision of 1: times its own boot", f"{times:.2f}", times <= 1.12)
            again, looked = (statistics.median(turn[column] for turn in seen) for column in (3, 4))
            record("provision of 1 again, nothing to do", f"{again:.1f} s", again <= 1.5)
            if len(lab["boards"]) == 10:
                record("status of 10 boards", f"{looked:.1f} s", looked <= 1.2)
        elif count == 8:
            record("provision of 8: over 8 own boots at once", measured, over <= 2.0)
    if {1, 8} <= set(tasks):
        record("tasks of a provision, 8 boards beside 1", f"{tasks[8]} beside {tasks[1]}", tasks[8] == tasks[1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answering"]:
        answering(sys.argv[2])
    elif sys.argv[1:2] == ["--switch"]:
        switch(sys.argv[2], sys.argv[3:])
    else:
        main([int(count) for count in sys.argv[1:]] or [1, 8])
