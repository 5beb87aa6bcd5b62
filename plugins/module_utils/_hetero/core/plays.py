# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of our playbooks, as messages name them: whole, so that they can be pasted where the inventory is."""

from __future__ import annotations

from typing import Any, Collection, Container, Mapping

#: How another key is let in (ssh-copy-id(1): -f asks for no private half), as guide_playbooks has it.
LET_IN = "log in by the key that it has, and let another in as well (ssh-copy-id -f -i FILE root@ADDRESS)"


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


def have_it_otherwise(instance: str, other: Collection[str], asked: Mapping[str, Any]) -> str:
    """Return in words how to have an instance otherwise than it is, as `rebuild` takes that. Its root goes for that;
    another key is let in without.
    """
    text = f"rebuild it to change that ({rebuild(instance, other, asked)}), or terminate it first"
    return f"{LET_IN}; or {text}" if set(other) == {"ssh key"} else text


def stays(instance: str, what: str) -> str:
    """Return the remedy for a part of an instance that no verb changes, with what the remedy costs."""
    way = play("terminate_instance", instance=instance)
    return f"terminate it first, a {what} stays: {way} removes all that is in it"
