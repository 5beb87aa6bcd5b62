# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""extensions/ci/board on a proxy node that is a folder: what a CI job gets, and what is left of it.

If these fail, a board stays with a job that is over, or a team looks for a fault of its code that is a board's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, PROJECT, Playbooks, Proxy
from ansible_collections.hetero.compute.tests.unit.plays.test_several_owners import take

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
BOARD = PROJECT / "extensions" / "ci" / "board"
#: Seconds in which a job ends.
LIMIT = 900


class Site:
    """One proxy node with two boards, and a CI's machine that knows it."""

    def __init__(self, folder, proxy):
        self.folder, self.proxy, self.state = folder, proxy, folder / "state"
        self.env = dict(Playbooks(folder, ["p1"]).env, HETERO_STATE=str(self.state), HETERO_WAIT="0")
        self.env.update(
            HETERO_INVENTORY=str(folder / "inventory.json"),
            HETERO_ANSIBLE_PLAYBOOK=str(Path(sys.executable).parent / "ansible-playbook"),
            CI_JOB_ID="4711",
            CI_SERVER_HOST="gitlab.example.com",
        )

    def start(self, *words, program=BOARD, **env):
        return subprocess.Popen(
            [str(program), *words],
            cwd=self.folder,
            env=dict(self.env, **env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, **more):
        """(exit code, standard output, standard error)."""
        process = self.start(*words, **more)
        out, said = process.communicate(timeout=LIMIT)
        return process.returncode, out, said

    def claims(self):
        """{instance: owner}."""
        with Store(self.proxy.state_db) as store:
            return {claim.instance: claim.owner for claim in store.claims()}

    def stall(self, phase):
        """Have no board reach this phase of its boot any more; None: have all."""
        path = self.proxy.folder / "etc" / "hetero" / "proxy.json"
        config = json.loads(path.read_text())
        for board in config["boards"].values():
            board["fake"] = {"tftp": 0.0, "nfs": 0.0, "running": 0.0, **({"stall": phase} if phase else {})}
        path.write_text(json.dumps(config))


@pytest.fixture
def site(tmp_path):
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    try:
        yield Site(tmp_path, proxy)
    finally:
        proxy.remove()


@pytest.mark.long
def test_a_job_and_how_it_may_end(site):
    """Lost: the board; or an afternoon with code that never ran, as its board's kernel never asked for a root."""
    command = 'env | grep ^HETERO_ | sort; ssh -G -F "$HETERO_SSH_CONFIG" "$HETERO_INSTANCE"; exit 7'
    rc, out, said = site.run("run", "--flavor", FLAVOR, "--", "sh", "-c", command)
    assert rc == 7, said
    (name,) = re.findall(r"^HETERO_INSTANCE=(gitlab-4711-[0-9a-f]{8})$", out, re.M)
    (address,) = re.findall(r"^HETERO_ADDRESS=(10\.0\.1\.[12])$", out, re.M)
    assert f"\nhostname {address}\n" in out
    assert "knownhostscommand /usr/bin/echo" in out.lower()
    assert f"{name} is running on board" in said
    assert "lease: " in said
    assert (site.claims(), list(site.state.iterdir())) == ({}, [])
    site.stall("nfs")
    touched, report = site.folder / "touched", site.folder / "report.json"
    words = ("-e", "attempts=1", "-e", "hetero_boot_timeout=2", "--report", str(report), "--", "touch", str(touched))
    rc, _out, said = site.run("run", "--flavor", FLAVOR, *words)
    assert (rc, touched.exists()) == (113, False), said
    told = json.loads(report.read_text())
    assert (told["ended"], told["blame"], "debian does not boot" in told["why"]) == ("boot", "image", True), told
    assert f"board: the board did not come up (fault of: image): {told['why']}\n" in said
    assert site.claims() == {}


@pytest.mark.long
def test_who_gets_no_board(site):
    """Lost: whether to run the job again later, to mend its file, or to tell who runs the site."""
    rc, _out, said = site.run("run", "--flavor", "tp64.9x9", "--", "true")
    assert (rc, "tp64.9x9 is no flavor" in said) == (111, True), said
    rc, _out, said = site.run("run", "--flavor", FLAVOR, "--image", "nope", "--", "true")
    assert (rc, "board: the request is wrong: " in said, "no image nope" in said) == (111, True, True), said
    take(site.proxy, "full-1", "full-2")
    rc, _out, said = site.run("run", "--flavor", FLAVOR, "--", "true")
    assert (rc, "board: no node was free in time: " in said) == (112, True), said
    assert list(site.state.iterdir()) == []
    (site.proxy.folder / "down").touch()
    rc, _out, said = site.run("run", "--flavor", FLAVOR, "--", "true")
    assert (rc, "board: a node cannot be reached: " in said, "No route to host" in said) == (114, True, True), said
    (site.proxy.folder / "down").unlink()
    assert sorted(site.claims()) == ["full-1", "full-2"]


@pytest.mark.long
def test_another_owners_instance_of_that_name_stays(site):
    """Lost: somebody's board, to a job that has its name by chance."""
    take(site.proxy, "mine")
    rc, _out, said = site.run("run", "--flavor", FLAVOR, "--name", "mine", "--", "true")
    assert (rc, "belongs to " in said) == (111, True), said
    assert site.run("give-back", "--name", "mine")[0] == 0
    assert sorted(site.claims()) == ["mine"]


@pytest.mark.long
def test_another_machines_board_of_that_name_and_owner_stays(site):
    """Lost: the board below a job's tests, to a second job with this name that is cancelled or gives back."""
    words = ("--flavor", FLAVOR, "--name", "mine")
    over = site.folder / "over"
    command = f"echo runs; while [ ! -e {over} ]; do sleep 0.1; done"
    first = site.start("run", *words, "--", "sh", "-c", command)
    assert first.stdout.readline() == "runs\n"
    # as of another machine, whose jobs' keys are its own
    elsewhere = dict(HETERO_STATE=str(site.folder / "elsewhere"))
    rc, _out, said = site.run("run", *words, "--", "true", **elsewhere)
    assert (rc, "another ssh key" in said) == (111, True), said
    rc, _out, said = site.run("take", *words, **elsewhere)
    assert (rc, "another ssh key" in said) == (111, True), said
    assert site.run("give-back", "--name", "mine", **elsewhere)[0] == 0
    second = site.start("run", *words, "--", "true", **elsewhere)
    key = site.folder / "elsewhere" / "mine" / "key.pub"
    until = time.monotonic() + LIMIT
    while not (key.exists() and key.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    second.send_signal(signal.SIGTERM)
    _out, said = second.communicate(timeout=LIMIT)
    assert second.returncode == 128 + signal.SIGTERM, said
    why = "mine was not given back: mine: has another ssh key than only_key (SHA256:"
    assert (why in said, "Its lease ends it" in said) == (True, False), said
    assert (list(site.claims()), list((site.folder / "elsewhere").iterdir())) == (["mine"], [])
    over.touch()
    _out, said = first.communicate(timeout=LIMIT)
    assert (first.returncode, site.claims()) == (0, {}), said
