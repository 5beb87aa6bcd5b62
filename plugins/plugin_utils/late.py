# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters whose code is imported by their first call.

A task that uses one filter of a collection loads the files of all of them, in a process of its own (Ansible's
Jinja2Loader). So these files hold what people read, and what computes lies in plugin_utils/filters.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable

CODE = "ansible_collections.hetero.compute.plugins.plugin_utils.filters"


def late(name: str) -> Callable[..., Any]:
    """The function of that name in the file of that name below plugin_utils/filters, as one that imports it first."""

    def imported(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"{CODE}.{name}"), name)(*arguments, **options)

    return imported
