# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of a plan that are none, or secrets. If these fail, one hides the next, which costs another set-up; or the
secrets of PDUs lie in a file that everybody on the proxy reads.

Tests nodes/proxy/entries_check.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight, words_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.entries_check import Entry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import PDU
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_preflight import said

WHERE = "in tftp_proxy_pdu_credentials, pdu-a, and nowhere else"
#: What the set-up's user wrote → the key that it should be among the credentials.
SETTINGS = {
    "password": "password",
    "passwd": "password",
    "pass": "password",
    "PassPhrase": "password",
    "secret": "password",
    "token": "password",
    "auth_password": "password",
    "admin-pwd": "password",
    "user": "username",
    "login": "username",
    "snmp_community": "community",
    "priv": "privacy_password",
    "priv_password": "privacy_password",
    "pasword": "password",
}
OPTIONS = {
    "password": "password",
    "passwd": "password",
    "login": "username",
    "community": "community",
    "snmp_priv_passwd": "privacy_password",
    "passwd_script": "passwd_script",
    "snmp_priv_passwd_script": "snmp_priv_passwd_script",
    "password_script": "password_script",
    "api_token": "api_token",
}


def defects(settings):
    found = Findings()
    words_check.pdu("pdu-a", Entry({"host": "h", **settings}), found)
    return [str(defect) for defect in found.defects if "stands " in str(defect)]


@pytest.mark.parametrize(("word", "meant"), SETTINGS.items())
def test_a_secret_among_the_settings_is_refused_with_its_place(word, meant):
    """Lost: the password of a PDU, to each account of the proxy, and to each log of a dry run with --diff."""
    (defect,) = defects({"driver": "apc", word: "VERY-PRIVATE"})
    assert f'"{word}" stands among its settings' in defect
    assert defect.endswith(f"give {meant} {WHERE}")
    assert "VERY-PRIVATE" not in defect


@pytest.mark.parametrize(("word", "meant"), OPTIONS.items())
def test_a_secret_among_an_agents_options_is_refused_with_its_place(word, meant):
    """Lost: the same, by the one setting that any agent's option may stand in."""
    (defect,) = defects({"driver": "fence", "agent": "fence_apc", "agent_options": {"ssl": 1, word: "VERY-PRIVATE"}})
    assert f'"{word}" stands in its agent_options' in defect
    assert defect.endswith(f"give {meant} {WHERE}")
    assert "VERY-PRIVATE" not in defect


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({"driver": "apc"}, True),
        ({"driver": "snmp"}, True),
        ({"driver": "command", "script": "/bin/true"}, False),
        ({"driver": "ziggurat"}, True),
        ({}, True),
        ({"driver": "fence", "agent": "fence_dummy"}, False),
        ({"driver": "fake", "path": "/tmp/pdu.json"}, False),
        ({"driver": "uhubctl"}, False),
    ],
)
def test_a_host_is_asked_for_where_the_driver_needs_one(settings, needs):
    """Lost: the set-up of a proxy whose fence agent is told of no host; or the word that one was forgotten."""
    found = Findings()
    words_check.pdu("pdu-a", Entry(settings), found)
    assert any("has no host" in str(defect) for defect in found.defects) == needs


@pytest.mark.parametrize(
    ("settings", "add"),
    [
        ({"driver": "apc"}, "add to tftp_proxy_pdu_credentials its username and password"),
        ({"driver": "ipmi"}, "add to tftp_proxy_pdu_credentials its username and password"),
        ({"driver": "snmp"}, "its community, or with snmp_version 3 username and password"),
        ({"driver": "http", "api": "home_assistant"}, "its password, a long-lived access token"),
        ({"driver": "http", "api": "netio"}, "if it asks for a password"),
        ({"driver": "fence", "agent": "fence_dummy"}, "if it asks for a password"),
        ({"driver": "uhubctl"}, None),
    ],
)
def test_a_pdu_without_credentials(settings, add):
    """Lost: what it cannot do without; or trust in notes, to one at each set-up that nothing ends."""
    found = Findings()
    words_check.no_credentials("pdu-a", Entry(settings), found)
    notes = [str(note) for note in found.notes]
    assert len(notes) == (add is not None)
    for note in notes:
        assert note.startswith("pdu-a: has no credentials: ")
        assert add in note


def test_credentials_that_nothing_reads_are_said():
    """Lost: the time of who looks for the password of a hub."""
    hubs = dict(pdus={"pdu-a": {"driver": "uhubctl"}}, credential_keys={"pdu-a": ["password"]})
    _defects, notes = said(**hubs)
    assert "pdu-a: has credentials, and driver uhubctl reads none: take them out" in notes


