# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories with mistakes, and the playbooks that set nodes up. If these fail, a mistake is gone over in silence, is
found by the first verb that comes to it, or hides the next one.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import GuestHost, Playbooks

PDU = {"driver": "apc", "host": "10.0.100.1"}
CPU = '{"arch":"TILEPro64"}'
#: What a folder lacks to be a proxy node, and the machine that it is on.
OF_THE_MACHINE = {"10.0.2.254", "NFS", "login", "nftables", "open_by_handle_at", "overlay mounts", "system"}


def set_up(plays, playbook, **variables):
    """(exit code, lines of its output) of a set-up, as a dry run, with these variables in the inventory."""
    path = plays.folder / "inventory.json"
    inventory = json.loads(path.read_text())
    inventory["all"]["vars"].update(variables)
    path.write_text(json.dumps(inventory))
    rc, output = plays.play(playbook, "--check", "--limit", "p1,k1,gpu1")
    return rc, output.replace("\\n", "\n").replace('\\"', '"')


def mistakes(output):
    """What is listed, which Ansible says twice."""
    lines = [line.strip() for line in output.splitlines()]
    return list(dict.fromkeys(line[2:].rstrip('"}') for line in lines if line.startswith("- ")))


def test_all_mistakes_of_a_proxy_are_said_at_once(proxies):
    """Lost: a set-up for each; and for a misspelt variable the wiring, without a word."""
    _folders, plays = proxies
    rc, output = set_up(
        plays,
        "proxy",
        tftp_proxy_server="10.0.2.254",
        tftp_proxy_bords_file="boards",
        tftp_proxy_pinnned=False,
        tftp_proxy_pdus={"pdu-a": dict(PDU, driver="acp"), "pdu-b": PDU},
        tftp_proxy_pdu_credentials={"pdu-b": {"username": "u", "pasword": "SECRET-WORD"}, "pdu-a": "SECRET-WORD"},
        tftp_proxy_images=[{"name": "debian"}],
        tftp_proxy_wipe={"method": "zreo"},
        tftp_proxy_reap_interval="often",
    )
    assert rc == 2, output
    said = mistakes(output)
    for wanted in (
        "tftp_proxy_bords_file: is no variable of this role: write tftp_proxy_boards_file",
        "tftp_proxy_pinnned: is no variable of this role: write tftp_proxy_pinned",
        "tftp_proxy_boards_file: no boards file is named: name the boards file on the controller",
        "tftp_proxy_images, debian: has neither src nor url",
        "tftp_proxy_pdu_credentials, pdu-a: are none",
        "no such driver",
        "unknown key",
        "no such method",
        "tftp_proxy_reap_interval: is ",
    ):
        assert len([line for line in said if line.startswith(wanted) or wanted in line]) == 1, (wanted, output)
    assert "SECRET-WORD" not in output


def test_values_that_no_verb_would_read_are_said_before_anything_is_written(proxies):
    """Lost: every verb on the proxy, or all its PDUs, after a set-up that was a success."""
    _folders, plays = proxies
    rc, output = set_up(
        plays,
        "proxy",
        tftp_proxy_server="10.0.2.254",
        tftp_proxy_pdus={"pdu-a": dict(PDU, passwd="SECRET-WORD"), "pdu-b": PDU},
        tftp_proxy_pdu_credentials={"pdu-b": {"username": "u", "password": True}, "pdu-a": {"password": "SECRET\n"}},
        tftp_proxy_root_gb="0",
        tftp_proxy_events_days="0",
        tftp_proxy_roots_overcommit="2e6",
        tftp_proxy_tile_monitor="relative/tile",
        tftp_proxy_dhcp_router="10.0.2.999",
        tftp_proxy_dhcp_ra_prefix="hello",
        tftp_proxy_timeout="-5",
        tftp_proxy_tftp_root="relative/path",
        tftp_proxy_state_folder="rel/state",
    )
    assert rc == 2, output
    said = mistakes(output)
    for wanted in (
        "tftp_proxy_pdu_credentials, pdu-b: its password is true or false to YAML: put it in quotes",
        "tftp_proxy_pdu_credentials, pdu-a: its password has a line end or another control character",
        'tftp_proxy_pdus, pdu-a: "passwd" stands among its settings',
        "tftp_proxy_root_gb: is 0: give",
        "tftp_proxy_events_days: is 0: give",
        "tftp_proxy_roots_overcommit: is 2000000.0: give",
        'tftp_proxy_tile_monitor: is "relative/tile": give an absolute path',
        'tftp_proxy_dhcp_router: is "10.0.2.999": give an IPv4 address',
        'tftp_proxy_dhcp_ra_prefix: is "hello": give',
        "tftp_proxy_timeout: is -5.0: give",
        'tftp_proxy_tftp_root: is "relative/path": give an absolute path',
        'tftp_proxy_state_folder: is "rel/state": give an absolute path',
    ):
        assert any(line.startswith(wanted) for line in said), (wanted, output)
    assert "SECRET" not in output


