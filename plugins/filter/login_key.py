# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.login_key`: the public key of a request, or what is wrong with the one that was given."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

DOCUMENTATION = r"""
name: login_key
short_description: Choose the public key that may log in to an instance
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Takes the key that was given as text or as a file on the controller, else the site's, else the first
    that there is of C(id_ed25519.pub), C(id_ecdsa.pub) and C(id_rsa.pub) in C(~/.ssh).
  - A C(key) that is one word and no file is a name in the site's folder of public keys, C(files/keys/NAME.pub) beside
    the inventory.
  - Says in words what is wrong with it, without a word of the key itself.
positional: _input
options:
  _input:
    description: What was asked for, as C(key) (text, or a name in the site's folder) and C(key_file).
    type: dict
    required: true
  in_a_job:
    description: Whether a form of AWX asks. It can name no file, as jobs may be able to read the secrets of others.
    type: bool
    default: false
  sources:
    description: Paths of the inventory, as C(ansible_inventory_sources) has them.
    type: list
    elements: path
    default: []
  default:
    description: The site's key, such as C(hetero_ssh_public_key).
    type: str
"""

EXAMPLES = r"""
- name: Which key may log in
  ansible.builtin.debug:
    msg: "{{ ({'key_file': '~/.ssh/lab.pub'} | hetero.compute.login_key).public }}"
"""

RETURN = r"""
_value:
  description: >-
    C(given) is the text of the key that was given, C(public) that or the site's or the user's own, C(problem) what is
    wrong with the given one, and C(missing) what to do if there is none.
  type: dict
"""

login_key = lazy_filter("login_key")


class FilterModule:
    def filters(self):
        return {"login_key": login_key}
