# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write on the controller a file for each instance, for `ssh -F`; all of them in one task, without a module.

Names, addresses and host keys come from the owner. This file cannot know whether they are right, but it checks that
they have the form of names, addresses and keys: ssh puts them into commands, some of which a shell reads (%h in
ProxyCommand).
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import write_whole
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import INSTANCE
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_address, is_known_host, is_word
from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import TEXT, is_ours, read

#: {field of an instance: (its check, the error where that fails)}.
SOUND = dict(
    ip=(lambda value: is_address(value) or is_word(value), "ip is no address or host name"),
    known_hosts=(is_known_host, "known_hosts is no line of known_hosts"),
)
SPEC = dict(
    folder=dict(type="path", required=True),
    instances=dict(type="list", elements="dict", required=True),
    options=dict(type="list", elements="str", default=[]),
    state=dict(type="str", choices=["present", "absent"], default="present"),
)


class ActionModule(ActionBase):
    """Never touches a host; in check mode it only says what would change."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(SPEC)
        result.update(changed=False, diff=[])
        for instance in arguments["instances"]:
            name = named(instance)
            path = os.path.join(arguments["folder"], name)
            wanted = text_for(instance, arguments["options"]) if arguments["state"] == "present" else None
            try:
                before = read(path)
                if before is not None and not is_ours(before, name):
                    raise AnsibleActionFail(f"{path} is no file of an instance: move it away, or set another folder")
                if before != wanted and not self._task.check_mode:
                    write(path, wanted)
            except OSError as error:
                raise AnsibleActionFail(
                    f"{path}: {error.strerror}: make folder {arguments['folder']} writable, or set another"
                ) from error
            if before != wanted:
                result["changed"] = True
                headers = dict(before_header=path, after_header=path)
                result["diff"].append(dict(headers, before=before or "", after=wanted or ""))
        return result


def named(instance: Mapping[str, Any]) -> str:
    """Return the name of an instance, which becomes the name of a file."""
    name = str(instance.get("instance"))
    if not INSTANCE.fullmatch(name):
        raise AnsibleActionFail(f"'{name}' is no name of an instance: give what board_claim or tilera_boot returned")
    return name


def text_for(instance: Mapping[str, Any], options: Sequence[str]) -> str:
    """Return the text of an instance's file.

    :raises AnsibleActionFail: a value has a line break, which would begin another option; some options run programs.
    """
    values = {key: str(instance.get(key) or "") for key in ("instance", "ip", "known_hosts")}
    for key, value in [*values.items(), *(("options", option) for option in options)]:
        if not value or len(value.splitlines()) > 1:
            raise AnsibleActionFail(f"{values['instance']}: {key} is not one line: give what tilera_boot returned")
    for key, (sound, what) in SOUND.items():
        if not sound(values[key]):
            said = brief(repr(values[key]), 80)
            remedy = "give what tilera_boot returned, and see whether the node that said it is sound"
            raise AnsibleActionFail(f"{values['instance']}: {what} ({said}): {remedy}")
    return TEXT.format(**values) + "".join(f"  {option}\n" for option in options)


def write(path: str, text: str | None) -> None:
    """Write a file whole or not at all, readable by its owner only; None removes it."""
    if text is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    write_whole(path, text, 0o600)
