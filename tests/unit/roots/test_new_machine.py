# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of an image becomes one instance's own. If these fail, two instances are one machine, or nobody can log in."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.new_machine import make_own
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY


@pytest.fixture
def root(tmp_path):
    """An image's root, with a key and a name of the machine on which the image was made."""
    root = tmp_path / "root"
    (root / "etc/ssh").mkdir(parents=True)
    (root / "root").mkdir()
    (root / "etc/hostname").write_text("builder\n")
    (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    return root


def test_it_gets_a_name_a_key_of_its_own_and_the_users(root, tmp_path):
    """Lost: whom one is logged in at, and who may log in."""
    keep = tmp_path / "keep"
    keep.mkdir(mode=0o700)
    line = make_own(str(root), "jackie", KEY, None, str(keep))
    assert (root / "etc/hostname").read_text() == "jackie\n"
    assert KEY.split()[1] in (root / "root/.ssh/authorized_keys").read_text()
    assert line.startswith("ssh-ed25519 ")
    assert line.split()[1] in (root / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
    assert "0123456789abcdef" not in (root / "etc/machine-id").read_text(), "two machines had one id"
    other = make_own(str(root), "bob", KEY, None, str(keep))
    assert other != line, "a host key is never two instances'"


def test_user_data_come_into_a_root_with_cloud_init(root, tmp_path):
    """Lost: what the user asked cloud-init to do."""
    (root / "etc/cloud").mkdir()
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/cloud-init").touch(mode=0o755)
    make_own(str(root), "jackie", KEY, "#cloud-config\n", str(tmp_path))
    found = list(root.rglob("user-data"))
    assert [path.read_text() for path in found] == ["#cloud-config\n"]
