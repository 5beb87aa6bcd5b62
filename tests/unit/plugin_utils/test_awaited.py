# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is waited for while a module works. If these fail, people do not know which PDU, image or instance a play hangs
at, or read a password there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds.host_moves import STEPS
from ansible_collections.hetero.compute.plugins.plugin_utils import awaited

MODULES = Path(__file__).resolve().parents[3] / "plugins" / "modules"
PDU = {"pdu": "pdu-a", "outlets": [3]}


@pytest.mark.parametrize(
    ("module", "given", "what"),
    [
        ("board_info", {"remove": ["x"]}, "p1: look at its boards"),
        ("instance", {"instance": "jackie"}, "p1: start of jackie"),
        ("instance", {"instance": "jackie", "state": "rebuilt"}, "p1: rebuild of jackie"),
        ("image_store", {"name": "debian-12", "source": "/srv/x.tar"}, "p1: import of debian-12"),
        ("image_store", {"name": "debian-12", "state": "absent"}, "p1: removal of debian-12"),
        ("image_store", {"state": "collected"}, "p1: look at the images"),
        ("instance_copy", {"instance": "ml-8", "step": "taken"}, "p1: comparison of the copy of ml-8"),
        ("pdu_info", {"pdu": "pdu-a"}, "p1: look at PDU pdu-a"),
        ("pdu_info", {"host": "10.0.100.1"}, "p1: look at PDU 10.0.100.1"),
        ("pdu_power", {**PDU, "state": "off"}, "p1: power off of outlet 3 at PDU pdu-a"),
        ("pdu_power", {**PDU, "state": False}, "p1: power off of outlet 3 at PDU pdu-a"),
        ("pdu_power", {**PDU, "state": True, "outlets": "3, 4"}, "p1: power on of outlets 3, 4 at PDU pdu-a"),
        (
            "pdu_power",
            {**PDU, "state": "cycled", "outlets": list(range(9))},
            "p1: power cycle of outlets 0, 1, 2, 3, 4 and more at PDU pdu-a",
        ),
        ("pdu_power", {"host": "10.0.100.1", "outlets": 3}, "p1: look at PDU 10.0.100.1"),
        ("proxy_check_info", {"stage": "services"}, "p1: test of its services"),
        ("host_check_info", {}, "p1: look at the machine"),
        ("host_check_info", {"stage": "no such stage"}, "p1: look at the machine"),
        ("cgroup_info", {"container": "ml-8"}, "p1: device rules of ml-8"),
        ("libvirt_hostdev", {"domain": "vm0", "devices": ["0000:01:00.0"]}, "p1: way into vm0 of 0000:01:00.0"),
        ("libvirt_hostdev", {"domain": "vm0", "devices": ["a"], "state": "detached"}, "p1: way out of vm0 of a"),
        ("node_files", {"files": [{"path": "/etc/x"}, {"path": "/y"}]}, "p1: look at files /etc/x, /y"),
        ("node_files", {"folders": {"/srv": "0755"}}, "p1: look at its files and services"),
        ("node_files", {"files": "no list"}, "p1: look at its files and services"),
        ("site_files", {"source": "netbox"}, "p1: reading of netbox"),
        ("site_files", {"file": "/x.yml"}, "p1: writing of /x.yml"),
        ("host_reconcile", {}, "p1: host_reconcile, which looks at containers and guests and mends what is safe,"),
        (
            "board_reconcile",
            {"adopt": [], "remove": None},
            "p1: board_reconcile, which looks at boards and mends what is safe,",
        ),
        (
            "board_reconcile",
            {"adopt": ["eve"], "remove": ["board7", "board8"]},
            "p1: board_reconcile, which adopts eve and removes what lies there of board7, board8,",
        ),
        (
            "board_reconcile",
            {"forget": list("abcdefg")},
            "p1: board_reconcile, which ends the claims of a, b, c, d, e and more,",
        ),
        ("no_words_for_it", {}, "p1: no_words_for_it"),
    ],
)
def test_what_is_waited_for(module, given, what):
    """Lost: at what a play hangs."""
    assert awaited.awaited("p1", module, given) == what


def test_each_step_of_a_move_says_what_it_does():
    """Lost: whether a root of 500 GB is still compared, or its host hangs."""
    assert set(awaited.COPIES) == set(STEPS)


def test_there_are_words_for_modules_that_are_there():
    """Lost: the words, where a module got another name."""
    assert {*awaited.WORDS, *awaited.LASTING} <= {path.stem for path in MODULES.glob("*.py")}


SECRET = "hunter2"
HELD = {
    "password": SECRET,
    "community": SECRET,
    "token": SECRET,
    "secret": SECRET,
    "content": SECRET,
    "user_data": SECRET,
    "url": f"https://{SECRET}@example.org",
}


@pytest.mark.parametrize("module", sorted([*awaited.WORDS, *awaited.LASTING]))
def test_no_secret_is_told(module):
    """Lost: the password of a PDU, to the terminal and log of each play that waits for it. A task's `no_log` hides its
    result only.
    """
    named = dict(pdu="a", host="b", name="c", instance="d", outlets=[1], source="s", file="f")
    given = dict(HELD, **named, files=[dict(HELD, path="p")])
    assert SECRET not in awaited.awaited("p1", module, given)


def test_words_of_arguments_cannot_add_a_line():
    """Lost: which lines are the collection's own: a name in a table of others may hold a line's end."""
    told = awaited.awaited("p1", "pdu_info", {"pdu": "a\np2: all is well\x1b[2J"})
    assert told.isprintable()
