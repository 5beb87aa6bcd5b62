# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of instances for `ssh -F`, on the controller: what is in them, how they are kept, and which file of that name
is none.

Names, addresses and host keys come from the owner. This file cannot know whether they are right, but it checks that
they have the form of names, addresses and keys: ssh puts them into commands, some of which a shell reads (%h in
ProxyCommand).
"""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Sequence

from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import write_whole
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import INSTANCE
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_address, is_known_host, is_word
from ansible_collections.hetero.compute.plugins.plugin_utils.folders_of_others import of_others

TEXT = """\
Host {instance}
  HostName {ip}
  User root
  StrictHostKeyChecking yes
  UserKnownHostsFile /dev/null
  KnownHostsCommand /usr/bin/echo {known_hosts}
"""
#: {field of an instance: (its check, the error where that fails)}.
SOUND = dict(
    ip=(lambda value: is_address(value) or is_word(value), "ip is no address or host name"),
    known_hosts=(is_known_host, "known_hosts is no line of known_hosts"),
)


def keep(
    folder: str,
    instances: Iterable[Mapping[str, Any]],
    options: Sequence[str],
    present: bool = True,
    check: bool = False,
) -> dict[str, Any]:
    """Write a file for each instance, or remove it; return `changed` and `diff`, as a task's result has them.

    :param options: further lines of each file.
    :param check: only say what would change.
    :raises AnsibleActionFail: a file cannot be written or is somebody else's, others may write in the folder, or what
        is said of an instance is not sound.
    """
    changed, diff = False, []
    for instance in instances:
        name = named(instance)
        path = os.path.join(folder, name)
        wanted = text_for(instance, options) if present else None
        try:
            before = read(path)
            if before is not None and not is_ours(before, name):
                raise AnsibleActionFail(f"{path} is no file of an instance: move it away, or set another folder")
            if present and not check:
                _make(folder)
            if before != wanted and not check:
                write(path, wanted)
        except OSError as error:
            what = f"{path}: {error.strerror}: make folder {folder} writable, or set another"
            raise AnsibleActionFail(what) from error
        if before != wanted:
            changed = True
            diff.append(dict(before_header=path, after_header=path, before=before or "", after=wanted or ""))
    return dict(changed=changed, diff=diff)


def _make(folder: str) -> None:
    """Make the folder, or look at it again: others may have made it since the request was checked."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    others = of_others(folder)
    if others:
        what = f"{folder} is a folder {others}, and ssh would do what others put there"
        raise AnsibleActionFail(f"{what}: make it yours alone, or set another")


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


def is_ours(text: str, name: str) -> bool:
    """Return whether a file's text was written here for this instance, and is no other file of that name in ~/.ssh."""
    written = text.partition("\n")[2] if text.startswith("mode ") else text
    return written.startswith(TEXT.partition("{ip}")[0].format(instance=name))


def read(path: str) -> str | None:
    """Return the text of a file, or None; that of a file which others may read begins with a line that says so."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            return file.read() if mode == 0o600 else f"mode {mode:04o}\n{file.read()}"
    except FileNotFoundError:
        return None


def write(path: str, text: str | None) -> None:
    """Write a file whole or not at all, readable by its owner only; None removes it."""
    if text is None:
        os.unlink(path)
        return
    write_whole(path, text, 0o600)
