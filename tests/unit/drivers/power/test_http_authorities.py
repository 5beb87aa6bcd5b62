# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Authorities of devices with driver http. If this fails, a folder of them is refused."""

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.http import Http


@pytest.mark.parametrize(
    "more",
    [
        dict(tls=True, tls_ca="/etc/ssl/certs"),
        dict(host="pdu_1.lab"),
        dict(host="pdu.lab."),
        dict(host="fe80::1%eth0"),
        dict(host="bücher.example"),
    ],
    ids=str,
)
def test_settings(more):
    settings = dict(dict(driver="http", api="shelly2", host="10.0.0.1", outlets=["0"]), **more)
    assert [str(error) for _key, error in Http.wrong("p", settings)] == []
