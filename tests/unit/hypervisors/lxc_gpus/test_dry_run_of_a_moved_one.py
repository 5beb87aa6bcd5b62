# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container was moved to another folder while it is down. If this fails, a dry run (check mode) of taking its GPU
back says that nothing would be changed, and the run itself takes it.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_all_moved_while_down import there

__all__ = ["there"]


def test_a_dry_run_says_what_the_run_does(host, there):
    dry = host.detach(there, check=True)
    done = host.detach(there)
    assert host.table() == {}
    assert (dry["changed"], dry["diff"]) == (done["changed"], done["diff"])


def test_by_name(host, there):
    dry = host.detach(there, ADDRESSES[0], check=True)
    assert host.table() == {ADDRESSES[0]: ["box"]}
    done = host.detach(there, ADDRESSES[0])
    assert (dry["changed"], dry["diff"]) == (done["changed"], done["diff"])
