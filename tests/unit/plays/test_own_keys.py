# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose key logs in where a request names none. If these fail, a first request ends in words of Ansible's."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


@pytest.fixture
def fresh(tmp_path):
    """(a Proxy, the playbooks for it by an inventory without a key, the .ssh folder of who asks)."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    try:
        plays = Playbooks(tmp_path, ["p1"])
        inventory = tmp_path / "inventory.json"
        text = json.loads(inventory.read_text())
        del text["all"]["vars"]["hetero_ssh_public_key"]
        inventory.write_text(json.dumps(text))
        own = tmp_path / "home" / ".ssh"
        own.mkdir(parents=True)
        plays.env["HOME"] = str(own.parent)
        yield proxy, plays, own
    finally:
        proxy.remove()


def test_who_has_no_key_is_told_what_was_looked_for_and_how_to_give_one(fresh):
    """Lost: the way on, to who asks for the first time; no node is asked before."""
    proxy, plays, own = fresh
    (proxy.folder / "down").touch()  # whoever asks it fails
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    text = " ".join(output.split())
    assert rc == 2, output
    looked = ", ".join(f"{own}/{name}" for name in ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"))
    assert f"No public key was given, and there is none of {looked}: give one" in text
    assert "(-e key_file=FILE, -e key=TEXT, or hetero_ssh_public_key in the inventory)" in text
    assert "or make one: ssh-keygen -t ed25519" in text
    assert "lookup plugin" not in text
    assert "No route to host" not in text
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, key="ssh-ed25519")
    text = " ".join(output.split())
    assert "key is no OpenSSH public key" in text
    assert "No public key was given" not in text


def test_of_keys_of_ones_own_the_first_that_is_there_logs_in(fresh):
    """Lost: the request of who has another key than ed25519."""
    proxy, plays, own = fresh
    (own / "id_rsa.pub").write_text(f"{OTHER_KEY}\n")
    (own / "id_ecdsa.pub").write_text(f"{KEY}\n")
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    assert changed(output) > 0
    with Store(proxy.state_db, create=False) as store:
        assert store.record(0).claim.ssh_public_key == KEY


def test_a_key_of_the_sites_folder_logs_in_by_its_name(fresh, tmp_path):
    """Lost: `key=jackie`, where Ansible has another word for where the inventory lies. A wrong one goes nowhere."""
    proxy, plays, _own = fresh
    keys = tmp_path / "files" / "keys"
    keys.mkdir(parents=True)
    (keys / "jackie.pub").write_text(f"{OTHER_KEY}\n")
    (proxy.folder / "down").touch()  # whoever asks it fails
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, key="jakie")
    text = " ".join(output.split())
    assert rc == 2, output
    assert "files/keys has no key jakie (it has jackie): write key=jackie" in text
    assert "No route to host" not in text
    (proxy.folder / "down").unlink()
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, key="jackie")
    assert rc == 0, output
    with Store(proxy.state_db, create=False) as store:
        assert store.record(0).claim.ssh_public_key == OTHER_KEY
