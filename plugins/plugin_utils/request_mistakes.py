# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a request, in words, and what to do instead. request_values.py reads what it says.

Each check returns "" where nothing is wrong; none of them needs another to be right. request_words.py has those of the
options whose value is a number or one of some words.
"""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import INSTANCE, WORDS_OF_ANSIBLE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import KINDS
from ansible_collections.hetero.compute.plugins.plugin_utils.login_key import PRIVATE
from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import Requested
from ansible_collections.hetero.compute.plugins.plugin_utils.request_words import (
    GIVE_INVENTORY,
    NO_PROXY,
    SHOWN,
    WORDS,
    Check,
    is_no,
)
from ansible_collections.hetero.compute.plugins.plugin_utils.ssh_folder import ssh_folder

#: A name of an image, as its store takes it.
IMAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127})?")
PRIORITY = re.compile(r"-?([0-9]{1,3}|1000)")


def _instance(asked: Requested) -> str:
    """Why this is no name for an instance. What became a number may be the name of another instance."""
    name = asked.said("instance")
    if name is None:
        return f"Name the instance: -e instance=NAME{asked.filled('_or_else')}"
    if not isinstance(name, str):
        taken = f"instance is {str(name)[:SHOWN]} to Ansible, which may not be what was typed"
        return f"{taken}: give names a letter, and not yes, no, on, off or null"
    if INSTANCE.fullmatch(name):
        return ""
    return is_no("instance", name, "1 to 63 of a-z, 0-9 and -, with a letter or digit first and last")


def _name(asked: Requested) -> str:
    """Why these names are another's to Ansible: an ssh login by such a name, or a play, would go astray.

    The name of several is a name, too: `all` would be everything to who types it next.
    """
    if _instance(asked):
        return ""
    groups, name = asked.look("groups"), asked.look("instance")
    there = {*groups.get("all", ()), *groups} - set(WORDS_OF_ANSIBLE)
    taken = [name] if name in WORDS_OF_ANSIBLE else []
    taken += [one for one in dict.fromkeys(asked.names) if one in there]
    if not taken:
        return ""
    are = " and more are" if len(taken) > 5 else " are" if len(taken) > 1 else " is"
    said = f"{', '.join(taken[:5])}{are} in the inventory, as host or group, or a word of Ansible"
    return f"{said}: name the instance otherwise"


def _flavor(asked: Requested) -> str:
    if asked.flavor_mistakes or asked.flavor_name is not None:
        return asked.flavor_mistakes
    said, known = asked.filled("flavor"), ", ".join(sorted(map(str, asked.flavors), key=str.lower))
    if not said or not isinstance(said, (str, int, float)):
        return f"Name a flavor: -e flavor=NAME, one of {known}"
    near = like(str(said), [str(name) for name in asked.flavors])
    return f"{str(said)[:SHOWN]} is no flavor: {f'is {near} meant? Give' if near else 'give'} one of {known}"


def _image(asked: Requested) -> str:
    if IMAGE.fullmatch(str(asked.filled("image"))):
        return ""
    return (
        "image is no name for an image: give the name of one in the store; an operator imports images with "
        "ansible-playbook hetero.compute.image -e nodes=NODE -e image=NAME -e src=FILE"
    )


def _two_boards(asked: Requested) -> str:
    """Why board= and node= together name nothing; "" where they say the same, or where one of them is not given."""
    both = [asked.said(name) for name in ("board", "node")]
    if None in both or len({re.sub("[ ]|board(?=[0-9])", "", str(one)) for one in both}) == 1:
        return ""
    board, node = (str(one)[:SHOWN] for one in both)
    return f"board is {board} and node is {node}, which are two boards: give one of them"


def _board(asked: Requested) -> str:
    if not re.fullmatch("([0-9]+)?", asked.board):
        return is_no("board", asked.look("board"), "the id of one board, such as -e board=2")
    return _two_boards(asked) if asked.is_board else ""


def _of_several(asked: Requested, whose: str) -> str:
    """What names the proxy node whose board is meant, where there are several."""
    proxies = asked.site["of"]["board"]
    names = ", ".join(proxies)
    return f" and, of several proxy nodes ({names}), {whose} own (-e proxy=NAME)" if len(proxies) > 1 else ""


def _no_proxy(asked: Requested) -> str:
    there = asked.site["of"]["board"] or asked.filled("proxy")
    return "" if there else NO_PROXY[0].upper() + NO_PROXY[1:]


def _named(asked: Requested) -> str:
    """Repeat the board that was named, in the word that named it."""
    return f"{'board' if asked.said('node') is None else 'node'} is {str(asked.node)[:SHOWN]}. "


def _one_board(asked: Requested) -> str:
    """Why this is no board of a proxy node, for playbooks that work on one."""
    both = _two_boards(asked)
    if both or (asked.is_board and (asked.filled("proxy") or len(asked.site["of"]["board"]) == 1)):
        return both
    if isinstance(asked.node, str) and re.match("(board)?[0-9]+[, ]", asked.node):
        each = ", then ".join(f"-e node=board{board}" for board in re.findall("[0-9]+", asked.node))
        return f"One board at a time: {each}"
    remedy = f"Name the board (-e node=board3){_of_several(asked, 'its')}{asked.filled('_or_instance')}"
    return ("" if asked.is_board or asked.node == "" else _named(asked)) + (_no_proxy(asked) or remedy)


def _boards(asked: Requested) -> str:
    """Why these are no boards of a proxy node, for playbooks that work on several; none are all that there are."""
    proxies = [asked.filled("proxy")] if asked.filled("proxy") else asked.site["of"]["board"]
    strange = [board for board in asked.boards if not re.fullmatch("[0-9]+", board)]
    if not strange and proxies and (not asked.boards or len(proxies) == 1):
        return _two_boards(asked)
    remedy = f"Name boards as board3,board4{_of_several(asked, 'their')}"
    both = [_two_boards(asked), (_named(asked) if strange else "") + (_no_proxy(asked) or remedy)]
    return "; ".join(filter(None, both))


def _public_key(asked: Requested) -> str:
    """Why a new instance gets no key: there is none, or the site's own is none to give away."""
    if PRIVATE in asked.login["public"] and not asked.login["given"]:
        return "That is a private key: give the .pub file beside it (hetero_ssh_public_key)"
    return asked.login["missing"]


