# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emulated PDUs that end with their test; what such a PDU is, is in emulated_pdu.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.power.emulated_pdu import EmulatedPdu


@pytest.fixture
def emulated(tmp_path):
    """A function that starts an emulated PDU; all are stopped at the end of the test."""
    started = []

    def start(**settings):
        folder = tmp_path / f"pdu{len(started)}"
        folder.mkdir()
        started.append(EmulatedPdu(folder, **settings))
        return started[-1]

    yield start
    for pdu in started:
        pdu.stop()
