# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role debian_image tells cloud-init, as far as cloud-init's own schema bounds it.

The bounds are those of cloud-init 22.4 (Debian 12), schema-cloud-config-v1.json: cc_locale has a string, cc_ssh at
least one type of key. Scenarios pcs and arm_pcs ask booted roots whether cloud-init complained.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.machine_identity import HOST_KEY

CONFIG = Path(__file__).resolve().parents[3] / "roles" / "debian_image" / "files" / "cloud.cfg"


def test_cloud_init_takes_all_of_it_and_makes_no_host_key():
    """Lost: a boot without "Invalid cloud-config provided"; or the host key that the proxy has written down."""
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    assert config["locale"] == "false", "cc_locale does nothing then (util.is_false)"
    kinds = config["ssh_genkeytypes"]
    assert [f"/etc/ssh/ssh_host_{kind}_key" for kind in kinds] == [HOST_KEY], "there already, so none is made"
    assert config["ssh_deletekeys"] is False
