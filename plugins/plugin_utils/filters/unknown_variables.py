# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.unknown_variables`: what is meant by a variable of a role that the role does not know."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils.near import like, meant_by


def unknown_variables(given, known, prefix="", slips=False):
    for what, names in (("before the bar", given), ("in brackets", known)):
        if isinstance(names, str):
            raise AnsibleFilterError(f"hetero.compute.unknown_variables needs a list of names {what}")
    known = sorted(known)
    meant = {name: meant_by(name, known) if slips else like(name, known, prefix) for name in map(str, given)}
    return [
        {
            "thing": name,
            "what": "is no variable of this role",
            "remedy": f"write {meant[name]}; a variable of your own needs another name",
        }
        for name in sorted(meant)
        if meant[name] and name not in known
    ]
