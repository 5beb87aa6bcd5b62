# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that a lost database does not know. If these fail, two instances get one address, or nobody gets any."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import HostConfig
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.addresses import addresses_there
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.tests.in_time import in_time


@pytest.fixture
def config(tmp_path):
    """A host with a container and a guest."""
    texts = {"lxc/a/config": "lxc.net.0.ipv4.address = 10.0.3.2/24\n", "kvm/b/domain.xml": "ip=10.0.3.3::"}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "lxc/file").touch()
    plain = HostConfig()
    folders = dict(lxcpath=str(tmp_path / "lxc"), guests_folder=str(tmp_path / "kvm"))
    return replace(plain, lxc=replace(plain.lxc, **folders), kvm=replace(plain.kvm, **folders))


def test_of_containers_and_guests(config):
    assert addresses_there(config) == {"10.0.3.2", "10.0.3.3"}


@pytest.mark.parametrize("kind", ["pipe", "loop", "huge"])
@pytest.mark.parametrize("path", ["lxc/a/config", "kvm/b/domain.xml"])
def test_one_that_cannot_be_read_may_have_any_and_is_not_waited_for(config, tmp_path, path, kind):
    """Lost: the answer to a claim, which waited for a pipe; or an address that is in use, to the next who asks."""
    file = tmp_path / path
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "loop":
        file.symlink_to(file.name)
    else:
        file.write_text("#" * (1 << 21))
    with in_time(), pytest.raises(HeteroError, match=r"cannot be read \(.*\), and so nobody can tell which address"):
        addresses_there(config)
