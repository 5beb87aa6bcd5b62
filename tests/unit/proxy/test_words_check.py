# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of a plan that are none. If these fail, one of them hides the next, which costs another set-up."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.proxy.test_preflight import said


def test_a_misspelt_driver_hides_no_misspelt_credential():
    """Lost: a set-up for each. A driver that is like none has credentials of its own."""
    keys = {"pdu-a": ["username", "pasword"]}
    defects, _notes = said(pdus={"pdu-a": {"driver": "apcc", "host": "h"}}, credential_keys=keys)
    assert defects == [
        'tftp_proxy_pdus, pdu-a: no such driver: "apcc": write apc',
        'tftp_proxy_pdu_credentials, pdu-a: unknown key "pasword": write password',
    ]
    defects, _notes = said(pdus={"pdu-a": {"driver": "ziggurat", "host": "h"}}, credential_keys=keys)
    assert len(defects) == 1
    assert "no such driver" in defects[0]
