# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of LXC, and what a person is told where it cannot be had.

Tests hypervisors/lxc/liblxc_calls.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import liblxc, liblxc_calls
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import (
    Container,
    containers,
    running,
)


def monitor_of(box):
    """The process of LXC that keeps a container."""
    return int(Path(f"/proc/{box.init_pid}/status").read_text().split("PPid:")[1].split()[0])


def test_it_is_as_lxc_says(boxes, monkeypatch):
    """Everything else rests on this: state, init, root, ids, and rules that the kernel has."""
    box = boxes.make(unprivileged=True, start=False)
    assert (box.state, box.init_pid, box.running, box.defined) == ("STOPPED", None, False, True)
    assert running(box.lxcpath) == []
    box.start(30)
    info = ["lxc-info", "-P", box.lxcpath, "-n", box.name, "-H"]
    said = [subprocess.check_output([*info, option], text=True).strip() for option in ("-s", "-p")]
    assert said == [box.state, str(box.init_pid)]
    assert box.root == f"{box.folder}/rootfs"
    assert box.unprivileged
    assert (box.root_owner, box.host_id("g", 44), box.host_id("u", 70000)) == ((200000, 200000), 200044, 200000)
    assert box.running_item("lxc.uts.name") == box.get("lxc.uts.name") == box.name
    assert containers(box.lxcpath) == running(box.lxcpath) == [box.name]
    before = monitor_of(box)
    box.reboot(30)
    assert monitor_of(box) != before
    box.shutdown(20)
    box.shutdown(20)
    assert box.state == "STOPPED"
    box.destroy()
    assert not box.defined
    assert not os.path.exists(box.folder)
    box.destroy()


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("{0}/plain", "{0}/plain"),
        ("dir:{0}/plain", "{0}/plain"),
        ("btrfs:{0}/plain", "{0}/plain"),
        ("dir:{0}/with:colon", "{0}/with:colon"),
        ("overlay:{0}/lower:{0}/upper", "{0}/upper"),
        ("overlayfs:{0}/lower:{0}/plain:{0}/upper", "{0}/upper"),
        ("lvm:{0}/device", "{0}/lxc/box/rootfs"),
        ("lvm:/dev/vg/box", "{0}/lxc/box/rootfs"),
        ("loop:{0}/device", "{0}/lxc/box/rootfs"),
        ("nbd:{0}/device:1", "{0}/lxc/box/rootfs"),
        ("zfs:pool/box", "{0}/lxc/box/rootfs"),
    ],
)
def test_where_its_root_is_seen(tmp_path, written, folder):
    """Lost: what is looked for in a container's root, for it is looked for in a device."""
    for name in ("plain", "with:colon", "lower", "upper", "lxc/box/rootfs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "device").touch()
    (tmp_path / "lxc/box/config").write_text(f"lxc.rootfs.path = {written.format(tmp_path)}\n")
    assert Container("box", str(tmp_path / "lxc")).root == folder.format(tmp_path)


def test_a_monitor_that_hangs_is_given_up(boxes, monkeypatch):
    """A module that waits for it for ever leaves the play there, too."""
    box = boxes.make()
    monitor = monitor_of(box)
    monkeypatch.setattr(Container._asked, "__kwdefaults__", {"timeout": 0.3, "meanwhile": None})
    monkeypatch.setattr(Container._ask, "__kwdefaults__", {"timeout": 0.3, "meanwhile": None})
    os.kill(monitor, signal.SIGSTOP)
    try:
        with pytest.raises(TimedOut, match=rf"{box.name} .*monitor did not answer \(state\) within 0\.3 s"):
            assert box.state
    finally:
        os.kill(monitor, signal.SIGCONT)


def test_an_init_that_does_not_end(boxes):
    """It is said with its remedy, and force ends it."""
    box = boxes.make("lxc.signal.halt = SIGURG")
    with pytest.raises(TimedOut, match="still runs 1 s after it was asked to end: stop it by force"):
        box.shutdown(1)
    box.stop()
    assert box.state == "STOPPED"


def test_an_init_that_was_asked_too_early_is_asked_again(boxes, monkeypatch):
    """The kernel drops a signal that init has no handler for yet: a container would be killed that need not be."""
    monkeypatch.setattr(liblxc, "ASK_AGAIN", 1.0)
    box = boxes.make(start=False)
    script = Path(box.root, "init.sh")
    script.write_text("sleep 0.5\n" + script.read_text())
    box.start(30)
    box.shutdown(20)
    assert box.state == "STOPPED"


def test_what_a_hook_says_is_the_error(boxes):
    """Otherwise a person sees 'Failed to receive the container state' and looks in the wrong place."""
    box = boxes.make("lxc.hook.pre-start = /bin/sh -c 'echo the roof; echo is on fire >&2; exit 3'", start=False)
    with pytest.raises(HeteroError, match=rf"container {box.name} of {box.lxcpath}: the roof is on fire$"):
        box.start(30)
    slow = boxes.make("lxc.hook.pre-start = /bin/sh -c 'sleep 2'", start=False)
    with pytest.raises(TimedOut, match=r"did not end within 0\.5 s.*its start goes on"):
        slow.start(0.5)


def test_wrong_rules_names_and_files_are_said(boxes, monkeypatch):
    """Each names the thing, and what to do."""
    box = boxes.make()
    with pytest.raises(HeteroError, match=r"devices.allow = c 1950:0 was not taken \(Invalid argument\)"):
        box.allow("c 1950:0")
    with pytest.raises(BadInput, match=rf"nobody .*no such container \(known: {box.name}\)"):
        Container("nobody", box.lxcpath).start()
    with pytest.raises(BadInput, match="is no name for a container"):
        Container("../etc", box.lxcpath)
    other = boxes.make("lxc.nonsense = 1", start=False)
    boxes.made.remove(other)
    with pytest.raises(HeteroError, match=r"its configuration cannot be read \(.*lxc.nonsense"):
        assert other.state
    monkeypatch.setattr(liblxc_calls, "LIBRARY", "liblxc.so.77")
    monkeypatch.setattr(liblxc_calls.Library, "_loaded", None)
    with pytest.raises(HeteroError, match=r"liblxc\.so\.77: is not there \(.*install package lxc"):
        Container("any")
    assert liblxc.LXCPATH == "/var/lib/lxc"
