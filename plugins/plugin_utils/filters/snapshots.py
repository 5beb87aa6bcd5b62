# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.snapshots`: answers of several owners to board_info or host_info, by node, in one format.

Playbook status prints it as JSON, writes it for the inventory plugin, and makes a page of it.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.heard import listed, packed, words_of

#: What is kept of each kind of owner, with its value for an owner that did not answer.
OF_PROXY: dict[str, Any] = {
    "boards": [],
    "claims": [],
    "roots": None,
    "pdu_errors": {},
    "queue": [],
    "reservations": [],
}
OF_HOST: dict[str, Any] = {
    "gpus": [],
    "devices": [],
    "instances": [],
    "queue": [],
    "reservations": [],
    "claims": [],
    "capacity": {},
    "hypervisor": None,
    "hypervisors": [],
    "cpu_arch": None,
    "unsupported": None,
}


def snapshots(results: Any, hosts: bool = False, as_text: bool = False) -> dict[str, dict[str, Any]]:
    results = listed(results)
    if isinstance(results, (str, dict)) or not all(isinstance(result, dict) and "item" in result for result in results):
        raise AnsibleFilterError("hetero.compute.snapshots needs the results of a loop over nodes before the bar")
    taken_at = round(time.time(), 3)
    kept = OF_HOST if hosts else OF_PROXY
    found = {}
    for result in results:
        answered = "claims" in result
        found[result["item"]] = {
            "taken_at": taken_at,
            **{key: result.get(key, nothing) if answered else nothing for key, nothing in kept.items()},
            "error": None if answered else words_of(result) if result.get("msg") else "did not answer",
        }
    return {node: dict(packed(seen), error=seen["error"]) for node, seen in found.items()} if as_text else found
