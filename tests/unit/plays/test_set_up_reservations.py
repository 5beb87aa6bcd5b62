# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of reservations in an inventory, and the playbooks that set nodes up. If these fail, a course is reserved in
the inventory and nowhere else, or a slip in its date is found by its first day.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.plays.proxies import GuestHost, Playbooks
from ansible_collections.hetero.compute.tests.unit.plays.test_set_up_mistakes import mistakes, set_up

GOOD = {"owner": "ann", "from": "2026-12-07 08:00+01:00", "until": "2026-12-11 18:00+01:00"}
OWN = {"own.flavor": dict(memory_mb=1, vcpus=1, local_gb=0, cpu_arch="x86_64")}
TABLE = [
    dict(GOOD, flavor="tp64.8x8", count=2),
    dict(GOOD, flavor="own.flavor"),
    dict(GOOD, which=[1], **{"from": "2026-12-07 08:00"}),
    dict(GOOD, flavor="tp64.9x9", ownr="ann"),
    "ann",
]
LIMITS = {"*": 4, "ci": {"flavors": {"tp64.8x8": 1, "tp64.8x9": 0, "own.flavour": 0}}}
WRONG = [
    '_reservations[2].from: is "2026-12-07 08:00", which has no zone: give a date with time and zone in quotes',
    "_reservations[3].ownr: is no key: did you mean owner?",
    '_reservations[3].flavor: is "tp64.9x9", which is no flavor: did you mean tp64.8x8?',
    '_reservations[4]: is "ann": give a mapping of owner, from, until, count, flavor, which, why',
    '_owner_limits.ci.flavors.tp64.8x9: is "tp64.8x9", which is no flavor: did you mean tp64.8x8?',
    '_owner_limits.ci.flavors.own.flavour: is "own.flavour", which is no flavor: did you mean own.flavor?',
]


def must_be_said(rc, output, role):
    assert rc == 2, output
    said = [line for line in mistakes(output) if "_reservations" in line or "_owner_limits" in line]
    for wanted in WRONG:
        assert any(line.startswith(f"{role}{wanted}") for line in said), (wanted, output)
    assert {line.partition(": ")[0] for line in said} == {f"{role}{wanted.partition(': ')[0]}" for wanted in WRONG}


def test_all_mistakes_of_a_proxys_table_are_said_at_once(proxies):
    """Lost: a set-up for each slip; or a flavor of the site's own, which no node knows."""
    _folders, plays = proxies
    more = dict(tftp_proxy_server="10.0.2.254", tftp_proxy_reservations=TABLE, tftp_proxy_owner_limits=LIMITS)
    rc, output = set_up(plays, "proxy", hetero_extra_instance_types=OWN, **more)
    must_be_said(rc, output, "tftp_proxy")


def test_all_mistakes_of_a_hosts_table_are_said_at_once(tmp_path):
    """Lost: the same, of GPUs and of guests."""
    tmp_path.chmod(0o755)
    host = GuestHost(tmp_path / "k1", 3)
    try:
        plays = Playbooks(tmp_path, [], ["k1"], ["k1"])
        more = dict(kvm_guests_addresses=["10.0.81.10", "10.0.81.20"], kvm_guests_gateway="10.0.81.1")
        more.update(gpu_lxc_reservations=TABLE, kvm_guests_reservations=TABLE, hetero_extra_instance_types=OWN)
        more.update(gpu_lxc_owner_limits=LIMITS, kvm_guests_owner_limits=LIMITS)
        rc, output = set_up(plays, "gpu_host", **more)
        must_be_said(rc, output, "gpu_lxc")
        (tmp_path / "guests.yml").write_text("- {hosts: k1, gather_facts: false, roles: [hetero.compute.kvm_guests]}\n")
        rc, output = plays.end(plays.start_file(str(tmp_path / "guests.yml"), "--check"))
        must_be_said(rc, output.replace("\\n", "\n").replace('\\"', '"'), "kvm_guests")
    finally:
        host.remove()
