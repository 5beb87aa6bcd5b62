# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that are no templates. If these fail, whoever has root on a node runs what he likes on the controller."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.hetero.compute.plugins.plugin_utils.heard import packed, unpacked
from ansible_collections.hetero.compute.plugins.plugin_utils.template_trust import harmless, hostile

SUM = "{{ 20 + 22 }}"


def evaluated(value):
    """What a play has of a variable with this value."""
    return Templar(DataLoader(), variables=dict(said=value)).template(harmless("{{ said }}"))


def test_what_is_trusted_is_a_template():
    assert evaluated(harmless(SUM)) == 42


@pytest.mark.parametrize("value", [SUM, [SUM], dict(a=[dict(b=SUM)]), dict(a=1, b=None, c=SUM)])
def test_what_is_not_is_none_however_deep_it_lies(value):
    assert evaluated(hostile(value)) == value


def test_what_came_as_one_text_is_none():
    """Lost: the same, by a claim's name."""
    assert evaluated(unpacked(packed(dict(claims=[dict(owner=SUM)])))) == dict(claims=[dict(owner=SUM)])
