# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of our playbooks, as messages name them: whole, so that they can be pasted where the inventory is."""

from __future__ import annotations

from typing import Any, Container, Mapping


def play(playbook: str, **words: object) -> str:
    """Return the command line of a playbook of this collection.

    :param words: variables that it gets by -e; a value may be a field such as "{name}", where the text is a template.
    """
    return " ".join([f"ansible-playbook hetero.compute.{playbook}", *(f"-e {key}={words[key]}" for key in words)])


def rebuild(instance: str, other: Container[str], asked: Mapping[str, Any]) -> str:
    """Return the command line that makes an instance anew from what was asked for.

    :param other: those of "image" and "ssh key" that the command is to change.
    :param asked: the request, with its image's name.
    """
    words = {"image": asked["image"]} if "image" in other else {}
    return play("rebuild_instance", instance=instance, **words, **({"key_file": "FILE"} if "ssh key" in other else {}))


def stays(instance: str, what: str) -> str:
    """Return the remedy for a part of an instance that no verb changes, with what the remedy costs."""
    way = play("terminate_instance", instance=instance)
    return f"terminate it first, a {what} stays: {way} removes all that is in it"
