# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter fits: what it is given wrongly. Which flavor fits which board is in scheduling/test_fit.py."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.fits import fits

BOARD = dict(memory_mb=16000, vcpus=64, local_gb=500)
TYPES = dict(small=dict(memory_mb=16384), big=dict(memory_mb=32768))


def test_the_names_of_those_that_fit():
    """Lost: which flavors a board serves."""
    assert fits(TYPES, BOARD, tolerance=0.05) == ["small"]
    assert fits(TYPES, BOARD, tolerance=0) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([], BOARD), "needs a mapping of instance types by name before the bar"),
        ((TYPES, "board1"), "needs a board"),
        ((TYPES, BOARD, 1), "tolerance is 1: give a number from 0 to below 1"),
        ((TYPES, BOARD, False), "tolerance is False"),
        ((dict(small=dict(memory="x")), BOARD), "fits: flavor small: unknown key 'memory'"),
        ((dict(small=[]), BOARD), "fits: flavor: is "),
    ],
)
def test_what_is_given_wrongly_is_said(given, words):
    """Lost: the place in a playbook, to a traceback."""
    with pytest.raises(AnsibleFilterError, match=words):
        fits(*given)
