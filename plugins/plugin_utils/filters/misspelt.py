# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.misspelt`: extra variables that are almost options, and words that belong to no variable.

Ansible accepts both silently, and the play would go on without them.
"""

from __future__ import annotations

from typing import Any, Collection, Iterator, Mapping

from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv, split_args
from ansible.utils.vars import load_extra_vars

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import SHORT, meant_by

#: What people call an option who have not read its name.
CALLED = {"name": "instance", "instance_type": "flavor", "lease": "hours", "ssh_key": "key", "disk": "boot_source"}
#: What modules call it, whose errors say that it is to be raised.
TIMEOUT = "timeout is no option: give hetero_boot_timeout for a verb's time, or seconds for a test of cables"
#: Key of Ansible's parser for words that belong to no NAME=.
LEFT_OVER = "_raw_params"
#: Parts of names whose values are never shown, also if they are cut at a blank.
SECRET = ("community", "credential", "key", "pass", "secret", "token")


def misspelt(options: Any, rest: str | None = None, vain: Mapping[str, str] | None = None) -> str:
    """Return in words what is wrong with the given extra variables, or "".

    :param options: names of the playbook's options.
    :param rest: an option whose value may have blanks, if it comes last.
    :param vain: {option of another playbook: what to say}. In an inventory such names are anybody's variables.
    """
    if isinstance(options, (str, dict)):
        raise AnsibleFilterError("hetero.compute.misspelt needs a list of options before the bar")
    given = {str(name): value for name, value in load_extra_vars(DataLoader()).items()}
    meant = {name: _meant(name, options) for name in given if name not in options}
    texts = [f"{name} is no option: is {option} meant?" for name, option in meant.items() if option]
    said = [" ".join([*texts, "A variable of your own needs another name"])] if texts else []
    # -e --check=true names no option
    dashed = [one_line(brief(name)) for name, option in meant.items() if name.startswith("-") and not option]
    said += [f"{name} stands in -e, where only NAME=VALUE does: give it by itself, or not at all" for name in dashed]
    in_vain = [name for name, value in given.items() if vain and name in vain and value not in ("", None)]
    said += [f"{name} {vain[name]}" for name in in_vain] if vain else []
    said += [TIMEOUT] if "timeout" in given and "timeout" not in options else []
    return "; ".join([*said, *_left_over(rest)])


def _meant(name: str, options: Collection[str]) -> str | None:
    """Return the option that a name stands for (--hours and Hours stand for hours), or None for another name."""
    bare = name.lstrip("-")
    alike = bare.replace("-", "_").lower()
    known = alike in options and (len(alike) >= SHORT or bare != name)
    if known:
        return alike
    called = CALLED.get(alike) or CALLED.get(meant_by(alike, CALLED) or "")
    return called if called in options else meant_by(bare, options)


def _left_over(rest: str | None) -> Iterator[str]:
    """Yield in words what each -e holds besides NAME=VALUE, which Ansible loses, as of `hours = 2`.

    :param rest: an option whose value may have blanks, if it comes last.
    """
    for text in context.CLIARGS.get("extra_vars", ()):
        if not text or text[0] in "@[{":
            continue
        given = parse_kv(text)
        left = given.pop(LEFT_OVER, "")
        if not left or _goes_on(text, rest):
            continue
        hidden = any(part in name.lower() for name in given for part in SECRET) or "PRIVATE KEY" in left
        words = "a part that is not shown, for it may be secret," if hidden else one_line(brief(left))
        yield (
            f"left over in -e: {words} is no NAME=VALUE: write = without blanks beside it, and a value with blanks "
            """in quotes of its own, as -e reason='"its fan rattles"'"""
        )


def _goes_on(text: str, option: str | None) -> bool:
    """Return whether all words that are no NAME=VALUE follow this option, and it is the last one."""
    words: list[Any] = [word.partition("=")[::2] if "=" in word else None for word in split_args(text)]
    named = [at for at, word in enumerate(words) if word is not None]
    return bool(option and named) and words[named[-1]][0] == option and named == list(range(len(named)))
