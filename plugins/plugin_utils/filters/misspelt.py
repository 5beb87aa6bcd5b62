# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.misspelt`: extra variables that are nearly options. Ansible takes them without a word, and the
play goes on as if nothing had been said.
"""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars

#: In shorter options a wrong letter makes another word, which an operator may call a variable (stage, state).
LONG = 6
#: Of these, one letter more or less does (keys, key; nod, node).
SHORT = 4


def misspelt(options):
    if isinstance(options, (str, dict)):
        raise AnsibleFilterError("hetero.compute.misspelt needs a list of options before the bar")
    meant = {name: meant_by(name, options) for name in map(str, load_extra_vars(DataLoader())) if name not in options}
    texts = [f"{name} is no option: is {option} meant?" for name, option in meant.items() if option]
    return " ".join([*texts, "A variable of your own needs another name"]) if texts else ""


def meant_by(name, options):
    """The option of which a name is a slip of one letter; None for another name."""
    return next((option for option in options if len(option) >= SHORT and is_slip(name, option)), None)


def is_slip(name, option):
    start = next((at for at, (one, other) in enumerate(zip(name, option)) if one != other), min(len(name), len(option)))
    rest, wanted = name[start:], option[start:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:] and len(wanted) > 1
    return rest[1:] == wanted or rest == wanted[1:] or swapped or (len(option) >= LONG and rest[1:] == wanted[1:])