def _ssh_folder(asked: Requested) -> str:
    """Why files for ssh -F cannot be written: a verb that says so after an hour's boot says it late."""
    return ssh_folder(asked.filled("hetero_ssh_folder"), [] if _instance(asked) else asked.names)


def _owner(asked: Requested) -> str:
    site = asked.site
    if site["nodes"]:
        return ""
    if site["without"]:
        return (
            f"Nobody is left to ask: {', '.join(site['without'])} left out by without, and the inventory has no other "
            "proxy node, GPU host or KVM host"
        )
    *groups, last = (kind.group for kind in KINDS.values())
    empty = f"groups {', '.join(groups)} and {last} are empty"
    return f"The inventory has no proxy node, no GPU host and no KVM host: {empty}. {GIVE_INVENTORY}"


def _priority(asked: Requested) -> str:
    said = str(asked.priority)
    return "" if PRIORITY.fullmatch(said) else is_no("hetero_priority", said, "a whole number from -1000 to 1000")


def _kinds(asked: Requested) -> str:
    """Why a node is none: what a proxy node is asked is not what a host is asked."""
    both = [node for node in asked.site["of"]["board"] if node in asked.site["hosts"]]
    names = ", ".join(both)
    return f"A machine that is proxy node and compute host needs two names in the inventory: {names}" if both else ""


CHECKS: dict[str, Check] = dict(
    instance=_instance,
    name=_name,
    flavor=_flavor,
    flavors=lambda asked: asked.flavor_mistakes,
    image=_image,
    two_boards=_two_boards,
    board=_board,
    one_board=_one_board,
    boards=_boards,
    key=lambda asked: asked.login["problem"],
    public_key=_public_key,
    user_data=lambda asked: str(asked.cloud["problem"]),
    ssh_folder=_ssh_folder,
    owner=_owner,
    priority=_priority,
    kinds=_kinds,
)


def mistakes(asked: Requested, words: Sequence[str], checks: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with these words and by these checks, in their order.

    :raises KeyError: there is no such word or check.
    """
    for check in [*(WORDS[word] for word in words), *(CHECKS[name] for name in checks)]:
        problem = check(asked)
        if problem:
            yield problem
