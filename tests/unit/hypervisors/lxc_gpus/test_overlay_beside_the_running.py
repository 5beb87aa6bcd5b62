# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As test_made_anew_beside_the_running.py, where the new container has an overlay as its root (lxc-copy -s), or a
folder that is still empty, or not there yet. If this fails, the GPU of the old one, which runs on, is closed under
its processes by gpu_reconcile, to which lxc_gpu_attach sends, and is free for anybody.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import monitors
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_made_anew_beside_the_running import (
    made_anew,
    old,
    opened,
)

__all__ = ["old"]
OWN, FREE = ADDRESSES[:2]


def overlay(new):
    os.makedirs(f"{new.folder}/delta0")
    config = Path(new.config_file)
    root = f"{new.folder}/rootfs"
    config.write_text(config.read_text().replace(f"dir:{root}", f"overlay:{root}:{new.folder}/delta0"))
    new.reload()


def missing(new):
    shutil.rmtree(f"{new.folder}/rootfs")


def empty(new):
    missing(new)
    os.mkdir(f"{new.folder}/rootfs")


@pytest.mark.parametrize("kind", [overlay, missing, empty])
def test_the_old_one_keeps_its_gpu(host, old, kind):
    pid = old.init_pid
    new = made_anew(host, old)
    kind(new)
    with pytest.raises(Refused) as refused:
        host.attach(new, gpus=[FREE])
    assert "or it has changed its root since" in str(refused.value)
    found = host.reconcile(repair=True)["findings"]
    assert [(one["kind"], one["container"]) for one in found] == [("not looked at", "box")]
    assert (host.table(), opened(pid)) == ({OWN: ["box"]}, [OWN])


def test_one_of_which_the_look_has_nothing_keeps_its_gpu(host, old, monkeypatch):
    """Lost: its GPU, to the next one, where its monitor did not say which process it has; it was red beside load."""
    pid = old.init_pid
    missing(made_anew(host, old))
    monkeypatch.setattr(monitors, "init_of", lambda name, lxcpath: None)
    host.reconcile(repair=True)
    assert (host.table(), opened(pid)) == ({OWN: ["box"]}, [OWN])