@pytest.mark.parametrize(
    ("driver", "outlet", "right"),
    [
        ("snmp", 5, True),
        ("snmp", "0", True),
        ("snmp", "2:5", True),
        ("snmp", "1.2:5", True),
        ("snmp", "05", False),
        ("snmp", "2.5", False),
        ("snmp", "2:05", False),
        ("snmp", "2:", False),
        ("uhubctl", "1-1.4:2", True),
        ("uhubctl", "1-1.4", False),
        ("uhubctl", "1-1.4:all", False),
    ],
)
def test_outlets_as_their_drivers_name_them(driver, outlet, right):
    """Lost: a set-up of boards whose power nobody switches, for a name that no driver gives an outlet."""
    found = Findings()
    words_check.outlet("board 0", outlet, driver, found)
    assert [f'outlet "{outlet}" is none that a PDU has: write' in str(defect) for defect in found.defects] == (
        [] if right else [True]
    )


def test_settings_that_are_no_secrets_stay():
    """Lost: a set-up that ran for years."""
    options = "lanplus cipher power_wait port_as_ip ssl ssl_insecure login_timeout cmd_prompt snmp_auth_prot "
    options += "snmp_sec_level identity_file shell_timeout retry_on method hexadecimal_kek disable_http_check privlvl"
    site = dict.fromkeys(("rack", "passes", "users", "bypass", "compass", "private_network", "keys"), "x")
    known = {key: "x" for key in PDU.keys if key not in ("agent_options", "driver")}
    found = defects({**known, **site, "driver": "fence", "agent_options": dict.fromkeys(options.split(), 1)})
    assert found == []


def test_a_misspelt_driver_hides_no_misspelt_credential():
    """Lost: a set-up for each. A driver that is like none has credentials of its own."""
    keys = {"pdu-a": ["username", "pasword"]}
    defects, _notes = said(pdus={"pdu-a": {"driver": "apcc", "host": "h"}}, credential_keys=keys)
    assert defects == [
        'tftp_proxy_pdus, pdu-a: no such driver: "apcc": write apc',
        'tftp_proxy_pdu_credentials, pdu-a: unknown key "pasword": write password',
    ]
    defects, _notes = said(pdus={"pdu-a": {"driver": "ziggurat", "host": "h"}}, credential_keys=keys)
    assert len(defects) == 1
    assert "no such driver" in defects[0]


@pytest.mark.parametrize(
    ("settings", "unread"),
    [
        ({"driver": "ipmi", "boot_once": "pxe"}, "boot_once: driver ipmi does not read that"),
        ({"driver": "redfish", "agent": "fence_redfish", "cipher_suite": 3}, "agent, cipher_suite: driver redfish "),
        ({"driver": "redfish", "boot_once": "pxe", "tls_verify": False, "inrush": 1, "outlets": ["Self"]}, None),
        ({"driver": "ours", "agent": "x"}, None),
        ({"driver": "command", "transport": "pigeon"}, None),
    ],
)
def test_a_setting_that_its_driver_does_not_read_is_named(settings, unread):
    """Lost: the boot by the network, to a word that was written for another driver."""
    found = Findings()
    words_check.pdu("bmc-b", Entry({"host": "h", **settings}), found)
    assert [unread in str(note) for note in found.notes] == ([True] if unread else [])


@pytest.mark.parametrize(("options", "said"), [({}, True), ({"ssl_insecure": 1}, True), ({"systems_uri": "/x"}, False)])
def test_an_agent_that_takes_the_last_system_is_named(options, said):
    """Lost: another sled's power, by an outlet that the agent does not look at."""
    found = Findings()
    settings = {"driver": "fence", "agent": "fence_redfish", "host": "h", "agent_options": options}
    words_check.pdu("bmc-b", Entry(settings), found)
    assert any("switches the last system" in str(note) for note in found.notes) == said


def test_boards_whose_relay_is_one_are_told_by_the_set_up():
    """Lost: the power of a board, or an afternoon: the table's requests do not say which relay is meant."""
    table = {"read": {"path": "/relay"}, "state": "/ison", "on": {"path": "/on"}, "off": {"path": "/off"}}

    def wrong(*outlets):
        found, wires = Findings(), {str(number): {"pdu": "p", "outlet": one} for number, one in enumerate(outlets)}
        pdus = {"p": {"driver": "http", "host": "h", "api_table": table}}
        preflight.wiring(Plan(server="10.0.2.254", pdus=pdus, wiring=wires), [], found)
        return [str(defect.what) for defect in found.defects]

    assert wrong("0") == []
    assert wrong("0", "1") == ["its api_table asks the same for outlets 0, 1, which would be one"]
