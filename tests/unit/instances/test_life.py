# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of an instance in a real container. If these fail, a user gets GPUs of another, loses an own one by a restart,
is told that runs what does not, or leaves something behind.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils.accelerator_host import instances
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES

OWN, OTHERS = ADDRESSES[:2], ADDRESSES[2:]


def texts(result):
    return [line["text"] for line in result["lines"]]


def test_from_a_request_to_nothing_left(site):
    """All of a life: dry, made, again, rebooted, stopped, started, ended; its two GPUs are open and the others closed."""
    would = site.claim(check=True)
    assert (would["changed"], site.info()["instances"]) == (True, [])
    assert site.claim()["new"] == ["ml-8"]
    first = site.up()
    (mine,) = first["instances"]
    assert (mine["state"], mine["gpus"], mine["isolation"]) == ("running", OWN, "cgroup"), first
    assert texts(first)[-3:] == [
        "container started",
        f"2 of 4 free fermi GPUs: {' '.join(OWN)} open; the other 2 proven closed",
        "ssh answers",
    ]
    assert mine["known_hosts"].startswith("10.0.81.10 ssh-ed25519 ")
    assert site.can_open() == OWN
    again = site.up()
    assert (again["changed"], again["lines"], again["instances"][0]["state"]) == (False, [], "running"), again
    (site.lxcpath / "ml-8" / "rootfs" / "root" / "kept").write_text("data")
    pid = site.container().init_pid
    site.do(instances.rebooted)
    assert site.container().init_pid not in (pid, None)
    assert site.can_open() == OWN
    assert site.do(instances.stopped)["changed"] is True
    assert site.do(instances.stopped)["changed"] is False
    assert (site.container().running, site.info()["instances"][0]["state"]) == (False, "stopped")
    assert [gpu["holder"] for gpu in site.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    assert site.up()["changed"] is True
    assert site.can_open() == OWN
    assert (site.lxcpath / "ml-8" / "rootfs" / "root" / "kept").read_text() == "data"
    assert site.do(instances.absent, check=True)["changed"] is True
    assert site.container().running
    gone = site.do(instances.absent)
    assert texts(gone) == [f"container and root removed; free again: {' '.join(OWN)}"]
    assert site.nothing_is_left()
    assert site.do(instances.absent)["changed"] is False
