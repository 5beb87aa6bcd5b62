# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A claim that is made while reconcile looks at a board that was nobody's. If these fail, reconcile ends the claim of
whoever asked meanwhile.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation, release
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile


def files(site):
    folder = site.tftp / "10.0.2.1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vmlinux_0").write_text("")


#: What keeps a free board from being clean, and nobody from claiming it.
LEFT = {
    "boot files": files,
    "a root whose removal was killed": lambda site: (site.state / "board-roots" / "fs_0").mkdir(parents=True),
    "an outlet that is on": lambda site: site.pdu(board0="on"),
}


def claim(site):
    """A claim needs no lock of a board."""
    with site.proxy() as proxy:
        proxy.store.claim("jackie", ["jackie"], ClaimTerms("jackie", FLAVOR, "debian", KEY), [0])


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
@pytest.mark.parametrize(("place", "name"), [(reconciliation, "_free"), (release, "wipe_beside")])
def test_reconcile_ends_no_claim_that_is_younger_than_its_look(site, monkeypatch, left, place, name):
    """Lost: a claim, and the request, which hears that it was terminated, or ended with another one for it."""
    assert not any(result.get("failed") for result in [*site.provision("old"), *site.terminate("old")])
    left(site)
    step = getattr(place, name)

    def claimed_before(*given):
        claim(site)
        step(*given)

    monkeypatch.setattr(place, name, claimed_before)
    said = found(reconcile(site))
    assert site.what_is_there()["claims"] == {"jackie": 0}, said
    assert said[-1][0].startswith("could not be freed: board0: was claimed for jackie meanwhile"), said
    assert [event.instance for event in site.events(0, "release")] == ["old"]
