# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long status, a provision and the end of an instance take where a site has 1, 10 and 100 proxy nodes.

`bench/owners.py`, from the repository's root: nodes that are folders (tests/unit/plays), 50 ms away, 25 asked at a
time; their boards need no time to boot. Sizes by turns; medians.

All nodes work on the processors of this machine, beside the controller. So status is measured twice: with nodes that do
their work, and with nodes whose answer was written down before, which is the controller's own part, and is measured for
30 boards a node as well. What Ansible itself needs for so many nodes, of a task that does nothing, stands beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from goals import record, say

sys.path[:0] = ["build", "tests"]
LATENCY, FORKS, SIZES, TIMES = 0.05, 25, (1, 10, 100), 2
VERBS = (
    ("status", {}),
    ("provision_instance", {"instance": "jackie", "flavor": "tp64.8x8"}),
    ("terminate_instance", {"instance": "jackie"}),
)

ASKING, NOTHING = "status, the controller's part", "a task that does nothing"
MANY, BOARDS = "status of 30 boards a node, the controller's part", 30
PLAY = [{"hosts": "proxies", "gather_facts": False, "tasks": [{"ansible.builtin.raw": "true"}]}]


def main(folder):
    os.environ["HETERO_BUILDS"] = str(folder / "builds")
    (folder / "builds").mkdir()
    from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy

    names, made = [f"p{number}" for number in range(1, SIZES[-1] + 1)], []
    try:
        for number, name in enumerate(names, 1):
            made.append(Proxy(folder / name, number))
        plays = {}
        for size in SIZES:
            (folder / f"of-{size}").mkdir()
            plays[size] = Playbooks(folder / f"of-{size}", names[:size])
            plays[size].alone()
            plays[size].env.update(PROXY_ROOTS=str(folder), PROXY_LATENCY=str(LATENCY), ANSIBLE_FORKS=str(FORKS))
        seen = {(verb, size): [] for verb, _given in VERBS for size in SIZES}
        for turn in range(TIMES + 1):
            for size in SIZES:
                for verb, given in VERBS:
                    took = timed(plays[size], verb, given)
                    if turn:  # the first has the nodes write down what the next ones find
                        seen[verb, size].append(took)
        answer = written_down(plays[1], names[0])
        (folder / "nothing.json").write_text(json.dumps(PLAY))
        for what, boards in ((ASKING, None), (MANY, BOARDS)):
            for name in names:
                (folder / name / "says-board_info").write_text(json.dumps(of_boards(answer, boards)))
            for _turn in range(TIMES + 1):
                for size in SIZES:
                    seen.setdefault((what, size), []).append(timed(plays[size], "status", {}))
                    if what == ASKING:
                        seen.setdefault((NOTHING, size), []).append(timed(plays[size], folder / "nothing.json", {}))
    finally:
        for proxy in made:
            proxy.remove()
    for verb in [verb for verb, _given in VERBS] + [ASKING, MANY, NOTHING]:
        medians = {size: statistics.median(seen[verb, size]) for size in SIZES}
        say(f"{verb}: " + ", ".join(f"{size} owners {took:.1f} s" for size, took in medians.items()))
        times = medians[SIZES[-1]] / medians[1]
        if verb == "status":
            record("100 owners on this machine asked, times one", f"{times:.1f}")
        elif verb == ASKING:
            record("100 owners asked, times one", f"{times:.1f}", times <= 2.5)
        elif verb == MANY:
            record("100 owners of 30 boards each asked, seconds", f"{medians[SIZES[-1]]:.1f}")
        elif verb == NOTHING:
            record("100 owners, a task of Ansible that does nothing, times one", f"{times:.1f}")


def of_boards(answer, number):
    """An answer with so many boards, all of which are as its own are; None for its own."""
    own = answer["boards"]
    boards = [dict(own[one % len(own)], id=one, name=f"board{one}") for one in range(number or 0)]
    return dict(answer, boards=boards or own)


def written_down(plays, name):
    """What the node answers to a status: its module's result."""
    rc, output = plays.play("status", json="true")
    if rc:
        sys.exit(output)
    (line,) = (line for line in output.splitlines() if line.startswith("{"))
    snapshot = json.loads(line)["proxies"][name]
    return {key: snapshot[key] for key in ("boards", "claims", "roots")}


def timed(plays, verb, given):
    began = time.perf_counter()
    is_file = isinstance(verb, Path)
    rc, output = plays.end(plays.start_file(str(verb))) if is_file else plays.play(verb, **given)
    if rc:
        sys.exit(output)
    return time.perf_counter() - began


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        main(Path(folder))
