# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks that tell Ansible which texts are templates. What a node, a tenant or a file of boards says is none, ever."""

from __future__ import annotations

from typing import Any

try:
    # ansible-core 2.19 and later template only what is marked as trusted ...
    from ansible.template import trust_as_template as harmless
except ImportError:
    # ... earlier ones whatever is not marked as unsafe.
    from ansible.utils.unsafe_proxy import wrap_var as hostile

    def harmless(text: Any) -> Any:
        """Return a text that may be a template."""
        return text
else:

    def hostile(value: Any) -> Any:
        """Return a value none of whose texts is taken for a template, whatever is in it."""
        return value


__all__ = ["harmless", "hostile"]
