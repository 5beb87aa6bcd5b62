# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`-e user_data=FILE` of a whole play. Lost if it fails: a first boot that does what was asked, or a secret in it that
a play, a record or a log of the node shows.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

#: Braces that would be a template to Ansible, and a secret.
DATA = "#cloud-config\nruncmd: [echo {{ hunter2 }} {% raw %}]\n"


@pytest.fixture
def plays(tmp_path):
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    try:
        source = image_tar(tmp_path / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"})
        ImageStore(str(proxy.folder / "var" / "lib" / "hetero" / "images")).import_image(source, "cloud")
        (tmp_path / "first.yml").write_text(DATA)
        (tmp_path / "wrong.yml").write_text("hunter2\n")
        yield proxy, Playbooks(tmp_path, ["p1"])
    finally:
        proxy.remove()


def holding(folder):
    """Files below a node's folder with the secret in them, not those of roots."""
    found = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size < 1 << 24]
    return [str(path) for path in found if b"hunter2" in path.read_bytes() and "/board-roots/" not in str(path)]


def test_what_is_in_the_file_gets_into_the_root_and_nowhere_else(plays):
    proxy, played = plays
    asked = dict(instance="jackie", flavor=FLAVOR, image="cloud")
    for file, why in (
        ("wrong.yml", "user_data: wrong.yml does not begin as data for cloud-init do"),
        ("none.yml", "user_data: none.yml cannot be read (No such file or directory)"),
    ):
        rc, output = played.play("provision_instance", user_data=file, **asked)
        assert (rc, why in " ".join(output.split())) == (2, True), output
        assert "hunter2" not in output
    rc, output = played.play("provision_instance", user_data="first.yml", **dict(asked, image="debian"))
    assert (rc, "has no cloud-init, which user_data is for" in " ".join(output.split())) == (2, True), output
    assert "claimed for" not in output
    rc, output = played.play("provision_instance", "-vvv", user_data="first.yml", **asked)
    assert rc == 0, output
    assert "user_data is there for cloud-init" in output
    assert "hunter2" not in output
    root = proxy.root / "var" / "lib" / "hetero" / "board-roots" / "fs_0" / "root"
    assert (root / "var/lib/cloud/seed/nocloud/user-data").read_text() == DATA
    assert holding(proxy.folder / "var") == []
    assert holding(proxy.folder / "tftpboot") == []
    rc, output = played.play("rebuild_instance", "-vvv", instance="jackie", user_data="first.yml")
    assert rc == 0, output
    assert "user_data is there for cloud-init" in output
    assert "hunter2" not in output
    assert (root / "var/lib/cloud/seed/nocloud/user-data").read_text() == DATA
