# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""numbers=2,5, as a program that counts its instances by itself gives them. If these fail, its slots get no nodes, or
the end of one slot is the end of all.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def claims(*folders):
    found = []
    for proxy in folders:
        with Store(proxy.state_db, create=False) as store:
            found += store.claims()
    return found


def instances(*folders):
    return sorted(claim.instance for claim in claims(*folders))


def with_variable(plays, **variables):
    """Have these in the inventory, for all hosts."""
    path = plays.folder / "inventory.json"
    inventory = json.loads(path.read_text())
    inventory["all"]["vars"].update(variables)
    path.write_text(json.dumps(inventory))


@needs_root
def test_numbers_of_two_proxies(proxies):
    """Lost: slots of a site with several proxy nodes."""
    folders, plays = proxies
    rc, output = plays.play("provision_instance", instance="tp64", flavor=FLAVOR, count=9, numbers="2,7,4")
    assert rc == 0, output
    assert instances(*folders.values()) == ["tp64-2", "tp64-4", "tp64-7"]
    more = dict(instance="tp64", flavor=FLAVOR, count=9)
    rc, output = plays.play("provision_instance", numbers="4,7,8,9", partial=True, **more)
    assert rc == 0, output
    assert instances(*folders.values()) == ["tp64-2", "tp64-4", "tp64-7", "tp64-8"]
    # a variable that a site has for itself chooses nothing of a verb that takes no numbers
    with_variable(plays, numbers="4")
    rc, output = plays.play("extend_instance", instance="tp64", hours=1)
    assert rc == 0, output
    assert all(claim.expires for claim in claims(*folders.values()))
    rc, output = plays.play("terminate_instance", instance="tp64", numbers="2,7,8")
    assert rc == 0, output
    assert instances(*folders.values()) == ["tp64-4"]
    rc, output = plays.play("terminate_instance", instance="tp64", numbers="2")
    assert rc == 0, output
    assert instances(*folders.values()) == ["tp64-4"]


@needs_root
def test_numbers_of_the_only_proxy(tmp_path):
    """Lost: the same at a site of one proxy node, which is asked without a look before."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    try:
        plays = Playbooks(tmp_path, ["p1"])
        rc, output = plays.play("provision_instance", instance="tp64", flavor=FLAVOR, count=2, numbers="2")
        assert rc == 0, output
        assert instances(proxy) == ["tp64-2"]
        rc, output = plays.play("terminate_instance", instance="tp64", numbers="1,2")
        assert rc == 0, output
        assert instances(proxy) == []
    finally:
        proxy.remove()


@pytest.mark.parametrize(
    ("playbook", "given", "words"),
    [
        ("provision_instance", dict(flavor=FLAVOR, count=3, numbers="2,x"), "numbers is 2,x: give whole numbers"),
        ("provision_instance", dict(flavor=FLAVOR, count=3, numbers="4"), "numbers is 4, and count 3: give count=4 or"),
        ("provision_instance", dict(flavor=FLAVOR, numbers="1"), "numbers is 1, and count 1: give count=2 or more"),
        ("terminate_instance", dict(numbers="0"), "numbers is 0: give whole numbers from 1"),
        ("stop_instance", dict(numbers="2"), "numbers chooses nothing here"),
        ("status", dict(numbers="2"), "numbers chooses nothing here"),
    ],
)
def test_what_is_wrong_with_numbers(tmp_path, playbook, given, words):
    """Lost: all instances of a request, stopped for one number that a verb does not take."""
    request = {} if playbook == "status" else {"instance": "tp64"}
    rc, output = Playbooks(tmp_path, ["p1", "p2"]).play(playbook, **request, **given)
    assert rc == 2, output
    assert words in " ".join(output.split())
