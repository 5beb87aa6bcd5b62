# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read for a request, unless something is wrong with it by now."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleFilterError


def sound(read: Any) -> Mapping[str, Any]:
    """Return what was read.

    :param read: with its `problem` in words, "" for none.
    :raises AnsibleFilterError: it has one.
    """
    if not isinstance(read, Mapping) or "problem" not in read:
        raise AnsibleFilterError("hetero.compute.sound needs a mapping with problem before the bar")
    if read["problem"]:
        raise AnsibleFilterError(str(read["problem"]))
    return read
