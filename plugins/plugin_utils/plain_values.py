# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables' values as Python's own. A filter gets containers of Ansible's that evaluate what is in them whenever it is
read (since ansible-core 2.19), which for flavors that are compared with a thousand boards takes seconds.
"""

from __future__ import annotations

from typing import Any, Mapping


def plain(value: Any) -> Any:
    """Return mappings and lists of a value as dictionaries and lists, with all that is in them read once."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value
