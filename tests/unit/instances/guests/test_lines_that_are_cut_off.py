# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line that is printed to be typed is printed whole, or words are in its place.

Tests hypervisors/libvirt/boot_files.py, hypervisors/libvirt/domain_disks.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import boot_files

DOMAIN = (
    "<domain><os><kernel>{old}/kernel</kernel></os><devices><disk type='file' device='disk'><driver type='raw' />"
    "<source file='{old}/disk.raw' /></disk></devices></domain>"
)


@pytest.mark.parametrize("length", [8, 57])
@pytest.mark.parametrize("defined", [True, False])
def test_of_a_long_name(tmp_path, length, defined):
    """Lost: the way on: a shell that waits for the end of what is quoted."""
    name, word = "n" * length, "virsh dumpxml" if defined else "sed -i"
    old, folder = f"/srv/x/libvirt/hetero-guests/{name}", tmp_path / name
    folder.mkdir()
    for file in ("disk.raw", "kernel", "initrd"):
        (folder / file).touch()
    spec = SimpleNamespace(name=name, folder=str(folder), file=lambda word: str(folder / word))
    libvirt = SimpleNamespace(domain=lambda _name: SimpleNamespace(defined=defined))
    with pytest.raises(Refused) as refused:
        boot_files.must_boot(spec, ElementTree.fromstring(DOMAIN.format(old=old)), libvirt)
    said = str(refused.value)
    if length == 8:
        assert f"({word}" in said
        assert f"s#{old}/#{folder}/#g'" in said
    else:
        assert word not in said
        assert f"which is to name {folder}/kernel as its kernel" in said
        assert (f"by virsh edit {name}" if defined else f"{folder}/domain.xml") in said
    assert "…" not in said
