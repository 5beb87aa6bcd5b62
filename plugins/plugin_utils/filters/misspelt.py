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

from ansible_collections.hetero.compute.plugins.module_utils.near import meant_by


def misspelt(options):
    if isinstance(options, (str, dict)):
        raise AnsibleFilterError("hetero.compute.misspelt needs a list of options before the bar")
    meant = {name: meant_by(name, options) for name in map(str, load_extra_vars(DataLoader())) if name not in options}
    texts = [f"{name} is no option: is {option} meant?" for name, option in meant.items() if option]
    return " ".join([*texts, "A variable of your own needs another name"]) if texts else ""
