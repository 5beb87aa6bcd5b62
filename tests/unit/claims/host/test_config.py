# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host's configuration file with mistakes in it. If these fail, modules on it end in a traceback."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import read_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput

#: What host.json says, and how the error calls it.
WRONG = (
    ({"state_folder": "hetero"}, 'state_folder: is "hetero": give an absolute path'),
    ({"lxcpath": 0}, "lxcpath: is 0: give an absolute path"),
    ({"vcpus": -1}, "vcpus: is -1: give a whole number of 0 or more"),
    ({"pids": "many"}, 'pids: is "many": give a whole number'),
    ({"prefix_length": 33}, "prefix_length: is 33: give a whole number from 0 to 32"),
    ({"bridge": "a bridge of a long name"}, 'bridge: is "a bridge of a long name": give the name of a network'),
    ({"domain_type": "xen"}, 'domain_type: is "xen": give one of kvm, qemu'),
    ({"gpu_overrides": []}, "gpu_overrides: is []: give a mapping"),
    ({"kvm": {"addresses": ["10.0.0.9", "10.0.0.1"]}}, 'kvm.addresses: is ["10.0.0.9", "10.0.0.1"]: give the first'),
    ({"lxc": {"addresses": ["10.0.0.9"]}}, 'lxc.addresses: is ["10.0.0.9"]: give the first and the last IPv4'),
    ({"kvm": {"aliases": {"a1": 7}}}, "kvm.aliases.a1: is 7: give a mapping"),
    ({"memory_bm": 4096}, "memory_bm: is no key: did you mean memory_mb?"),
    ({"lxc": {"vcpu": 4}}, "lxc.vcpu: is no key: did you mean vcpus?"),
    ({"kvm": {"guest_folder": "/a"}}, "kvm.guest_folder: is no key: did you mean guests_folder?"),
    ({"lxc": {"unprivileged": "yes"}}, 'lxc.unprivileged: is "yes": give true or false'),
)


@pytest.mark.parametrize(("said", "line"), WRONG)
def test_a_wrong_value_is_named_with_what_it_should_be(tmp_path, said, line):
    path = tmp_path / "host.json"
    path.write_text(json.dumps(said))
    with pytest.raises(BadInput) as caught:
        read_config(str(path))
    assert str(caught.value).splitlines()[0].startswith(f"{path}: {line}"), str(caught.value)


def test_all_mistakes_are_said_at_once(tmp_path):
    """An operator would set the host up once for each."""
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"vcpus": -1, "lxc": {"vcpus": [], "pids": {}}, "kvm": {"vcpus": 0.5}}))
    with pytest.raises(BadInput) as caught:
        read_config(str(path))
    places = [mistake["thing"] for mistake in caught.value.failure["mistakes"]]
    assert places == ["vcpus", "lxc.vcpus", "lxc.pids", "kvm.vcpus"]


def test_what_templates_make_of_nothing_says_nothing(tmp_path):
    """A role writes null or "" for what its variables leave out, and the machine's own would be lost."""
    path = tmp_path / "host.json"
    section = {"default_image": "", "gateway": None, "domain_type": "", "addresses": [], "memory_mb": "", "vcpus": "2"}
    path.write_text(json.dumps({"state_folder": "", "lxcpath": str(tmp_path), "gateway": "10.0.0.1", "lxc": section}))
    config = read_config(str(path))
    assert config.state_folder == "/var/lib/hetero"
    assert config.capacity["memory_mb"] > 0
    assert config.capacity["vcpus"] == 2
    assert config.lxc.gateway == "10.0.0.1"
    assert [config.lxc.default_image, config.lxc.domain_type, config.lxc.addresses] == [None, None, []]
