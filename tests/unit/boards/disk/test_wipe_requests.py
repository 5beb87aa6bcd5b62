# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How boards may be wiped. Whole wipes are in disk/test_wipes.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.canaries import MOST
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipes import WipeRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig, UsualWipe

PROXY = SimpleNamespace(config=ProxyConfig())


@pytest.mark.parametrize("samples", [1, MOST])
def test_as_many_samples_as_are_named(samples):
    """Lost: what the refusal of any other number says may be given."""
    assert WipeRequest.of(PROXY, samples=samples).samples == samples


@pytest.mark.parametrize("samples", [0, MOST + 1, 1.5])
def test_no_other_number_of_samples(samples):
    """Lost: a disk called proven by no look at all, or a look without end."""
    with pytest.raises(BadInput, match=f"samples is {samples}: give 1 to {MOST}, or verify full"):
        WipeRequest.of(PROXY, samples=samples)


def test_what_is_usual_where_nothing_is_asked_for():
    """Lost: how this site wipes, or what the documentation says of a site that does not say."""
    usual = WipeRequest.of(SimpleNamespace(config=ProxyConfig()))
    assert (usual.method, usual.verify, usual.samples, usual.inspect, usual.limit) == (
        "discard",
        "sample",
        64,
        False,
        86400.0,
    )
    site = SimpleNamespace(config=ProxyConfig(wipe=UsualWipe(method="zero", verify="full", samples=9)))
    assert WipeRequest.of(site) == WipeRequest("zero", "full", 9)
    assert WipeRequest.of(site, method="secure_erase", verify=None, inspect=True) == WipeRequest(
        "secure_erase", "full", 9, True
    )
    for wrong, why in (
        ({"others": {"methods": 1, "a": 2}}, "tftp_proxy_wipe: has no a, methods"),
        ({"method": "burn"}, r"wipe: no such method: burn \(known: discard, zero, secure_erase\)"),
        ({"verify": "some"}, r"wipe: no such verify: some \(known: full, sample, none\)"),
        ({"samples": "9"}, "wipe: samples is 9: give 1 to 4096"),
    ):
        with pytest.raises(BadInput, match=f"^{why}"):
            WipeRequest.of(SimpleNamespace(config=ProxyConfig(wipe=UsualWipe(**wrong))))
