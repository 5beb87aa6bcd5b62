# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container in another folder than the host's (option lxcpath of module lxc_gpu_attach), with a GPU that it is to
have after a restart. Lost: each start of it after its host's next boot: what it starts with is of an earlier boot, and
the printed remedy (hetero gpu-restore) looks at the host's folder alone, although table and host.folders name this one.

Tests hypervisors/lxc/hooks.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import hooks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

BOOT = "sys/kernel/random/boot_id"


def booted(host, proc):
    """Have the host be in its next boot."""
    (proc / BOOT).parent.mkdir(parents=True, exist_ok=True)
    (proc / BOOT).write_text("11111111-2222-3333-4444-555555555555\n")
    (proc / "devices").write_text(Path("/proc/devices").read_text(encoding="utf-8"))
    host.here = replace(host.here, proc=str(proc))


@pytest.mark.parametrize("folder", ["the host's", "another"])
def test_it_starts_after_the_printed_remedy(host, tmp_path, folder):
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=ADDRESSES[:1])
    if folder == "another":
        host.boxes.lxcpath = f"{host.boxes.top}/ours"  # the host's own, by its configuration
        host.boxes.make(name="other", start=False)
    hooks.check(box, box.name, box.config_file, host.here)
    booted(host, tmp_path / "proc")
    with pytest.raises(Refused, match="or run hetero gpu-restore"):
        hooks.check(box, box.name, box.config_file, host.here)
    named = box.name if folder == "the host's" else box.folder
    assert restored(host) == {named: None}
    hooks.check(box, box.name, box.config_file, host.here)


def restored(host):
    with Store(host.state_db) as store:
        return restoration.restore(host.site(store))


def test_what_was_left_in_a_former_folder_is_left_alone(host, tmp_path):
    """Lost: each start of a host without an error, where containers were copied to another folder; and a GPU that was
    given to another one since, or that a person is to say something of.
    """
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=ADDRESSES[:1])
    with Store(host.state_db) as store, store.transaction():
        for row in store.allocations():
            store.free(row)
    host.boxes.lxcpath = f"{host.boxes.top}/ours"
    host.boxes.make(name="other", start=False)
    booted(host, tmp_path / "proc")
    written = Path(box.folder, "hetero.d/devices.conf").read_bytes()
    assert restored(host) == {}
    assert Path(box.folder, "hetero.d/devices.conf").read_bytes() == written
    assert host.table() == {}
