# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 - ansible-test wants the documentation before the imports
"""Inventory of boards files and compute hosts, with the states that `status` saw last.

It shows; plays always ask the owners (proxy nodes and compute hosts), who alone decide.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
short_description: Boards and compute hosts as Ansible hosts
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Reads the boards files (C(tilera_boards)) of any number of proxy nodes and makes each board a host.
  - The file's name must be C(hetero.yml) or end in C(.hetero.yml).
  - >-
    Groups made without a template: C(arch_<architecture>), C(state_<state>), C(proxy_<name>) for boards and
    C(hypervisor_<hypervisor>) and C(gpu_arch_<architecture>) for compute hosts; characters that group names
    cannot have became C(_) (C(state_power_off)).
  - >-
    Host variables of a board: C(ansible_host), every column of the boards file as C(hetero_<column>)
    (C(hetero_id), C(hetero_ip), C(hetero_mac), C(hetero_vcpus), C(hetero_memory_mb), C(hetero_local_gb),
    C(hetero_memory_mb_used), C(hetero_local_gb_used), C(hetero_hypervisor_type), C(hetero_hypervisor_version),
    C(hetero_cpu_info)), C(hetero_arch), C(hetero_geometry), C(hetero_proxy), C(hetero_state), C(hetero_instance),
    and whatever else the snapshot says of the board (C(hetero_owner)).
  - >-
    Host variables of a compute host, from its snapshot: C(hetero_gpus) (of each GPU C(address), C(uuid), C(model),
    C(arch), C(healthy), C(holder) and what else the snapshot says), C(hetero_gpus_total), C(hetero_gpus_free),
    C(hetero_instances) and C(hetero_capacity). A snapshot that is too old still shows which GPUs there are.
  - The inventory shows what was seen last; the plays of this collection ask the owners before they do anything.
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
notes:
  - With O(cache=true) the boards files are cached. The snapshots are not, as they have an age of their own.
    That pays where the files are on a slow share; from a disk they are read as fast as the cache.
options:
  plugin:
    description: Marks the file as one for this plugin.
    type: str
    required: true
    choices: [hetero.compute.nodes]
  proxies:
    description: Proxy nodes and the boards behind each.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the proxy node.
        type: str
        required: true
      boards_file:
        description: Its boards file, as seen from this machine; a relative path starts at the inventory file's folder.
        type: str
        required: true
      prefix:
        description: Put before each board's name (C(board3)), to tell the boards of several proxies apart.
        type: str
        default: ""
  boards_files:
    description:
      - Short form for one proxy node, which then is called C(proxy).
      - Relative paths start at the inventory file's folder.
    type: list
    elements: str
    default: []
  compute_hosts:
    description: Hosts with GPUs or PCI devices.
    aliases: [accelerator_hosts]
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the host.
        type: str
        required: true
      hypervisor:
        description: What runs instances on it.
        type: str
        choices: [lxc, kvm]
      vars:
        description: Host variables, such as C(ansible_host).
        type: dict
        default: {}
  snapshots:
    description:
      - Folder with a file C(<name>.json) for each proxy and each compute host.
      - Playbook C(hetero.compute.status) writes them.
      - A relative path starts at the inventory file's folder.
    type: str
  snapshot_max_age:
    description: Seconds after which a snapshot's states are shown as C(unknown); V(0) believes a snapshot of any age.
    type: int
    default: 300
"""

EXAMPLES = r"""
# The least: one boards file
plugin: hetero.compute.nodes
boards_files:
  - /tftpboot/tilera_boards
---
# Two proxies, a GPU host, states, and groups of one's own
plugin: hetero.compute.nodes
proxies:
  - name: proxy1
    boards_file: proxy1/tilera_boards
  - name: proxy2
    boards_file: proxy2/tilera_boards
    prefix: p2-
compute_hosts:
  - name: gpu1
    hypervisor: lxc
    vars:
      ansible_host: 192.0.2.7
snapshots: snapshots
keyed_groups:
  - key: hetero_geometry
    prefix: geometry
groups:
  large: hetero_local_gb >= 1000
"""

import os
import re
from functools import lru_cache

from ansible.errors import AnsibleParserError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ..module_utils._hetero.core.plays import play
from ..module_utils._hetero.core.spelling import like
from ..module_utils._hetero.core.template_marks import may_be_template
from ..module_utils._hetero.site.boards_file import COLUMNS, BoardsFileError, geometry, read
from ..plugin_utils import snapshots
from ..plugin_utils.snapshots import UNKNOWN
from ..plugin_utils.template_trust import harmless, hostile

