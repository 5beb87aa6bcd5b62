# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that goes silent while a play follows what it does there. If these fail, a power cut of a proxy leaves a user,
or a job of AWX, with a play that hangs for hours and says nothing.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
REQUEST = dict(instance="jackie", flavor=FLAVOR)


@pytest.fixture
def followed(proxies):
    """(p1, the playbooks, a play whose board has its power and boots on)."""
    folders, plays = proxies
    proxy = folders["p1"]
    path = proxy.folder / "etc" / "hetero" / "proxy.json"
    config = json.loads(path.read_text())
    config["boards"]["0"]["fake"]["running"] = 8.0
    path.write_text(json.dumps(config))
    # a third of how long a node may be silent
    plays.env["ANSIBLE_TIMEOUT"] = "4"
    process = plays.start("provision_instance", **REQUEST)
    for line in process.stdout:
        if "off → on" in line:
            break
    return proxy, plays, process


@pytest.fixture
def booting(followed):
    """The same, seen by p1 alone: p1 is silent."""
    os.mkfifo(followed[0].folder / "silent")
    return followed


def test_one_that_answers_again_is_followed_on(booting):
    """Lost: the way in to a board that runs, to a connection that broke while it booted."""
    proxy, plays, process = booting
    (proxy.folder / "silent_once").touch()
    rc, output = plays.end(process)
    assert rc == 0, output
    assert "the node has said nothing for 12 s: it is asked by a new connection" in output
    assert "running" in output
    assert changed_nothing(plays)


def test_one_whose_connection_breaks_is_followed_on(followed):
    """Lost: the way in to a board that runs, to a proxy that was too busy for ssh's keep-alives."""
    proxy, plays, process = followed
    (proxy.folder / "breaks").write_text("3")
    rc, output = plays.end(process)
    assert rc == 0, output
    assert "the connection to the node broke: it is asked by a new one" in output
    assert (proxy.folder / "breaks").read_text() == "0"
    assert changed_nothing(plays)


def test_one_that_stays_silent_ends_the_play_with_the_way_on(booting):
    """Lost: hours, and the next user's board, to a play that waits for a proxy without power."""
    proxy, plays, process = booting
    rc, output = plays.end(process)
    assert rc != 0
    assert "the node does not answer any more" in output
    assert ".." not in output.split("where it was", 1)[1][:2]
    assert "Run this again: it waits for that, or goes on where it was." in output
    assert "Traceback" not in output
    os.unlink(proxy.folder / "silent")
    rc, output = plays.play("provision_instance", **REQUEST)
    assert rc == 0, output
    assert changed_nothing(plays)


def test_one_that_cannot_be_reached_ends_the_play_with_the_way_on(booting):
    """Lost: what goes on there and what to do, to "failed to connect"."""
    proxy, plays, process = booting
    (proxy.folder / "down").touch()
    os.unlink(proxy.folder / "silent")
    rc, output = plays.end(process)
    assert rc != 0
    assert "the node cannot be reached any more: " in output, output
    assert "No route to host" in output
    assert "Run this again: it waits for that, or goes on where it was." in output


def test_one_that_was_restarted_meanwhile_says_so(booting):
    """Lost: what to do, where the file that the play followed is gone with its node's power."""
    proxy, plays, process = booting
    (proxy.folder / "silent_once").touch()
    for job in (proxy.folder / "run" / "hetero" / "jobs").glob("job-*"):
        os.unlink(job)
    rc, output = plays.end(process)
    assert rc != 0
    assert "or its node was restarted" in output
    assert "Run this again." in output


def changed_nothing(plays):
    rc, output = plays.play("provision_instance", **REQUEST)
    return rc == 0 and " changed=0 " in output
