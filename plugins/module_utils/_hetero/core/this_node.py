# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of this machine in errors: their reader sits at another machine, where the playbooks are."""

from __future__ import annotations

import os

#: "node" and the host name, by which most inventories know the machine: "node proxy1".
THIS_NODE = f"node {os.uname().nodename}"
