# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs while the file system of all containers is full. If these fail, what would end the trouble is refused, too."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


@pytest.fixture
def full(site):
    """ml-8 runs, and its host's containers have no space left."""
    site.lxcpath.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=711", "tmpfs", str(site.lxcpath)], check=True)
    site.claim(flavor=SMALL)
    site.up()
    with open(site.lxcpath / "filler", "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return site


def autostart(site):
    return "lxc.start.auto = 1" in Path(site.container().config_file).read_text()


def test_a_stop_needs_no_space(full):
    """Lost: the way to quiet a container that fills the disk; or the word that it comes back at the next boot."""
    config = f"{full.lxcpath}/ml-8/config"
    said = full.do(lifecycle.stopped)
    assert not said.get("failed"), said
    texts = [line["text"] for line in said["lines"]]
    why = f"it will start with the host again: {config}: cannot be written (No space left on device): free space on"
    assert [text.startswith(why) for text in texts] == [True, False], texts
    assert not full.container().running
    assert full.info()["instances"][0]["state"] == "stopped"
    assert not full.do(lifecycle.stopped).get("failed")
    (full.lxcpath / "filler").unlink()
    assert autostart(full)
    with full.host() as host:
        (look,) = reconciliation.reconcile(host, Change(False), 5.0)["instances"]
    assert [(one["found"], one["done"]) for one in look["found"]] == [("missing or another: configuration", "put back")]
    assert not autostart(full)


def test_what_cannot_be_checked_on_a_full_disk_is_stopped_all_the_same(full, monkeypatch):
    """Lost: the word that a container is stopped, to its file system, which could write no more and needs a check."""

    def mount(*_words):
        raise HeteroError("e2fsck ended with 8", "root.ext4", "look at it")

    assert not full.do(lifecycle.stopped).get("failed")
    monkeypatch.setattr(disks, "has_errors", lambda _container: True)
    monkeypatch.setattr(disks, "mount", mount)
    said = full.do(lifecycle.stopped)
    assert not said.get("failed"), said
    assert "e2fsck ended with 8" in said["lines"][0]["text"]
    (full.lxcpath / "filler").unlink()
    assert full.do(lifecycle.stopped)["failed"]


def test_an_end_needs_no_space_and_another_verb_names_the_file(full):
    """Lost: which of a host's disks is full; or the end of what fills it."""
    config = Path(full.container().config_file)
    config.write_bytes(config.read_bytes().replace(b"lxc.start.auto = 1", b"lxc.start.auto = 0"))
    assert f"{config}: cannot be written (No space left on device)" in full.up()["msg"]
    assert not full.do(lifecycle.absent).get("failed")
    assert not config.parent.exists()
