# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that a task gives as one value, `asks`: Ansible compiles each expression of a task anew."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief


def spread(args: dict[str, Any]) -> None:
    """Put the options of `asks` in its place among a task's others.

    :raises AnsibleActionFail: it is no mapping.
    """
    given = args.pop("asks", None) or {}
    if not isinstance(given, Mapping):
        raise AnsibleActionFail(f"asks is {brief(str(given))}: give options by name")
    args.update(given)
