# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks under one ansible-core, on a proxy and a GPU host. If this fails, a user of this release gets no board.

Run by tests/versions/matrix.py.
"""

from __future__ import annotations

import json

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed


def test_node_lends_a_board_by_every_verb(site):
    """One run of Ansible through the life of an instance; its end once more, which is to change nothing."""
    proxy, _host, plays = site
    etc = proxy.folder / "etc" / "hetero"
    config = json.loads((etc / "proxy.json").read_text())
    config["boards"]["0"].update(console="/etc/hetero/board0.log")
    (etc / "proxy.json").write_text(json.dumps(config))
    (etc / "board0.log").write_text("login:\n")
    verbs = ["provision_instance", "status", "console", "stop_instance", "start_instance", "reboot_instance"]
    verbs += ["rebuild_instance", "extend_instance", "reconcile"]
    request = dict(instance="jackie", flavor=FLAVOR, hours="5", fresh="true")
    extra = [word for name, value in request.items() for word in ("-e", f"{name}={value}")]
    words = [*extra, *(f"hetero.compute.{verb}" for verb in verbs)]
    rc, output = plays.end(plays.start_file("hetero.compute.terminate_instance", *words), limit=900)
    assert rc == 0, output
    assert changed(output) > 0, output
    assert "  login:\n" in output, output
    assert set(json.loads((etc / "pdu.json").read_text())["outlets"].values()) == {"off"}
    rc, output = plays.play("terminate_instance", instance="jackie")
    assert (rc, changed(output)) == (0, 0), output
