# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""People write variables at the top of host_vars/NAME.yml, as where files begin. The guide says: "once you change this
file, it is never written over". If this fails, the next run with replace=true removes them without a word, and the next
`proxy` sets the node up without them.

Tests moving/existing_boards.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet,pdu_driver,pdu_host"
ROWS = "".join(
    f"b{n},00:1a:ca:00:58:9{n},10.0.2.{n + 1},x86_64,4,8192,0,none,pdu-a,{n},apc,10.0.100.1\n" for n in (1, 2)
)
MINE = "tftp_proxy_dhcp: true\ntftp_proxy_ram_images: {x86_64: bookworm-amd64-ram}\n"


@pytest.mark.parametrize("where", ["first line", "behind ---", "between the remarks"])
def test_what_stands_above_the_mark_stays(tmp_path, where):
    """Lost: settings of the proxy node, such as that it is the DHCP server of its boards."""
    answers = {"proxy": PROXY, "pdus": {"pdu-a": {"username": "apc"}}}
    (tmp_path / "boards.csv").write_text(f"{HEAD}\n{ROWS}")
    moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers=answers)
    path = tmp_path / "site" / "host_vars" / "proxy1.yml"
    first, rest = path.read_text().split("\n", 1)
    made = f"{first}\n{rest}"
    path.write_text(
        {
            "first line": MINE + made,
            "behind ---": f"---\n{MINE}{made}",
            "between the remarks": f"{first}\n{MINE}{rest}",
        }[where]
    )
    (tmp_path / "boards.csv").write_text(
        f"{HEAD}\n{ROWS}".replace("10.0.2.3", "10.0.2.33").replace("pdu-a,2", "pdu-a,7")
    )
    result = moved(tmp_path / "site", "csv", tmp_path / "boards.csv", replace=True)
    assert "tftp_proxy_dhcp: true" in path.read_text(), (result["lines"], path.read_text())
