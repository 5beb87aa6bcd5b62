# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of others that Ansible might take for templates. If this fails, one of them runs what it likes on the
controller.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.template_marks import may_be_template


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("{{ lookup('pipe', 'id') }}", True),
        ("{% if true %}", True),
        ("#jinja2:variable_start_string:'[[',variable_end_string:']]'\n[[ lookup('pipe', 'id') ]]", True),
        ("of board3 # [[ no braces ]]", False),
        ("", False),
    ],
)
def test_what_each_template_has(text, may_be):
    assert may_be_template(text) == may_be
