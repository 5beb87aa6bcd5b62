# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a verb asks libvirt: each question is a process, and some 25 ms of whoever waits.

Tests hypervisors/libvirt/domain.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt


def asked(site):
    """The questions since the last time."""
    lines = site.virt.calls.read_text().splitlines()
    site.virt.calls.write_text("")
    return lines


def test_a_guest_that_is_there_is_not_asked_for_again_and_again(site):
    """Lost: half a second of each verb, to whether a domain is there before each look at it."""
    for number in range(3):
        site.virt.define(f"other-{number}", f"11111111-1111-1111-1111-11111111111{number}")
    asked(site)
    site.provision("ml-9")
    first = asked(site)
    assert not site.provision("ml-9")["changed"]
    again = asked(site)
    assert (len(first) <= 12, len(again) <= 10) == (True, True), (first, again)


def test_what_libvirt_lists_and_does_not_show_is_not_gone(site):
    """Lost: a guest that runs, taken for one whose domain is gone, as libvirt could not read it for a moment."""
    site.provision("ml-9")
    libvirt = Libvirt(Deadline(60))
    domain = libvirt.domain("ml-9")
    site.virt.fail("dumpxml", "failed to get domain 'ml-9'")
    with pytest.raises(HeteroError, match="domain ml-9: there is no such domain"):
        domain.described()
    site.virt.fail("dumpxml")
    assert domain.described().findtext("name") == "ml-9"
    assert libvirt.domain("ml-10").described() is None
