# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is waited for while a module works, in words of its arguments: `p1: start of jackie`, and so on. Only names of
things are told, never contents: an argument may hold a password.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line

#: What modules do that look at all that is on a node.
LASTING = {
    "board_reconcile": "looks at boards and mends what is safe",
    "host_reconcile": "looks at containers and guests and mends what is safe",
    "gpu_reconcile": "looks who can open which GPU and closes what nobody was given",
}
#: Words of an operator to such a module, and what it does for them.
BY_WORD = {"adopt": "adopts {}", "forget": "ends the claims of {}", "remove": "removes what lies there of {}"}
#: What module instance does, by its option state, in words.
WORK = dict(
    present="claim of",
    running="start of",
    stopped="stop of",
    rebooted="reboot of",
    rebuilt="rebuild of",
    migrated="migration of",
    extended="new lease of",
    absent="end of",
)
#: What module instance_copy does, by its option step, in words.
COPIES = dict(
    described="look at",
    arriving="claim for",
    leaving="stop of",
    begun="look at the copy of",
    planned="look at the root of",
    read="reading of a piece of",
    written="writing of a piece of",
    digested="sums over the root of",
    taken="comparison of the copy of",
    settled="note on the former root of",
    gone="removal of the former root of",
    given_up="removal of the copy of",
    recalled="look at the former root of",
    back="way back of",
)
#: What module pdu_power does, by its option state, in words. A play may have it as a truth: `state: off`.
POWER = {"on": "power on", "off": "power off", "cycled": "power cycle", "True": "power on", "False": "power off"}
#: What the modules that look at a node do, by their option stage, in words.
STAGES = dict(machine="look at the machine", services="test of its services", bridge="look at its bridge")
#: Most names in such a line.
NAMED = 5


def work_of(module: str, given: Mapping[str, Any]) -> str:
    """Return what a call of a module does, for people: "start of jackie", "import of debian-12", or the module's name.

    :param given: its arguments.
    """
    words = WORDS.get(module)
    return one_line(brief(words(given))) if words else module


def awaited(node: Any, module: str, given: Mapping[str, Any]) -> str:
    """Return what is waited for of a call of a module, in words: "p1: start of jackie".

    :param given: its arguments.
    """
    does = LASTING.get(module)
    if does is None:
        return f"{node}: {work_of(module, given)}"
    asked = [does_it.format(names(given[word])) for word, does_it in BY_WORD.items() if given.get(word)]
    return one_line(f"{node}: {module}, which {' and '.join(asked) or does},")


def names(given: Any, what: str = "") -> str:
    """Return the first names of a list, which may also be one text with commas, as Ansible takes it.

    :param what: what they are names of, for one of them: "outlets 3, 4".
    """
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",")]
    listed = given if isinstance(given, list) else [given]
    kind = f"{what}{'s' * bool(listed[1:])} " if what else ""
    return kind + ", ".join(map(str, listed[:NAMED])) + (" and more" if listed[NAMED:] else "")


def _pdu(given: Mapping[str, Any]) -> str:
    return f"PDU {given.get('pdu') or given.get('host')}"


def _power(given: Mapping[str, Any]) -> str:
    does = POWER.get(str(given.get("state")))
    if does is None:
        return f"look at {_pdu(given)}"
    return f"{does} of {names(given.get('outlets'), 'outlet')} at {_pdu(given)}"


def _image(given: Mapping[str, Any]) -> str:
    if not given.get("name"):
        return "look at the images"
    return f"{'removal' if given.get('state') == 'absent' else 'import'} of {given['name']}"


def _files(given: Mapping[str, Any]) -> str:
    files = given.get("files")
    paths = [one.get("path") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    return f"look at {names(paths, 'file')}" if paths else "look at its files and services"


def _rules(given: Mapping[str, Any]) -> str:
    return f"device rules of {given.get('container') or given.get('cgroup')}"


def _card(given: Mapping[str, Any]) -> str:
    does = "way out of" if given.get("state") == "detached" else "way into"
    return f"{does} {given.get('domain')} of {names(given.get('devices'))}"


def _site(given: Mapping[str, Any]) -> str:
    return f"reading of {given['source']}" if given.get("source") else f"writing of {given.get('file')}"


def _said(text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda given: text


def _staged(given: Mapping[str, Any]) -> str:
    return STAGES.get(str(given.get("stage")), STAGES["machine"])


#: Module → a function of its arguments that returns what it does, in words.
WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "board_info": _said("look at its boards"),
    "cgroup_devices": _rules,
    "cgroup_info": _rules,
    "gpu_facts": _said("look at its GPUs"),
    "host_check_info": _staged,
    "host_info": _said("look at its instances"),
    "image_store": _image,
    "instance": lambda given: f"{WORK.get(str(given.get('state', 'running')), 'work on')} {given.get('instance')}",
    "instance_copy": lambda given: f"{COPIES.get(str(given.get('step')), 'move of')} {given.get('instance')}",
    "libvirt_hostdev": _card,
    "node_files": _files,
    "node_tools": _said("sending of the copy of the collection"),
    "nova_flags": _said("look at the flags of Nova"),
    "nova_pci": _said("look at what Nova knows of PCI devices"),
    "nova_pci_info": _said("look at what Nova knows of PCI devices"),
    "pci_check_info": _said("look at the machine"),
    "pci_info": _said("look at its PCI devices"),
    "pdu_info": lambda given: f"look at {_pdu(given)}",
    "pdu_power": _power,
    "proxy_check_info": _staged,
    "site_files": _site,
}
