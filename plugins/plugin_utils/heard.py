# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes said to a play: its tasks register their results in variables of the hosts, and the steps of a request
(request_steps.py) compute with them. Which answers can be is answers.py's.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play

#: What a task registers that asks a node, and one that acts there (playbooks/tasks/ask.yml, claim.yml).
ASKED, DONE = "_asked", "_done"
#: What ansible-core 2.19 says before the words of who failed.
ANSIBLE_SAYS = "Task failed: "


def answers(hostvars: Mapping[str, Any], nodes: Iterable[str]) -> list[dict[str, Any]]:
    """What each node answered last when it was asked what it has, with its name as `item`, in the order of `nodes`."""
    found = []
    for node in nodes:
        said = hostvars[node].get(ASKED, {}).get("results") or [dict(msg="was not asked")]
        found.append(dict(said[0], item=node))
    return found


def done(hostvars: Mapping[str, Any], node: str) -> dict[str, Any]:
    """What came of the last task that acted on a node."""
    return hostvars[node].get(DONE, {})


def words_of(result: Mapping[str, Any]) -> str:
    """Why a task failed, without Ansible's own words."""
    text = str(result.get("msg") or "failed without a word").strip()
    return text[len(ANSIBLE_SAYS) :] if text.startswith(ANSIBLE_SAYS) else text


def unasked(results: Iterable[Mapping[str, Any]], instance: str, without: Iterable[str]) -> str:
    """Why not all is known that the nodes have, for one of them might hold the name; empty where all is.

    :param results: of `answers`.
    :param without: nodes that were left out already.
    """
    results = list(results)
    silent = [result for result in results if result.get("unreachable")]
    if silent:
        nodes = [result["item"] for result in silent]
        why = "; ".join(dict.fromkeys(map(words_of, silent)))
        remedy = f"Mend that, or leave it out: -e without={','.join([*without, *nodes])}"
        return f"{', '.join(nodes)} cannot be asked, and may hold {instance}: {why}. {remedy}"
    return "; ".join(f"{result['item']}: {words_of(result)}" for result in results if "claims" not in result)


def ask_for_it(instance: str) -> str:
    """What somebody may type who names an instance that is not there."""
    ask = play("provision_instance", instance=instance, flavor="FLAVOR")
    return f"{play('status')} shows who has what; ask for it with {ask}"