def test_drivers_of_the_site_are_looked_at_before_anything_is_written(proxies):
    """Lost: a set-up that ends well, and a PDU that no verb reaches; or a traceback from within the first boot."""
    _folders, plays = proxies
    (plays.folder / "acme.yml").write_text("power_api: 1\nsnmp_table: {state: 1.3.6.1.4.1.32473.1.4}\n")
    (plays.folder / "half.py").write_text("POWER_API = 1\n")
    (plays.folder / "odd.yml").write_text("power_api: [1\n")
    rc, output = set_up(
        plays,
        "proxy",
        tftp_proxy_server="10.0.2.254",
        tftp_proxy_power_drivers={"acme": "acme.yml", "half": str(plays.folder / "half.py"), "odd": "odd.yml"},
        tftp_proxy_boot_drivers={"none": "nowhere.py"},
        tftp_proxy_pdus={"pdu-a": dict(PDU, driver="acme"), "pdu-b": dict(PDU, driver="half")},
    )
    assert rc == 2, output
    said = [line for line in mistakes(output) if "river" in line]
    for wanted in (
        "tftp_proxy_power_drivers, acme.json: its snmp_table has no on with the OID of a column",
        "tftp_proxy_power_drivers, half.py: defines 0 classes below PowerDriver",
        "tftp_proxy_power_drivers, odd.yml: is no table in YAML: while parsing",
        "tftp_proxy_boot_drivers, nowhere.py: there is no such file on the controller",
    ):
        assert len([line for line in said if line.startswith(wanted)]) == 1, (wanted, output)
    assert len(said) == 4, said


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (
            f"0 10.0.2.1 00:1A:CA:00:57:90 10 16218 917 476 1 t 1 {CPU}\n".encode("utf-16"),
            "is in UTF-16: save it as UTF-8",
        ),
        (b"# M\xfcller\nx\n", "byte 0xfc is not UTF-8 (line 1): save it as UTF-8"),
        (b"", "is empty: add a line for each board"),
        (
            b"0 10.0.2.1 00:1A:CA:00:57:90 10 16218 917 476 1 t\0 1 " + CPU.encode(),
            "byte 0x00 is no text (line 1): save it as UTF-8",
        ),
        (None, "there is no such file on the controller: name the boards file on the controller"),
    ],
)
def test_a_boards_file_that_is_none_is_said_in_words(proxies, data, wanted):
    """Lost: what to do, in an error of a codec's, beside which nothing else is said."""
    _folders, plays = proxies
    path = plays.folder / "boards"
    if data is not None:
        path.write_bytes(data)
    pdus = {"pdu-a": dict(PDU, driver="acp")}
    rc, output = set_up(
        plays, "proxy", tftp_proxy_server="10.0.2.254", tftp_proxy_boards_file=str(path), tftp_proxy_pdus=pdus
    )
    assert rc == 2, output
    said = mistakes(output)
    assert [line for line in said if line.startswith(str(path)) and wanted in line], output
    assert [line for line in said if "no such driver" in line], output
    assert "Traceback" not in output


def test_a_boards_file_is_found_beside_the_inventory(proxies):
    """Lost: the third step of the first guide, where a file that is there is said not to be."""
    _folders, plays = proxies
    (plays.folder / "files").mkdir()
    (plays.folder / "files" / "boards").write_bytes(b"# M\xfcller\nx\n")
    for name, said in (
        ("files/boards", "byte 0xfc is not UTF-8"),
        ("files/none", f"on the controller ({plays.folder}"),
    ):
        rc, output = set_up(plays, "proxy", tftp_proxy_server="10.0.2.254", tftp_proxy_boards_file=name)
        assert rc == 2, output
        assert [line for line in mistakes(output) if line.startswith(name) and said in line], output


@pytest.mark.parametrize("word", ["proxy", "without"])
def test_a_set_up_of_some_proxies_is_said_by_limit(proxies, word):
    """Lost: the proxy nodes that were to be left alone, to a word that the set-up did not look at."""
    _folders, plays = proxies
    rc, output = plays.play("proxy", "--check", "-e", f"{word}=p2")
    assert (rc, f"{word} chooses nothing here: all of group proxies are set up" in output) == (2, True), output
    rc, output = set_up(plays, "proxy", **{word: "http://cache.lab:3128"})
    assert "chooses nothing here" not in output, "a variable of the site's own"


