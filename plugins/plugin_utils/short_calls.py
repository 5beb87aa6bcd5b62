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
from ansible_collections.hetero.compute.plugins.plugin_utils.bounded_reading import Endless, at_most
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import code
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import FIRST, QUIET, told_while_it_lasts

try:  # since ansible-core 2.19
    from ansible.module_utils.common.json import Direction, get_module_encoder

    PROFILE: tuple[str, ...] = ("legacy",)
    ENCODER = get_module_encoder(*PROFILE, Direction.CONTROLLER_TO_MODULE)
except ImportError:
    from ansible.module_utils.common import json as older

    PROFILE, ENCODER = (), older.AnsibleJSONEncoder

display = Display()

#: The node's own Python, which its commands use, unless the inventory names another.
PYTHON = "/usr/bin/python3"
#: The copy of exactly this release on nodes. It is computed when a play's process loads an action plugin, once for all
#: tasks.
COPY = f"{FOLDER}/{name_of(code())}"
#: Keys of a result that Ansible obeys: hosts and groups, variables of the play's host (in the playbooks the
#: controller), and what AWX stores of a job. No module that is called here returns them.
WORDS = ("add_host", "add_group", "ansible_facts", "ansible_stats")
#: What modules do that tell nothing until they end.
LASTING = {
    "board_reconcile": "looks at boards and mends what is safe",
    "host_reconcile": "looks at containers and guests and mends what is safe",
    "gpu_reconcile": "looks who can open which GPU and closes what nobody was given",
}
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
    back="way back of",
)
#: Words of an operator to such a module, and what it does for them.
BY_WORD = {"adopt": "adopts {}", "forget": "ends the claims of {}", "remove": "removes what lies there of {}"}
#: Most names in such a line.
NAMED = 5
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
#: Most warnings of an answer that Ansible shows.
WARNINGS = 20


class TooLong(Exception):
    """A node answered with more than is looked at."""


def only_data(result: dict[str, Any], own: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a node's result without keys that Ansible obeys: root of one node must not get control of the controller.

    Control characters are escaped again, because the node's modules may have been changed.

    :param own: facts in it that come from Ansible itself.
    """
    if deeper(result, DEEPEST):
        return dict(failed=True, changed=False, msg=TOO_DEEP)
    words = [word for word in WORDS if result.pop(word, None) not in (None, own)]
    if words:
        display.warning(f"a node says {', '.join(words)} to Ansible: not obeyed")
    result = {
        key: value for key, value in result.items() if key == "_ansible_parsed" or not key.startswith("_ansible_")
    }
    if own:
        result["ansible_facts"] = own
    if is_dataclass(result.get("exception")):  # since ansible-core 2.19: made of the module's words, and shown first
        error = result["exception"]
        values = {field.name: getattr(error.event, field.name) for field in fields(error.event)}
        texts = {name: printable(value) for name, value in values.items() if isinstance(value, str)}
        result["exception"] = replace(error, event=replace(error.event, **texts))
    result = printable_data(result)
    # Ansible shows both whatever else is made of the answer, and fails at others than texts.
    result.pop("deprecations", None)
    warnings = result.pop("warnings", None)
    if isinstance(warnings, list):
        result["warnings"] = [brief(one) if isinstance(one, str) else one for one in warnings[:WARNINGS]]
    return result


def work_of(module: str, given: dict[str, Any]) -> str:
    """Return what a call of a module does, for people: "start of jackie", "import of debian-12", or the module's name.

    :param given: its arguments.
    """
    if module == "instance":
        return one_line(brief(f"{WORK.get(str(given.get('state', 'running')), 'work on')} {given.get('instance')}"))
    if module == "instance_copy":
        return one_line(brief(f"{COPIES.get(str(given.get('step')), 'move of')} {given.get('instance')}"))
    if module == "pdu_info":
        return one_line(brief(f"look at PDU {given.get('pdu') or given.get('host')}"))
    if module == "image_store" and given.get("name"):
        return one_line(brief(f"{'removal' if given.get('state') == 'absent' else 'import'} of {given['name']}"))
    return module


def lasts(node: Any, module: str, given: dict[str, Any]) -> tuple[str, float]:
    """Return (what is waited for, in words; seconds until that is said) of a call of a module.

    :param given: its arguments.
    """
    does = LASTING.get(module)
    if does is None:
        return f"{node}: {work_of(module, given)}", QUIET
    named = [(word, given.get(word) or []) for word in BY_WORD]
    asked = [
        BY_WORD[word].format(", ".join(map(str, names[:NAMED])) + (" and more" if names[NAMED:] else ""))
        for word, names in named
        if isinstance(names, list) and names
    ]
    does = " and ".join(asked) or does
    return one_line(f"{node}: {module}, which {does},"), FIRST


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
        result.update(self._execute_module(task_vars=task_vars))
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
        with told_while_it_lasts(*lasts(node, name.rpartition(".")[2], given)):
            short = not how and self._can_be_short()
            said = self._by_copy(name, dict(given), task_vars or {}) if short else None
            if said is None and given.get("step") in IN_NO_FILE.get(name.rpartition(".")[2], ()):
                msg = IN_A_FILE.format(node=node, why=self._why if short else OWN_WAY)
                said = dict(failed=True, changed=False, msg=msg)
            if said is None:
                said = super()._execute_module(name, given, tmp, task_vars, **how)
        key, found = self._discovered_interpreter_key, self._discovered_interpreter
        return only_data(said, {key: found} if key else None)

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
