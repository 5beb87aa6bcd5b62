# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What errors call the machine that they are about: who reads them sits at another one, where the playbooks are."""

from __future__ import annotations

import os

#: By its host name, which is what its inventory calls it in most sites: "node proxy1".
THIS_NODE = f"node {os.uname().nodename}"
