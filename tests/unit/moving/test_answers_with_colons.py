# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers with colons and nothing but digits, which YAML 1.1 takes for a number to the base of 60.

Lost: a board with a MAC such as QEMU's usual one, to a message with a number that nobody wrote; and the right outlet of
a MasterSwitch Plus, whose outlets past the first switch are called SWITCH:OUTLET (module pdu_power).

Tests moving/answers.py.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.moving.moves import moved, questions, wiring

EXPORTER = "jackie:\n  NetworkPowerPort: {model: apc, host: 10.0.100.1, index: 5}\n"
ANSWERS = """proxy: {name: proxy1, server: 10.0.2.254}
boards:
  jackie:
    mac: %s
    ip: 10.0.2.2
    arch: x86_64
    vcpus: 4
    memory_mb: 8192
    local_gb: 0
"""


def answered(tmp_path, mac, more=""):
    site = tmp_path / "site"
    site.mkdir()
    (site / "answers.yml").write_text(ANSWERS % mac + more)
    (tmp_path / "exporter.yaml").write_text(EXPORTER)
    return moved(site, "labgrid", tmp_path / "exporter.yaml")


def test_a_mac_of_digits(tmp_path):
    assert ("jackie", "mac") not in questions(answered(tmp_path, "52:54:00:12:34:56"))


def test_an_outlet_of_the_second_switch(tmp_path):
    answered(tmp_path, "52:54:00:12:34:5a", "    outlet: 2:5\n")
    assert wiring(tmp_path / "site")["tftp_proxy_boards"][0]["outlet"] == "2:5"


def test_an_outlet_with_zeros_is_no_octal_number(tmp_path):
    answered(tmp_path, "52:54:00:12:34:5a", "    outlet: 010\n")
    assert wiring(tmp_path / "site")["tftp_proxy_boards"][0].get("outlet") != 8
