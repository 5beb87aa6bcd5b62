# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose folder was moved for good (guests_folder) and whose domain libvirt has no more. Lost: its end, and
that of its lease: the way that was printed to who ended or rebuilt it was virsh edit of a domain that is not there.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.instances.guests.test_moved_guests_folder import BARE, bring


@pytest.mark.parametrize("command", [("mv",), ("cp", "-a")])
@pytest.mark.parametrize("verb", ["absent", "rebuilt"])
def test_its_end_is_not_by_a_domain_that_is_not_there(site, verb, command):
    site.provision("a", flavor=BARE)
    site.do("stopped", "a")
    site.virt.domain("a").undefine()
    bring(site, *command)
    options = {"fresh": True} if verb == "rebuilt" else {}
    said = site.do(verb, "a", **options)["msg"]
    description = site.folder / "bigger/a/domain.xml"
    assert "virsh edit a" not in said
    assert f"(an editor, in {description})" in said
    description.write_text(description.read_text().replace("/guests-files/", "/bigger/"))
    assert not site.do(verb, "a", **options).get("failed")
