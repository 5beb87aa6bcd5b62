# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.mistakes`: what is wrong with a request, as a list of texts."""

from __future__ import annotations

from typing import Any, Sequence

from ansible.errors import AnsibleFilterError
from jinja2.runtime import Context

from ansible_collections.hetero.compute.plugins.plugin_utils import request_mistakes, request_words
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.requested import of_the_play


def mistakes(context: Context, checks: Any, words: Sequence[str] = ()) -> list[str]:
    """Return what is wrong, in the words' and checks' order; raise AnsibleFilterError if one of these is unknown."""
    unknown = [name for name in checks if name not in request_mistakes.CHECKS]
    unknown += [word for word in words if word not in request_words.WORDS]
    if isinstance(checks, str) or unknown:
        raise AnsibleFilterError(f"hetero.compute.mistakes needs a list of checks before the bar: {checks}, {unknown}")
    return list(request_mistakes.mistakes(of_the_play(context), words, checks))
