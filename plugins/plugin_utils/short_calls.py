# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules run from the copy of the collection on their node: by one command over the connection, with arguments by
standard input. Ansible would send the module with all that it imports, by several commands.

If the node has no copy, or one of another release, the module is sent as usual; -v says so.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import module_loader
from ansible.utils.display import Display

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import (
    brief,
    deeper,
    one_line,
    printable,
    printable_data,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.call import BEGUN
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import CALL, FOLDER, name_of
from ansible_collections.hetero.compute.plugins.plugin_utils.awaited import awaited
from ansible_collections.hetero.compute.plugins.plugin_utils.bounded_reading import Endless, at_most
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import PACKED
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import code
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import told_while_it_lasts

try:  # since ansible-core 2.19
    from ansible.module_utils.common.json import Direction, get_module_decoder, get_module_encoder

    PROFILE: tuple[str, ...] = ("legacy",)
    ENCODER = get_module_encoder(*PROFILE, Direction.CONTROLLER_TO_MODULE)
    # what reads results is imported here, in the play's process, and not in that of each node
    get_module_decoder(*PROFILE, Direction.MODULE_TO_CONTROLLER)
except ImportError:
    from ansible.module_utils.common import json as older

    PROFILE, ENCODER = (), older.AnsibleJSONEncoder

display = Display()

#: The node's own Python, which its commands use, unless the inventory names another.
PYTHON = "/usr/bin/python3"
#: The copy of exactly this release on nodes. It is computed when a play's process loads an action plugin, once for all
#: tasks.
COPY = f"{FOLDER}/{name_of(code())}"
#: Whose modules these are.
COLLECTION = "hetero.compute"
#: Keys of a result that Ansible obeys: hosts and groups, variables of the play's host (in the playbooks the
#: controller), and what AWX stores of a job. No module that is called here returns them, but for FACTS.
WORDS = ("add_host", "add_group", "ansible_facts", "ansible_stats")
#: Module → the one fact that it returns.
FACTS = {"gpu_facts": "hetero_gpus"}
#: Steps of a module whose arguments hold what is a tenant's, or that begin what others of it go on with. Ansible's own
#: way may put arguments into files of both machines (unless pipelining is on), so they go to the node's copy only.
IN_NO_FILE = {"instance_copy": ("arriving", "written")}
IN_A_FILE = "{node} gets no piece of an instance's root, which Ansible would put into a temporary file there, for {why}"
OWN_WAY = (
    "its connection takes no standard input, it becomes root by su, or Ansible keeps remote files or runs the task in "
    "the background; have it by ssh, by sudo if at all, without those"
)
#: Most bytes of an answer. 1,000 boards with the 50 newest events of each take 9.5 million.
MOST = 64 * 10**6
#: Most values of an answer, each of which takes the controller some hundred bytes. So many boards have a third of that.
MANY = 2 * 10**6
#: Most levels of mappings and lists in an answer: no module's has twenty, and Ansible fails at a few hundred.
DEEPEST = 40
TOO_DEEP = (
    f"the node answers with more than {DEEPEST} levels of data, which no module does: see whether that node is sound, "
    "and set it up again"
)
#: Most warnings, and most notices of what goes with a release, of an answer that Ansible shows; and most characters of
#: one: a check of a machine names each path of what it notes.
WARNINGS, WARNING = 20, 2000


class TooLong(Exception):
    """A node answered with more than is looked at."""


def only_data(result: dict[str, Any], own: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a node's result without keys that Ansible obeys: root of one node must not get control of the controller.

    Control characters are escaped again, because the node's modules may have been changed.

    :param own: facts in it that come from Ansible itself, and that of its module (FACTS).
    """
    if deeper(result, DEEPEST):
        return dict(failed=True, changed=False, msg=TOO_DEEP)
    words = [word for word in WORDS if result.pop(word, None) not in (None, own)]
    if words:
        display.warning(f"a node says {', '.join(words)} to Ansible: not obeyed")
    result = {
        key: value for key, value in result.items() if key == "_ansible_parsed" or not key.startswith("_ansible_")
    }
    result.pop(PACKED, None)  # filters would read that in place of what was checked
    if own:
        result["ansible_facts"] = own
    if "exception" in result:  # since ansible-core 2.19 made of the module's words, and shown first
        result["exception"] = _shown(result["exception"])
    result = printable_data(result)
    # Ansible shows both whatever else is made of the answer, and fails at others than texts.
    for key, told in (("deprecations", _notice), ("warnings", _words)):
        said = result.pop(key, None)
        if isinstance(said, list):
            result[key] = [one for one in map(told, said[:WARNINGS]) if one is not None]
    return result


def _shown(value: Any) -> Any:
    """Return a summary of what went wrong, as ansible-core has it since 2.19, with all texts in it printable."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _shown(getattr(value, field.name)) for field in fields(value)})
    return value


def _words(said: Any) -> str | None:
    """Return the text of a warning, which is a summary since ansible-core 2.19, on one line, as a further one could be
    taken for one of ours; None of what has none.
    """
    text = getattr(getattr(said, "event", None), "msg", said)
    return brief(one_line(text), WARNING) if isinstance(text, str) else None


def _notice(said: Any) -> dict[str, str] | None:
    """Return a notice of what goes with a release of the collection; None of what is none."""
    text, version = (said.get("msg"), said.get("version")) if isinstance(said, dict) else (said, None)
    text, version = _words(text), version or getattr(said, "version", None)
    if text is None or not isinstance(version, str):
        return None
    return dict(msg=text, version=brief(one_line(version)), collection_name=COLLECTION)


class ShortCalls(ActionBase):
    """Runs the module of the same name from the node's copy, if that has exactly this release."""

    TRANSFERS_FILES = False
    #: Why the node's copy did not run the last call.
    _why = ""

    @property
    def module(self) -> str:
        """Full name of the task's module. A former name in a play leads to the present one.

        In ansible-core 2.16 to 2.18 the task's resolved_action is this action plugin's name for all that it follows.
        """
        found = module_loader.find_plugin_with_context(self._task.action, collection_list=self._task.collections)
        return found.resolved_fqcn or self._task.action

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        by_itself = self._task.async_val and not self._connection.has_native_async
        how: dict[str, Any] = dict(wrap_async=True) if by_itself else {}
        result.update(self._execute_module(task_vars=task_vars, **how))
        return result

    def _execute_module(
        self,
        module_name: str | None = None,
        module_args: dict[str, Any] | None = None,
        tmp: str | None = None,
        task_vars: dict[str, Any] | None = None,
        **how: Any,
    ) -> dict[str, Any]:
        name, given = module_name or self.module, self._task.args if module_args is None else module_args
        node = self._task.delegate_to or (task_vars or {}).get("inventory_hostname")
        with told_while_it_lasts(awaited(node, name.rpartition(".")[2], given)):
            short = not how and self._can_be_short()
            said = self._by_copy(name, dict(given), task_vars or {}) if short else None
            if said is None and given.get("step") in IN_NO_FILE.get(name.rpartition(".")[2], ()):
                msg = IN_A_FILE.format(node=node, why=self._why if short else OWN_WAY)
                said = dict(failed=True, changed=False, msg=msg)
            if said is None:
                said = super()._execute_module(name, given, tmp, task_vars, **how)
        return only_data(said, self._own_facts(name.rpartition(".")[2], said.get("ansible_facts")))

    def _own_facts(self, module: str, said: Any) -> dict[str, Any] | None:
        """Return the facts of an answer that count: the interpreter that Ansible found, and that of the module; None
        without any.
        """
        key, fact = self._discovered_interpreter_key, FACTS.get(module)
        own = {key: self._discovered_interpreter} if key else {}
        if fact and isinstance(said, dict) and fact in said:
            own[fact] = said[fact]
        return own or None

    def _low_level_execute_command(self, *words: Any, **how: Any) -> dict[str, Any]:
        """Return what a command said; raise TooLong as soon as that is more than an answer has."""
        try:
            with at_most(MOST):
                said: dict[str, Any] = super()._low_level_execute_command(*words, **how)
        except Endless:
            raise TooLong(f"it has more than {MOST // 10**6} MB, and no more is read") from None
        text = said.get("stdout") or ""
        values = sum(map(text.count, ",[{"))
        if values > MANY:
            raise TooLong(f"it has {values} values, and at most {MANY} are looked at")
        return said

    def _transfer_file(self, *words: Any, **how: Any) -> Any:
        """Send a file; raise TooLong if the node says more to that than an answer has."""
        try:
            with at_most(MOST):
                return super()._transfer_file(*words, **how)
        except Endless:
            raise TooLong(f"it has more than {MOST // 10**6} MB, and no more is read") from None

    def _can_be_short(self) -> bool:
        """Return whether the connection takes standard input, and nothing was asked for that only Ansible's own way
        has.
        """
        by_terminal = self._connection.become is not None and self._connection.become.name == "su"
        asked = self._task.async_val or constants.DEFAULT_KEEP_REMOTE_FILES
        return self._connection.has_pipelining and not by_terminal and not asked

    def _by_copy(self, name: str, args: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any] | None:
        """Return the module's result; None if the node has no copy of this release, so that nothing was run."""
        self._update_module_args(name, args, task_vars)
        arguments = json.dumps(dict(ANSIBLE_MODULE_ARGS=args), cls=ENCODER)
        module = name.rpartition(".")[2]
        request = dict(module=module, arguments=arguments, profile="".join(PROFILE))
        python = self._python(task_vars)
        words = [self._compute_environment_string(), shlex.quote(python), "-I", f"{COPY}/{CALL}"]
        said = self._low_level_execute_command(" ".join(filter(None, words)), in_data=json.dumps(request).encode())
        _before, begun, result = said["stdout"].partition(f"{BEGUN}\n")
        if not begun:
            self._why = self._why_not(said, task_vars)
            display.v(f"{module} is sent with all that it imports: {self._why}")
            return None
        self._used_interpreter = python
        data = self._parse_returned_data(dict(said, stdout=result), *PROFILE)
        return data if isinstance(data, dict) else data.as_result_dict(for_round_trip=True)  # since ansible-core 2.21

    def _why_not(self, said: dict[str, Any], task_vars: dict[str, Any]) -> str:
        """Return in words why the node's copy did not run; mostly another release was set up there last."""
        why = "".join((said["stderr"] or said["stdout"]).strip().splitlines()[-1:])
        if f"{COPY}/{CALL}" in why and "No such file" in why:
            node = self._task.delegate_to or task_vars["inventory_hostname"]
            return f"{node} has no copy of this release: set it up again"
        return f"{COPY} cannot run it ({one_line(brief(why))})"

    def _python(self, task_vars: dict[str, Any]) -> str:
        delegated = task_vars.get("ansible_delegated_vars", {}).get(self._task.delegate_to, task_vars)
        named = self._templar.template(delegated.get("ansible_python_interpreter") or "")
        return PYTHON if not named or named.startswith("auto") else named
