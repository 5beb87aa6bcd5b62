# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.status_page`: boards as a page for a browser, built by plugin_utils/page."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.heard import seen
from ansible_collections.hetero.compute.plugins.plugin_utils.page.page import status_page as page


def status_page(snapshots: Any, title: str = "Boards", hosts: Any = None) -> str:
    snapshots, hosts = seen(snapshots), seen(hosts or {})
    if not _are_snapshots(snapshots, "boards") or not _are_snapshots(hosts, "gpus"):
        raise AnsibleFilterError("hetero.compute.status_page needs what filter snapshots makes, of proxies and hosts")
    return page(snapshots, title, hosts)


def _are_snapshots(snapshots: object, of: str) -> bool:
    return isinstance(snapshots, dict) and all(
        isinstance(one, dict) and {"taken_at", of, "claims"} <= set(one) for one in snapshots.values()
    )
