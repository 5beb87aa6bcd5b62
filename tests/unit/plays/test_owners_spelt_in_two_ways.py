# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An owner whose name has an accent. A keyboard makes it of one character or of two (Unicode's NFC and NFD), which look
alike. If these fail, who types it on another machine is refused his own instance, or has twice what one may have.
"""

from __future__ import annotations

import json
import os
import unicodedata

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed
from ansible_collections.hetero.compute.tests.unit.plays.test_both_kinds import claim, names

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

ONE, TWO = (unicodedata.normalize(form, "José") for form in ("NFC", "NFD"))


def limit(proxy, limits):
    path = proxy.folder / "etc" / "hetero" / "proxy.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), owner_limits=limits)))


@pytest.mark.long
@pytest.mark.parametrize(("asks", "comes_back"), [(ONE, TWO), (TWO, ONE)], ids=["composed", "decomposed"])
def test_an_owner_has_its_instances_however_it_is_typed(both_kinds, asks, comes_back):
    """Lost: an instance, to its own owner: it can be neither used nor ended by that name."""
    proxy, host, plays = both_kinds
    limit(proxy, {ONE: 1})
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, owner=asks)
    assert rc == 0, output
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, owner=comes_back)
    assert (rc, changed(output)) == (0, 0), output
    rc, output = plays.play("provision_instance", instance="jo", flavor=FLAVOR, owner=comes_back)
    assert (rc, "may have 1 at once: jackie" in output) == (2, True), output
    claim(host, "ml-7", asks)
    for name in ("jackie", "ml-7"):
        rc, output = plays.play("terminate_instance", instance=name, owner=comes_back)
        assert rc == 0, output
    with Store(proxy.state_db) as store:
        assert [*store.claims(), *names(host)] == []


def test_an_owner_ends_its_own_and_nobody_elses(both_kinds):
    """Lost: an instance, to whom its owner's name without the accent belongs; or to its owner, who cannot end it."""
    _proxy, host, plays = both_kinds
    claim(host, "ml-7", ONE)
    rc, output = plays.play("terminate_instance", instance="ml-7", owner="Jose")
    assert (rc, f"ml-7 belongs to {ONE}, not to Jose" in output, names(host)) == (2, True, ["ml-7"]), output
    rc, output = plays.play("terminate_instance", instance="ml-7", owner=TWO)
    assert (rc, names(host)) == (0, []), output
