# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.meant`: the known word that a wrong one is most similar to."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like


def meant(word: Any, known: Any) -> str:
    if isinstance(known, str):
        raise AnsibleFilterError("hetero.compute.meant needs a list of known words, or a mapping by them")
    return like(word, [str(one) for one in known]) or ""
