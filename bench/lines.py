# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many lines people read: of a request, asked again, refused, of a status; by Ansible's own callback and by ours.

`bench/lines.py`, from the repository's root: a node that is a folder (tests/unit/plays), with ten boards that need no
time to boot. What is counted goes through a pipe, as into a log. What is said only because a task lasts is left out:
on a busy machine there is more of it. `bench/lines.py FILE` counts the lines of a log besides, such as that of
`make demo > FILE 2>&1`, whose boards are the lab's. With QUICK=1 only what needs no boot is counted.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from goals import QUICK, record

sys.path[:0] = ["build", "tests"]
BOARDS = 10
ASKED = {"instance": "jackie", "flavor": "tp64.8x8"}
#: (what it is called here, playbook, its words, what it ends with), in this order.
SAID = (
    ("a request", "provision_instance", ASKED, 0),
    ("the same, asked again", "provision_instance", ASKED, 0),
    ("status of ten boards", "status", {}, 0),
    ("a request that nothing fits", "provision_instance", {"instance": "bob", "flavor": "tgx.8x8"}, 2),
    ("a request with a slip in it", "provision_instance", {**ASKED, "hour": "2"}, 2),
    ("its end", "terminate_instance", {"instance": "jackie"}, 0),
)
#: What nobody has to have a board for.
OF_NOBODY = ("status of ten boards", "a request with a slip in it")
#: What calls them so, and the callback: for each of them, what is there is made anew.
CALLBACKS = {"Ansible's": "ansible.builtin.default", "quiet": "hetero.compute.quiet"}
#: How a line ends that is there because a task lasts.
LASTS = re.compile(r" s so far$")
#: What is promised of ours, and the most lines that it allows.
PROMISED = {
    "the same, asked again": ("lines of a request, asked again", 3),
    "a request that nothing fits": ("lines of a request that nothing fits", 3),
    "a request with a slip in it": ("lines of a request with a slip in it", 3),
}


def counted():
    return [one for one in SAID if not QUICK or one[0] in OF_NOBODY]


def said(folder, callback):
    """{what it is called: what was printed}, on a node of its own."""
    from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy

    folder.mkdir()
    folder.chmod(0o755)
    proxy, seen = Proxy(folder / "p1", 1, boards=BOARDS), {}
    try:
        plays = Playbooks(folder, ["p1"])
        plays.env["ANSIBLE_STDOUT_CALLBACK"] = callback
        for what, playbook, words, ends in counted():
            rc, output = plays.play(playbook, **words)
            if rc != ends:
                sys.exit(output)
            seen[what] = output
    finally:
        proxy.remove()
    return seen


def counts(ansibles, ours):
    """How many lines each has, but for those of tasks that last, for which ours says the names of plays and tasks."""
    names = set(re.findall(r"^(?:PLAY|TASK) \[(.*)\] \**$", ansibles, re.MULTILINE))
    anyway = [[line for line in said.splitlines() if not LASTS.search(line)] for said in (ansibles, ours)]
    return len(anyway[0]), len([line for line in anyway[1] if line not in names])


def main(folder, log=None):
    os.environ["HETERO_BUILDS"] = str(folder / "builds")
    (folder / "builds").mkdir()
    found = [said(folder / str(number), callback) for number, callback in enumerate(CALLBACKS.values())]
    print(f"{'lines printed':32}" + "".join(f"{name:>12}" for name in CALLBACKS))
    for what, *_asked in counted():
        ansibles, ours = counts(*(one[what] for one in found))
        print(f"{what:32}{ansibles:12}{ours:12}", flush=True)
        if what in PROMISED:
            goal, most = PROMISED[what]
            record(goal, f"{ours} (Ansible's own: {ansibles})", ours <= most)
    if log:
        print(f"{log}: {len(Path(log).read_text(encoding='utf-8').splitlines())} lines")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        main(Path(scratch), *sys.argv[1:2])
