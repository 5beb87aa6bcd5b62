# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LAVA's device dictionaries, and command lines that switch power. If these fail, a line that nobody understood names
an outlet, or a password of it is written down.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.power_commands import understood
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources.lava import variables
from ansible_collections.hetero.compute.tests.unit.moving.moves import (
    MARKER,
    PROXY,
    SAMPLES,
    files,
    moved,
    questions,
    wiring,
)

REST = dict(arch="aarch64", vcpus=4, memory_mb=2048, local_gb=0, driver="uboot")


def answered(number):
    return {**REST, "mac": f"02:00:00:00:01:0{number}", "ip": f"10.0.2.{number}"}


ANSWERS = {
    "proxy": PROXY,
    "boards": {name: answered(number) for number, name in enumerate(("jackie", "bob", "carol", "dave"), 1)},
    "pdus": {"pdu09": {"driver": "apc", "host": "10.0.100.9"}},
}


def test_a_folder_of_dictionaries(tmp_path):
    result = moved(tmp_path, "lava", "lava")
    asked = questions(result)
    assert ("jackie", "mac") not in asked
    assert ("bob", "ip") not in asked
    assert "its device type is beaglebone-black" in asked["jackie", "arch"]
    assert "power_on_command runs relais, of which no outlet is known" in asked["carol", "pdu"]
    assert "port 7001 of the LAVA worker" in asked["bob", "console_from"]
    assert "services switches it" in asked["pdu09", "driver"]
    moved(tmp_path, "lava", "lava", answers=ANSWERS, replace=True)
    said = wiring(tmp_path)
    ipmi = {"driver": "ipmi", "host": "10.0.100.20"}
    assert said["tftp_proxy_pdus"] == {
        "10.0.100.1": {"driver": "snmp", "snmp_version": "2c", "host": "10.0.100.1"},
        "10.0.100.20": ipmi,
        "pdu09": {"driver": "apc", "host": "10.0.100.9"},
    }
    by_pdu = {wire.get("pdu"): wire.get("outlet") for wire in said["tftp_proxy_boards"].values()}
    assert by_pdu == {"10.0.100.1": 5, "10.0.100.20": 1, "pdu09": 4, None: None}
    consoles = [wire["console_from"] for wire in said["tftp_proxy_boards"].values() if "console_from" in wire]
    assert consoles == [{"type": "telnet", "host": "terminals", "port": port} for port in (7020, 7018)]
    assert MARKER in (SAMPLES / "lava" / "bob.jinja2").read_text()
    assert MARKER not in str(files(tmp_path)) + str(result)


def test_a_templates_own_words_are_not_run():
    """Values that are no plain ones are left out."""
    said = variables("{% set a = '1' %}{% set b = a ~ '2' %}{% set c = cycler.__init__ %}{% set d = ['x'] %}", "x")
    assert said == {"a": "1", "d": ["x"]}


@pytest.mark.parametrize(("name", "text"), [("x.jinja2", "{% set a = %}"), ("x.yaml", "a: 1"), ("x.yaml", "{")])
def test_what_is_no_dictionary_is_said(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput):
        moved(tmp_path / "site", "lava", tmp_path / name)


@pytest.mark.parametrize(
    ("line", "fed", "said"),
    [
        ("pduclient --daemon d --hostname pdu1 --command on --port 08", ("pdu1", "8"), {}),
        ("/usr/local/lab-scripts/snmp_pdu_control --hostname pdu14 --command reboot --port 7", ("pdu14", "7"), {}),
        ("sudo pdu_control --host=pdu20 --cmd=on --port=10", ("pdu20", "10"), {}),
        (
            "snmpset -v1 -c s 10.0.0.1 .1.3.6.1.4.1.318.1.1.4.4.2.1.3.2 i 1; sleep 1",
            ("10.0.0.1", "2"),
            dict(driver="snmp", snmp_version="1"),
        ),
        (
            "ipmitool -H 10.0.0.9 -U u -P s power cycle",
            ("10.0.0.9", "1"),
            dict(agent="fence_ipmilan", username="u"),
        ),
        (
            "fence_apc_snmp --ip=10.0.0.1 -n 3 -o on -c s",
            ("10.0.0.1", "3"),
            dict(driver="fence", agent="fence_apc_snmp"),
        ),
        ("curl -s 'http://u:s@plug/relay/0?turn=on'", ("plug", "0"), dict(api="shelly1", username="u")),
        ("wget -qO- 'http://plug/rpc/Switch.Set?id=0&on=true'", ("plug", "0"), dict(api="shelly2")),
        ("curl 'http://plug/cm?cmnd=Power%20On'", ("plug", "1"), dict(api="tasmota")),
        (
            "sh -c 'pduclient --hostname p --command off --port 1; sleep 5; pduclient --hostname p --port 1'",
            ("p", "1"),
            {},
        ),
    ],
)
def test_lines_that_are_understood(line, fed, said):
    switch = understood(line)
    assert switch.fed == fed
    assert said.items() <= switch.said.items()
    assert all(value != "s" for value in switch.said.values())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "'",
        "sleep 5",
        "relais on 2",
        "pduclient --hostname p --command on",
        "pduclient --hostname p --port one",
        "snmpset -v1 -c s 10.0.0.1 1.3.6.1.4.1.13742.6.4.1.2.1.2.2.3 i 1",
        "snmpset -v1 -c s 10.0.0.1 1.3.6.1.4.1.1718.3.2.3.1.11.1.1.3 i 1",
        "curl http://plug/unknown?outlet=1",
        "curl http://[::1/relay/0?turn=on",
        "pduclient --hostname p --port 1; pduclient --hostname p --port 2",
        "pduclient --hostname p --port 1 && relais on 2",
    ],
)
def test_lines_that_are_not_understood_say_nothing(line):
    assert understood(line) is None


@pytest.mark.parametrize("line", ["telnet 'a;reboot' 7001", "telnet -x 7001", "telnet a $(id)"])
def test_a_console_that_a_shell_would_run_is_asked(tmp_path, line):
    (tmp_path / "x.jinja2").write_text(f'{{% set connection_command = "{line}" %}}')
    asked = questions(moved(tmp_path / "site", "lava", tmp_path / "x.jinja2"))
    assert "a connection by telnet" in asked["x", "console_command"]


@pytest.mark.parametrize("column", ["13742.6.4.1.2.1.2.1", "534.6.6.7.6.6.1.4.0", "534.6.6.7.6.6.1.3.0"])
def test_tables_of_other_makers_are_understood(column):
    """Raritan's, and Eaton's by which an outlet is switched on, or off."""
    switch = understood(f"snmpset -v1 -c s 10.0.0.1 .1.3.6.1.4.1.{column}.12 i 1")
    assert (switch.pdu, switch.outlet, switch.said["driver"]) == ("10.0.0.1", "12", "snmp")
