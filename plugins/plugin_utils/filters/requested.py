# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.requested`: one value of a request, read from the variables of the play."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars
from jinja2.runtime import Context, Undefined, missing

from ansible_collections.hetero.compute.plugins.plugin_utils.request_options import RequestOptions
from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import Requested

#: Whose variables say what is asked for; a node's own of such a name are about that node.
ASKER = "localhost"
#: What is asked for, which each node is to hear alike.
WORDS = frozenset((
    "adopt", "attempts", "board", "boot_source", "count", "devices", "flavor", "force", "forget", "fresh", "hours",
    "how", "image", "instance", "key", "key_file", "node", "numbers", "only_key", "owner", "partial", "placement",
    "proxy", "remove", "soft_timeout", "user_data", "wait", "wipe", "wipe_verify", "without",
))  # fmt: skip
#: What can be asked for.
VALUES = [
    name
    for name, value in {**vars(Requested), **vars(RequestOptions)}.items()
    if isinstance(value, (property, cached_property)) and not name.startswith("_")
]


def of_the_play(context: Context) -> RequestOptions:
    """Return the request that a play's variables make, each of which is read when it is asked for."""

    def look(name: str, otherwise: Any = None) -> Any:
        found = context.resolve_or_missing(name)
        if name in WORDS and found is not missing:
            found = _as_asked(context, name, found)
        if found is missing:
            return otherwise
        # a variable of which another one is a part that is missing is missing, as to filter default
        return context.environment.call_filter("default", found, [otherwise]) if isinstance(found, Undefined) else found

    return RequestOptions(look)


def _as_asked(context: Context, name: str, found: Any) -> Any:
    """Return a word's value; in place of a node's own variable of that name that of who asks, or `missing`."""
    if isinstance(found, Undefined) or name in load_extra_vars(DataLoader()):
        return found
    node, known = (context.resolve_or_missing(one) for one in ("inventory_hostname", "hostvars"))
    if node == ASKER or missing in (node, known):
        return found
    own = known[node].get(name, missing)
    # any other value is one of the play's
    return known[ASKER].get(name, missing) if not isinstance(own, Undefined) and own == found else found


def requested(context: Context, name: Any) -> Any:
    """Return a value by its name; raise AnsibleFilterError if a request has no such value."""
    if name not in VALUES:
        raise AnsibleFilterError(f"hetero.compute.requested knows no {str(name)[:60]}: give one of {', '.join(VALUES)}")
    return getattr(of_the_play(context), name)
