# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook watch. If it fails, who asked in AWX, or in another shell, does not see what becomes of an instance."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


#: Events that are written one after another, each once the one before it is told. Asked for each 1.5 s, as the node was
#: once, they take half a minute at least.
MANY, AT_MOST = 20, 25.0


def test_boots_that_others_began_are_followed_to_their_end_on_all_nodes(proxies):
    folders, plays = proxies
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, count=3)
    assert rc == 0, output
    with ExitStack() as opened:
        stores = {name: opened.enter_context(Store(folder.state_db)) for name, folder in folders.items()}
        mine = [(store, claim.board, claim.instance) for store in stores.values() for claim in store.claims()]
        assert len({store for store, *_rest in mine}) == 2
        for store, board, _name in mine:
            store.move(board, "booting")
            store.event(board, "power", "off → on")
        (here, first, _name), (there, second, other) = mine[0], mine[-1]
        watch, said, took, number, written = plays.start("watch", instance="jackie"), [], [], 0, 0.0
        for line in watch.stdout:
            said.append(line)
            took += [time.monotonic() - written] if "piece" in line else []
            if "piece" in line or ("off → on" in line and sum("off → on" in one for one in said) == len(mine)):
                written, number = time.monotonic(), number + 1
                if number <= MANY:
                    here.event(first, "tftp", f"piece {number}")
                else:
                    for store, board, _name in mine:
                        store.move(board, "running")
        rc, output = watch.wait(60), "".join(said)
        assert (rc, changed(output)) == (0, 0), output
        assert [line.split()[-1] for line in said if "piece" in line] == [str(one + 1) for one in range(MANY)], output
        assert output.count("off → on") == len(mine)
        assert sum(took) < AT_MOST, took
        assert all(f"\n{name} is running on board{board}\n" in output for _store, board, name in mine), output
        there.move(second, "error", "stalled at tftp")
        rc, output = plays.play("watch", instance="jackie")
        assert rc == 2
        assert f"{other} on board{second}: error: stalled at tftp\n" in output
        there.move(second, "shutting down")
        there.move(second, "power off", "stopped")
        rc, output = plays.play("watch", instance="jackie", force=True)
        assert rc == 2
        start = f"ansible-playbook hetero.compute.start_instance -e instance={other} -e force=true brings it up"
        assert f"{other} on board{second}: power off: stopped: {start}" in output


def test_a_watch_ends_with_ctrl_c(proxies):
    """Lost: a terminal."""
    folders, plays = proxies
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, proxy="p1")
    assert rc == 0, output
    with Store(folders["p1"].state_db) as store:
        store.move(0, "shutting down")
        store.event(0, "power", "on → off")
    watch = plays.start("watch", instance="jackie")
    first_line(watch, "jackie ")
    # not while the line is on its way to Ansible's log: it would wait for whom it has ended (a lock of its queue)
    while not folders["p1"].processes():
        time.sleep(0.05)
    watch.send_signal(signal.SIGINT)
    rc, _output = plays.end(watch, 600)
    assert rc != 0


@pytest.mark.parametrize(
    "callback", ["hetero.compute.quiet", pytest.param("ansible.builtin.default", marks=pytest.mark.long)]
)
def test_a_watch_whose_reader_goes_has_not_seen_it_run(proxies, callback):
    """Lost: a script's next step, which has no board: `set -o pipefail; … watch … | head -1 && use it`."""
    folders, plays = proxies
    plays.env["ANSIBLE_STDOUT_CALLBACK"] = callback
    with Store(folders["p1"].state_db, "jo pid 7") as store:
        store.claim("jackie", ["jackie"], ClaimTerms("jo", {"name": FLAVOR}, "debian", KEY), [0])
        store.move(0, "booting")
        store.event(0, "power", "off → on")
        watch = plays.start("watch", instance="jackie")
        first_line(watch, "jackie ")
        watch.stdout.close()
        assert watch.wait(600) not in (0, None)


def first_line(play, begin):
    """Read what a play says until a line begins so."""
    for line in play.stdout:
        if line.startswith(begin):
            return
