# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters whose code is imported when they are first called.

A task that uses one filter of a collection loads the files of all, in a process of its own (Ansible's Jinja2Loader). So
those files hold only documentation, and the code is in plugin_utils/filters.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, cast

from jinja2 import pass_context

CODE = "ansible_collections.hetero.compute.plugins.plugin_utils.filters"


def lazy_filter(name: str) -> Callable[..., Any]:
    """Return a function that imports plugin_utils/filters/<name>.py and calls the function of that name in it."""

    def imported(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"{CODE}.{name}"), name)(*arguments, **options)

    return imported


def context_filter(name: str) -> Callable[..., Any]:
    """Return the same for code that reads the play's variables, by Jinja's context, which it gets first.

    What is undefined is looked at there, and not refused by ansible-core 2.19.
    """
    imported: Any = pass_context(lazy_filter(name))
    imported.accept_lazy_markers = True
    return cast(Callable[..., Any], imported)
