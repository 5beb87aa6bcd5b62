# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site's inventory has a password of a console command in a vault; proxy.json has what Ansible made of it.

Lost: the password of a BMC, in clear in the folder of the inventory, by `cabling -e learn=… -e write=FILE`, and by the
next `git push`.
"""

from __future__ import annotations

import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.learned_wiring import write_wiring
from ansible_collections.hetero.compute.tests.unit.moving.moves import MARKER

PRIVATE = f"ipmitool -I lanplus -H 10.0.100.20 -U operator -P {MARKER} sol activate"
PLACE = {"pdu": "pdu-a", "outlet": "5"}


def written(path, **params):
    return write_wiring(dict(file=str(path), host="p1", **params), False)["lines"], path.read_text()


def test_a_password_of_a_vault_is_written_nowhere(tmp_path):
    """Of a board that was learned, and of one of which the inventory speaks."""
    boards = {"0": {"console_command": PRIVATE}, "1": {"disk": "none", "console_command": PRIVATE}}
    learned = {"0": {**PLACE, "console_command": PRIVATE}}
    lines, text = written(tmp_path / "host_vars" / "p1.yml", boards=boards, wiring=learned)
    assert MARKER not in text + str(lines)
    assert yaml.safe_load(text)["tftp_proxy_boards"] == {0: PLACE, 1: {"disk": "none"}}
    left_out = "its console_command may hold a password and is not here: keep it as it is"
    assert text.count(f"  # {left_out}") == 2
    assert lines[1:] == [f"  # 0: {left_out}", f"  # 1: {left_out}"]


def test_a_command_without_one_is_written(tmp_path):
    wiring = {"0": {**PLACE, "console_command": "picocom -b 115200 /dev/ttyUSB3"}}
    _lines, text = written(tmp_path / "wiring.yml", wiring=wiring)
    assert yaml.safe_load(text)["tftp_proxy_boards"] == {0: wiring["0"]}