def test_an_inventory_without_mistakes_has_none(proxies):
    """Lost: a set-up that ran for years. What the machine lacks is said; the node here is only a folder."""
    _folders, plays = proxies
    (plays.folder / "boards").write_text(f"0 10.0.2.1 00:1A:CA:00:57:90 10 16218 917 476 1 t 1 {CPU} \n# {{{{ x }}}}\n")
    rc, output = set_up(
        plays,
        "proxy",
        tftp_proxy_server="10.0.2.254",
        tftp_proxy_boards_file=str(plays.folder / "boards"),
        tftp_proxy_pdus={"pdu-a": dict(PDU, transport="ssh"), "pdu-b": dict(PDU, driver="snmp", snmp_version=3)},
        tftp_proxy_pdu_credentials={"pdu-b": {"username": "u", "privacy_password": "SECRET-WORD"}},
        tftp_proxy_boards={"0": {"pdu": "pdu-a", "outlet": 5, "driver": "pxe"}},
        tftp_proxy_images=[{"name": "debian-12", "src": str(plays.folder / "boards")}],
        tftp_proxy_wipe={"method": "zero", "samples": 10},
        my_tftp_proxy_notes="kept",
    )
    assert "Look at the machine, the boards file and the wiring" in output, (rc, output)
    assert {line.partition(": ")[0] for line in mistakes(output)} <= OF_THE_MACHINE, output
    assert "SECRET-WORD" not in output


def test_misspelt_variables_of_hosts_are_refused(tmp_path):
    """Lost: a host that offers no guests, after a set-up that was a success."""
    tmp_path.chmod(0o755)
    host = GuestHost(tmp_path / "k1", 3)
    try:
        plays = Playbooks(tmp_path, [], ["k1"], ["k1"])
        wrong = dict(kvm_guests_adresses=["10.0.81.10", "10.0.81.20"], pci_passthrough_devcies=[], gpu_lxc_adresses=[])
        wrong.update(kvm_guests_reap_interval="1mni", kvm_guests_images=[{"name": "b"}])
        wrong.update(gpu_lxc_reap_interval="often", gpu_lxc_images=[{"name": "a"}])
        wrong.update(gpu_lxc_lxcpath="rel/lxc", kvm_guests_vcpus=-1)
        rc, output = set_up(plays, "kvm_host", **wrong)
        assert rc == 2, output
        assert "pci_passthrough_devcies: is no variable of this role: write pci_passthrough_devices" in output
        rc, output = set_up(plays, "gpu_host")
        assert rc == 2, output
        assert "gpu_lxc_adresses: is no variable of this role: write gpu_lxc_addresses" in output
        assert "gpu_lxc_reap_interval: is " in output
        assert "gpu_lxc_images, a: has neither src nor url" in output
        assert 'gpu_lxc_lxcpath: is "rel/lxc": give an absolute path' in output
        (tmp_path / "guests.yml").write_text("- {hosts: k1, gather_facts: false, roles: [hetero.compute.kvm_guests]}\n")
        rc, output = plays.end(plays.start_file(str(tmp_path / "guests.yml"), "--check"))
        assert rc == 2, output
        assert "kvm_guests_adresses: is no variable of this role: write kvm_guests_addresses" in output
        assert "kvm_guests_addresses: has 0: give the first and the last address for guests" in output
        assert "kvm_guests_reap_interval: is " in output
        assert "kvm_guests_images, b: has neither src nor url" in output
        assert "kvm_guests_vcpus: is -1: give a whole number" in output
    finally:
        host.remove()


def test_misspelt_variables_of_other_roles_are_refused(tmp_path):
    play = "- {hosts: localhost, connection: local, gather_facts: false, roles: [hetero.compute.%s], vars: {%s: x}}\n"
    plays = Playbooks(tmp_path, [])
    for role, wrong, meant in (
        ("nova_compute", "nova_compute_pth", "nova_compute_path"),
        ("lab", "lab_bords_file", "lab_boards_file"),
    ):
        (tmp_path / "play.yml").write_text(play % (role, wrong))
        rc, output = plays.end(plays.start_file(str(tmp_path / "play.yml"), "--check"))
        assert rc == 2, output
        assert f"{wrong}: is no variable of this role: write {meant}" in output
