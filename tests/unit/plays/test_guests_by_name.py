# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks on an instance that is a KVM guest. If they fail, a user must know what a name runs in to work with it.

What each verb does to a guest and its devices is tests/unit/instances/guests'.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.tests.unit.plays.proxies import GuestHost, Playbooks, changed

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root"),
]
KG0 = {"name": "kg0.small", "memory_mb": 512, "vcpus": 1, "extra_specs": {"hypervisor": "s== KVM"}}


@pytest.fixture
def kvm1(tmp_path):
    tmp_path.chmod(0o755)
    host = GuestHost(tmp_path / "kvm1", 3)
    try:
        yield host, Playbooks(tmp_path, [], kvm_hosts=["kvm1"])
    finally:
        host.remove()


def recorded(host):
    """The state and the host key of what is recorded; None where nothing is."""
    with Store(host.state_db, create=False) as store:
        return next(((claim.state, claim.host_key) for claim in store.claims()), None)


def test_every_verb_finds_a_guest_by_its_name(kvm1):
    """Asked for, seen, stopped, started, rebooted, made anew, extended, looked at, and given back."""
    host, plays = kvm1

    def play(verb, **more):
        rc, output = plays.play(verb, **more)
        assert rc == 0, output
        return " ".join(re.sub(r"[0-9.]+ s$", "", output, flags=re.MULTILINE).split())

    types = json.dumps({"hetero_extra_instance_types": {"kg0.small": KG0}})
    rc, output = plays.play("provision_instance", "-e", types, instance="ml-9", flavor="kg0.small")
    assert rc == 0, output
    assert f"ml-9 is running on kvm1: ssh root@{host.addresses[0]}" in output
    (chosen,) = re.findall(r"^ml-9    wants kg0\.small: .*kvm1 chosen$", output, re.MULTILINE)
    assert output.index(chosen) < output.index("disk ready from"), "in the order of what was done"
    state, key = recorded(host)
    assert state == "running"
    assert "kvm1 kvm - - 0 of 0 free ml-9" in play("status")
    assert "ml-9 is stopped and keeps kvm1" in play("stop_instance", instance="ml-9")
    assert recorded(host) == ("stopped", key)
    assert "guest started" in play("start_instance", instance="ml-9")
    assert "guest stopped" in play("reboot_instance", instance="ml-9", how="soft")
    assert recorded(host) == ("running", key)
    assert "is made anew of" in play("rebuild_instance", instance="ml-9", fresh="true")
    assert (recorded(host)[0], recorded(host)[1] != key) == ("running", True)
    assert "ml-9 has kvm1, lease: until" in play("extend_instance", instance="ml-9", hours="2")
    said = play("console", instance="ml-9")
    assert "ml-9 is a guest on kvm1" in said
    assert "tail -f /var/lib/hetero/guests/ml-9/console.log" in said
    of_a_job = play("console", instance="ml-9", awx_job_id="7")
    assert ("ml-9 is a guest on kvm1" in of_a_job, "live:" in of_a_job) == (True, False), of_a_job
    looked = play("reconcile")
    assert "kvm1 running ml-9 on own key as recorded" in looked
    assert "1 guest: 1 as recorded, 0 mended, 0 to look at" in looked
    assert "guest and disk removed" in play("terminate_instance", instance="ml-9")
    assert recorded(host) is None
    assert "ml-9: no such instance on kvm1" in play("terminate_instance", instance="ml-9")


WITHDRAW = """
- hosts: hypervisor_kvm
  gather_facts: false
  roles:
    - {role: hetero.compute.kvm_guests, kvm_guests_state: absent}
"""


def test_a_host_offers_guests_no_more_when_the_last_one_is_gone(kvm1):
    """A host taken out of service would lose track of a guest; or its section would stay, and requests come."""
    host, plays = kvm1
    types = json.dumps({"hetero_extra_instance_types": {"kg0.small": KG0}})
    rc, output = plays.play("provision_instance", "-e", types, instance="ml-9", flavor="kg0.small")
    assert rc == 0, output
    file = host.folder / "etc" / "hetero" / "host.json"
    file.write_text(json.dumps(dict(json.loads(file.read_text()), lxc={"name": "kvm1"})))
    (plays.folder / "withdraw.yml").write_text(WITHDRAW)

    def withdraw():
        rc, output = plays.end(plays.start_file("withdraw.yml"))
        return rc, changed(output), output

    rc, number, output = withdraw()
    assert (rc, number) == (2, 0), output
    assert "ml-9: terminate what is in guests first" in output
    rc, output = plays.play("terminate_instance", instance="ml-9")
    assert rc == 0, output
    assert withdraw()[:2] == (0, 1)
    assert json.loads(file.read_text()) == {"lxc": {"name": "kvm1"}}
    assert withdraw()[:2] == (0, 0)
    file.unlink()
    assert withdraw()[:2] == (0, 0)