#: The proxy that `boards_files` speaks of.
ONE_PROXY = "proxy"
#: What may be put into a host's or a proxy's name.
_NAME = re.compile(r"[A-Za-z0-9._-]*")
_KEY = re.compile(r"[a-z][a-z0-9_]*")
#: What a snapshot says of a board and no host variable is made of: columns are the boards file's, events are history.
_NO_VARIABLES = frozenset((*COLUMNS, "events"))

SPEC = ArgumentSpecValidator(
    {
        "proxies": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "name": {"type": "str", "required": True},
                "boards_file": {"type": "str", "required": True},
                "prefix": {"type": "str", "default": ""},
            },
        },
        "boards_files": {"type": "list", "elements": "str", "default": []},
        "compute_hosts": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "name": {"type": "str", "required": True},
                "hypervisor": {"type": "str", "choices": ["lxc", "kvm"]},
                "vars": {"type": "dict", "default": {}},
            },
        },
        "snapshots": {"type": "str"},
        "snapshot_max_age": {"type": "int", "default": 300},
    }
)


@lru_cache(maxsize=10000)
def _text_from_outside(text):
    return hostile(text) if may_be_template(text) else harmless(text)


def from_outside(value):
    """A value that no template engine will take for a template.

    Text without a mark of one cannot be one, and is left plain: AWX and other readers of `ansible-inventory --list` get
    {"__ansible_unsafe": "text"} for the rest.
    """
    if isinstance(value, str):
        return _text_from_outside(value)
    if isinstance(value, list):
        return [from_outside(item) for item in value]
    if isinstance(value, dict):
        return {key: from_outside(item) for key, item in value.items()}
    return value


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "hetero.compute.nodes"

    def verify_file(self, path):
        name = os.path.basename(path)
        ours = re.fullmatch(r"(.+\.)?hetero\.ya?ml", name) is not None
        return ours and super().verify_file(path)

    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        self._warn_of_unknown(path, self._read_config_data(path))
        self.folder = os.path.dirname(os.path.abspath(path))
        options = self._checked(path)
        proxies = options["proxies"] + [
            {"name": ONE_PROXY, "boards_file": boards_file, "prefix": ""} for boards_file in options["boards_files"]
        ]
        taken = {}
        for proxy, boards in zip(proxies, self._cached(path, proxies, cache)):
            if not boards:
                source = f"{self._resolved(proxy['boards_file'])} of proxy {proxy['name']}"
                self.display.warning(f"{source} names no boards: add a line for each board: {' '.join(COLUMNS)}")
            states = self._snapshot(proxy["name"], options, snapshots.states)
            for columns in boards:
                name = f"{proxy['prefix']}board{columns['id']}"
                self._take(taken, name, f"{proxy['boards_file']} of proxy {proxy['name']}")
                self._add_board(name, proxy["name"], columns, states.get(str(columns["id"])))
        for host in options["compute_hosts"]:
            self._take(taken, host["name"], "compute_hosts")
            self._add_compute_host(host, self._snapshot(host["name"], options, snapshots.gpus))
        self._compose_all(taken)

    def _warn_of_unknown(self, path, given):
        """Say which keys of the file are no options: a slip in one leaves its hosts out without a word of Ansible."""
        options = self.option_definitions
        known = {name for option, its in options.items() for name in (option, *its.get("aliases", ()))}
        for key in sorted(set(map(str, given)) - known):
            meant = like(key, options)
            remedy = f"write {meant}" if meant else "leave it out"
            self.display.warning(f"{path}: {key} is no option of this plugin, and says nothing: {remedy}")

    def _checked(self, path):
        """This plugin's own options, each of the right type all the way down."""
        given = {name: self.get_option(name) for name in SPEC.argument_spec}
        result = SPEC.validate({name: value for name, value in given.items() if value is not None})
        if result.error_messages:
            raise AnsibleParserError(f"{path}: {'; '.join(result.error_messages)}")
        options = result.validated_parameters
        if not any(options[name] for name in ("proxies", "boards_files", "compute_hosts")):
            raise AnsibleParserError(f"{path}: name some proxies, boards_files or compute_hosts")
        names = [proxy["name"] for proxy in options["proxies"]] + [ONE_PROXY] * bool(options["boards_files"])
        for name in names:
            if names.count(name) > 1:
                raise AnsibleParserError(f"{path}: two proxies are called {name}: give each a name of its own")
        parts = names + [proxy["prefix"] for proxy in options["proxies"]]
        for part in parts + [host["name"] for host in options["compute_hosts"]]:
            if not _NAME.fullmatch(part):
                raise AnsibleParserError(f"{path}: {part!r} cannot be in a name: use letters, digits, '.', '_' and '-'")
        return options

    def _resolved(self, path):
        return os.path.join(self.folder, os.path.expanduser(path))

    def _cached(self, path, proxies, cache):
        """The boards of each proxy, as dicts of columns: from the cache where the user wants that, else from the files.

        What was cached for other proxies or paths is not used.
        """
        sources = [self._resolved(proxy["boards_file"]) for proxy in proxies]
        wanted = self.get_option("cache")
        key = self.get_cache_key(path)
        if wanted and cache:
            try:
                found = self._cache[key]
            except KeyError:
                found = {}
            if found.get("sources") == sources:
                return found["boards"]
        boards = self._read(sources)
        if wanted:
            self._cache[key] = {"sources": sources, "boards": boards}
        return boards

    def _read(self, sources):
        boards, defects = [], []
        for source in sources:
            try:
                boards.append([board.columns for board in read(source)])
            except BoardsFileError as error:
                defects.extend(error.defects)
        if defects:
            raise AnsibleParserError(f"the boards cannot be read:\n{BoardsFileError(defects)}")
        return boards

    def _snapshot(self, owner, options, reading):
        """Return what `reading` makes of an owner's snapshot; {} for a missing one, and, with a warning, a bad one."""
        if not options["snapshots"]:
            return {}
        path = os.path.join(self._resolved(options["snapshots"]), f"{owner}.json")
        try:
            with open(path, encoding="utf-8") as file:
                return reading(file.read(), options["snapshot_max_age"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, OverflowError, RecursionError) as error:
            self.display.warning(f"{path}: {error}; its nodes are shown as {UNKNOWN}: run {play('status')} again")
            return {}

    def _take(self, taken, name, source):
        if name in taken:
            raise AnsibleParserError(
                f"two hosts would be called {name}: one from {taken[name]}, one from {source}: "
                "list its file under proxies with a prefix"
            )
        taken[name] = source

    def _group(self, prefix, value):
        """A group's name, made once however many hosts it gets."""
        return self.inventory.add_group(self._sanitize_group_name(f"{prefix}_{value}".lower()))

    def _add_board(self, name, proxy, columns, seen):
        seen = {key: value for key, value in (seen or {}).items() if _KEY.fullmatch(key) and key not in _NO_VARIABLES}
        state = seen.get("state")
        state = state if isinstance(state, str) and state else UNKNOWN
        arch = columns["cpu_info"].get("arch")
        arch = arch if isinstance(arch, str) and arch else None
        variables = {"instance": None, **seen, **columns}
        variables.update(arch=arch, geometry=geometry(columns["cpu_info"]), proxy=proxy, state=state)
        self.inventory.add_host(name, self._group("proxy", proxy))
        self.inventory.add_child(self._group("state", state), name)
        if arch:
            self.inventory.add_child(self._group("arch", arch), name)
        self.inventory.set_variable(name, "ansible_host", from_outside(columns["ip"]))
        for key, value in variables.items():
            self.inventory.set_variable(name, f"hetero_{key}", from_outside(value))

    def _add_compute_host(self, host, seen):
        """The variables are the inventory author's own words, so templates in them stay templates."""
        self.inventory.add_host(host["name"])
        if host["hypervisor"]:
            self.inventory.add_child(self._group("hypervisor", host["hypervisor"]), host["name"])
            self.inventory.set_variable(host["name"], "hetero_hypervisor", host["hypervisor"])
        for key, value in seen.items():
            self.inventory.set_variable(host["name"], f"hetero_{key}", from_outside(value))
        arches = {gpu["arch"] for gpu in seen.get("gpus", ()) if isinstance(gpu.get("arch"), str)}
        for arch in sorted(arches - {""}):
            self.inventory.add_child(self._group("gpu_arch", arch), host["name"])
        for key, value in host["vars"].items():
            self.inventory.set_variable(host["name"], key, value)

    def _compose(self, template, variables, *more):
        """A variable's name is looked up; to compile it, as any other expression, costs 0.3 ms a host."""
        value = variables.get(template)
        if isinstance(value, str) and "{" not in value and template not in self._vars:
            return value
        return super()._compose(template, variables, *more)

    def _compose_all(self, names):
        """The user's own groups and variables; skipped where there are none, as each expression costs 0.3 ms a host."""
        compose, groups = self.get_option("compose"), self.get_option("groups")
        keyed_groups, strict = self.get_option("keyed_groups"), self.get_option("strict")
        if not (compose or groups or keyed_groups):
            return
        for name in names:
            host = self.inventory.get_host(name)
            self._set_composite_vars(compose, host.get_vars(), name, strict)
            variables = host.get_vars()
            self._add_host_to_composed_groups(groups, variables, name, strict, fetch_hostvars=False)
            self._add_host_to_keyed_groups(keyed_groups, variables, name, strict, fetch_hostvars=False)
