# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes said to a play. Its tasks register their results in variables of the hosts, and the steps of a request
(request_steps.py) compute with them. answers.py has checked each answer before.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

from ansible_collections.hetero.compute.plugins.plugin_utils.plain_values import plain
from ansible_collections.hetero.compute.plugins.plugin_utils.template_trust import hostile

#: Names under which tasks register what a node has (playbooks/tasks/ask.yml), what it did (tasks/claim.yml), and the
#: place that it keeps for a request (tasks/ticket.yml).
ASKED, DONE, PLACE = "_asked", "_done", "_place"
#: Key of what is one text of JSON: an answer to action plugin node_info, or what filter snapshots makes. Ansible goes
#: through each value of a variable whenever that is read.
PACKED = "packed"
#: What ansible-core 2.19 says before the words of who failed.
ANSIBLE_SAYS = "Task failed: "


def answers(hostvars: Mapping[str, Any], nodes: Iterable[str]) -> list[dict[str, Any]]:
    """Return each node's last answer on what it has, in the order of `nodes`, with the node's name as `item`."""
    found = []
    for node in nodes:
        said = hostvars[node].get(ASKED) or dict(skipped=True)
        found.append(dict(dict(msg="was not asked") if said.get("skipped") else unpacked(said), item=node))
    return found


def as_json(value: Any) -> str:
    """Return what Python takes for JSON as JSON for any program: NaN and Infinity, which that lacks, come as words."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value), parse_constant=str))


def packed(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value of JSON's types as one text."""
    return {PACKED: as_json(value)}


def unpacked(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was packed; what was not, as it is."""
    return hostile(json.loads(said[PACKED])) if PACKED in said else said


def seen(snapshots: Any) -> Any:
    """Return what filter snapshots made, packed or not, in values of Python's own."""
    if not isinstance(snapshots, Mapping):
        return plain(snapshots)
    return {node: plain(unpacked(one) if isinstance(one, Mapping) else one) for node, one in snapshots.items()}


def listed(results: Any) -> Any:
    """Return the answers of {node: its answer} as those of a loop over nodes, each with its node as `item`; what is no
    such mapping is returned as it is.
    """
    if not isinstance(results, Mapping) or not all(isinstance(one, Mapping) for one in results.values()):
        return results
    return [dict(unpacked(said), item=node) for node, said in results.items()]


def done(hostvars: Mapping[str, Any], node: str, name: str = DONE) -> dict[str, Any]:
    """Return the result of the last task that acted on a node; {} if there was none.

    :param name: under which it was registered.

    Ansible takes a result with `failed_when_result` for a success or failure by that alone, so the task's own condition
    is left out.
    """
    return {key: value for key, value in hostvars[node].get(name, {}).items() if not key.startswith("failed_when")}


def words_of(result: Mapping[str, Any]) -> str:
    """Return why a task failed, without Ansible's own words before it, and without the carriage returns of ssh."""
    text = str(result.get("msg") or "failed without a word").replace("\r", "").strip()
    return text[len(ANSIBLE_SAYS) :] if text.startswith(ANSIBLE_SAYS) else text


def unasked(results: Iterable[Mapping[str, Any]], instance: str, without: Iterable[str]) -> str:
    """Return which nodes did not say what they have, and why; "" if all did. Each of them might have the instance.

    :param results: as `answers` returns them.
    :param without: nodes that were left out already.
    """
    silent, told = [], []
    for result in results:
        if result.get("unreachable") or "timedout" in result:
            silent.append(result)
        elif "claims" not in result:
            told.append(f"{result['item']}: {words_of(result)}")
    if silent:
        nodes = [result["item"] for result in silent]
        why = "; ".join(dict.fromkeys(words_of(result).rstrip(".") for result in silent))
        remedy = f"Mend that, or leave it out: -e without={','.join([*without, *nodes])}"
        told.append(f"{', '.join(nodes)} cannot be asked, and may hold {instance}: {why}. {remedy}")
    return "; ".join(told)
