# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a driver's file says of itself, before a line of it is run."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside.source import MOST, read

ORDER = {"column": "1.3.6.1.4.1.32473.1.6", "value": 1}
TABLE = {"state": "1.3.6.1.4.1.32473.1.4", "on": dict(ORDER, value=2), "off": ORDER}


def test_it_is_read_and_not_run():
    """Lost: what the list of drivers does to a node: it would run each of them."""
    text = 'PACKAGES = ["python3-serial"]\nPOWER_API = 3\nraise SystemExit(9)\n'
    source = read("/drivers/acme.py", text.encode("utf-8-sig"))
    assert (source.name, source.kind, source.api, source.packages) == ("acme", "power", 3, ("python3-serial",))
    assert source.table is None


def test_lines_with_a_type_are_read_as_well():
    """Lost: the packages of a driver whose author writes types; the set-up would not install them."""
    source = read("/drivers/acme.py", b'POWER_API: int = 2\nPACKAGES: list[str] = ["python3-serial"]\nLATER: int\n')
    assert (source.kind, source.api, source.packages) == ("power", 2, ("python3-serial",))


def test_a_table_is_a_driver():
    """Lost: a PDU that differs from others by four numbers, for who writes no Python."""
    source = read("/drivers/acme.json", json.dumps({"power_api": 1, "snmp_table": TABLE}).encode())
    assert (source.name, source.kind, source.api, source.table) == ("acme", "power", 1, ("snmp_table", TABLE))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("Acme.py", "POWER_API = 1", r"Acme.py: has no name of a driver's file: call it by small letters"),
        ("a-b.py", "POWER_API = 1", r"has no name of a driver's file"),
        ("acme.txt", "POWER_API = 1", r"has no name of a driver's file"),
        ("acme.py", "POWER_API = 1\nBOOT_API = 1", r"acme.py: says POWER_API and BOOT_API: give it one line POWER_"),
        ("acme.py", "POWER_API = 'one'", r"its POWER_API is no whole number: write POWER_API = 1"),
        ("acme.py", "POWER_API = True", r"its POWER_API is no whole number"),
        ("acme.py", "POWER_API = number()", r"its POWER_API is no whole number"),
        ("acme.py", "POWER_API = 1\nPACKAGES = 'a b'", r"its PACKAGES are no names of packages"),
        ("acme.py", "POWER_API = 1\nPACKAGES = ['--purge']", r"its PACKAGES are no names of packages"),
        ("acme.py", "POWER_API = 1\nif x\n", r"is no Python of node .+: line 2: "),
        ("acme.py", "\0", r"is no Python of node .+"),
        ("acme.py", "POWER_API = 1\nPACKAGES = {{}: 1}", r"its PACKAGES are no names of packages"),
        ("acme.py", "BOOT_API = 1\nDHCP_OPTIONS = {[]: 1}", r"its DHCP_OPTIONS are no mapping"),
        ("acme.py", f"POWER_API = {'+'.join(['1'] * 20000)}", r"nested too deep|is no whole number"),
        ("acme.py", f"POWER_API = {'-' * 100000}1", r"nested too deep|is no whole number|too many"),
        ("acme.json", "{", r"acme.json: is no JSON"),
        ("acme.json", "[]", r"has no table of a PDU: give power_api: 1, and one of snmp_table, api_table"),
        ("acme.json", json.dumps({"power_api": 1}), r"has no table of a PDU"),
        ("acme.json", json.dumps({"power_api": 1, "snmp_table": {}, "api_table": {}}), r"has no table of a PDU"),
        ("acme.json", json.dumps({"snmp_table": {}}), r"does not say its power_api"),
        ("acme.json", json.dumps({"power_api": 1, "snmp_table": []}), r"its snmp_table is no mapping"),
        ("acme.json", json.dumps({"power_api": 1, "snmp_table": {}, "is_on": []}), r"has an unknown key is_on"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(name, text, words):
    """Lost: the hour of who wrote a driver, and is told that there is no such one."""
    with pytest.raises(BadInput, match=words) as told:
        read(f"/drivers/{name}", text.encode())
    assert told.value.remedy


def test_what_is_no_text_is_no_driver():
    """Lost: a proxy's memory, or a traceback."""
    with pytest.raises(BadInput, match="is not UTF-8"):
        read("/drivers/acme.py", b"\xff\xfe")
    with pytest.raises(BadInput, match=f"is longer than {MOST} bytes"):
        read("/drivers/acme.py", b"#" * (MOST + 1))
