# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.meant`: the known word that a wrong one is most similar to."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: meant
short_description: Find the known word that a wrong one is most similar to
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Finds what somebody meant who typed one letter too many, too few or another one, or a similar word.
positional: _input, known
options:
  _input:
    description: The word that is none of the known ones.
    type: str
    required: true
  known:
    description: The known words; of a mapping, its keys.
    type: list
    elements: str
    required: true
seealso:
  - plugin: hetero.compute.flavors
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Which flavor is meant
  ansible.builtin.debug:
    msg: "{{ 'tp64.8x9' | hetero.compute.meant(['tp64.8x8', 'cg1.xlarge']) }}"
# tp64.8x8
"""

RETURN = r"""
_value:
  description: The known word, or an empty text where none is similar.
  type: str
"""

meant = lazy_filter("meant")


class FilterModule:
    def filters(self):
        return {"meant": meant}
