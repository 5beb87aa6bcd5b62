# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a user sets up a proxy node that cannot work and learns why one reason at a time, or not at all.

Tests core/findings.py, core/machine.py, nodes/proxy/machine.py, nodes/proxy/setup_plan.py.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings, summary
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.machine import mount_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import plan_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import machine, preflight, words_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system

BOARDS = """\
0 10.0.2.1 00:1A:CA:00:57:90 10 16218 0 476 0 tilera_hv 1 {"arch":"TILEPro64"}
1 10.0.2.2 00:1A:CA:00:58:98 10 16218 0 476 0 tilera_hv 1 {"arch":"TILEPro64"}
"""
GOOD = Plan(
    server="10.0.2.254",
    boards_text=BOARDS,
    boards_source="tilera_boards",
    pdus={"pdu-a": {"driver": "apc", "host": "10.0.100.1"}},
    credentials_for=["pdu-a"],
    wiring={"0": {"pdu": "pdu-a", "outlet": "5"}, "1": {"pdu": "pdu-a", "outlet": "6"}},
)


def said(**changes):
    """Defects and notes of the inventory part for GOOD with changes, as texts."""
    plan, found = replace(GOOD, **changes), Findings()
    preflight.wiring(plan, preflight.boards_of(plan, found), found)
    return [str(defect) for defect in found.defects], [str(note) for note in found.notes]


def test_a_good_plan_has_nothing_to_say():
    assert said() == ([], [])


def test_a_ram_key_of_a_board_that_proves_none_is_said():
    """Lost: who reads `ram_key: console` believes that a Tilera board's RAM system is known to be its own."""
    fed = {**GOOD.wiring["0"], "console": "/var/log/board0"}
    for driver, many in (("tilera", 1), ("pxe", 0), (None, 1)):
        wire = {**fed, "ram_key": "console", **({"driver": driver} if driver else {})}
        of_tilera = BOARDS.replace("{", '{"vendor":"tilera",')
        defects, _notes = said(wiring={**GOOD.wiring, "0": wire}, boards_text=of_tilera)
        assert len(defects) == many, (driver, defects)
        assert all("board 0: it has ram_key console, and its boot driver proves no key" in defect for defect in defects)


def test_disks_that_nobody_named_are_said():
    """Lost: what a tenant left on a disk that nobody wipes, to the next one."""
    plan = dict(boards_text=BOARDS.replace(" 0 476 0 ", " 917 476 1 "), ram_images={"TILEPro64": "ram"})
    fed = GOOD.wiring["0"], GOOD.wiring["1"]
    defects, notes = said(**plan)
    assert defects == []
    assert [note.split(": ")[0] for note in notes] == ["board0, board1"]
    assert "its wiring names none: nothing is wiped there: " in notes[0]
    assert said(**plan, wiring={"0": {**fed[0], "disk": []}, "1": fed[1]})[1] == notes
    assert said(**plan, wiring={"0": {**fed[0], "disk": "none"}, "1": {**fed[1], "disk": ["/dev/sda"]}}) == ([], [])
    in_flash = {**fed[0], "disk": "/dev/sda", "kernel_source": "flash"}
    (defect,), _notes = said(**plan, wiring={"0": in_flash, "1": fed[1]})
    assert defect.startswith("tftp_proxy_boards, board 0: has a disk, and its kernel in flash: ")


def test_wrong_types_are_all_said_before_anything_is_written():
    """Found on the node, they would stop each verb on each board, after a set-up that said all was well."""
    wiring = {"0": {"outlet": [5], "console": "log", "disk": {}}, "1": None}
    defects, _notes = said(wiring=wiring, pdus={"pdu-a": {"driver": "apc", "host": "h", "legacy_ssh": "yes"}})
    assert [defect.split(": ")[0] for defect in defects] == [
        "tftp_proxy_boards.0.outlet",
        "tftp_proxy_boards.0.console",
        "tftp_proxy_boards.0.disk",
        "tftp_proxy_boards.1",
        "tftp_proxy_pdus.pdu-a.legacy_ssh",
    ]
    assert defects[-1].endswith('legacy_ssh: is "yes": give true or false')


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        (dict(boards_text=BOARDS.replace("10.0.2.2", "10.0.2.300")), "tilera_boards:2:3: ip is not an IPv4 address"),
        (dict(server="10.0.2.1"), "board0: has the proxy's own address"),
        (dict(wiring={"7": {"pdu": "pdu-a", "outlet": "1"}}), "board 7: no such board"),
        (dict(wiring={"0": {"pdu": "pdu-x", "outlet": "1"}}), "board 0: no such PDU: pdu-x (known: pdu-a)"),
        (dict(wiring={"0": {"pdu": "pdu-a"}}), "board 0: pdu and outlet belong together"),
        (
            dict(wiring={"0": {"pdu": "pdu-a", "outlet": 5}, "1": {"pdu": "pdu-a", "outlet": "5"}}),
            "outlet 5 of pdu-a: feeds boards 0, 1",
        ),
        (
            dict(
                pdus={
                    "pdu-a": {"driver": "apc", "host": "10.0.100.1"},
                    "pdu-c": {"driver": "apc", "host": "10.0.100.1", "port": 23, "transport": "telnet"},
                },
                wiring={"0": {"pdu": "pdu-a", "outlet": 5}, "1": {"pdu": "pdu-c", "outlet": "5"}},
            ),
            "outlet 5 of pdu-a and pdu-c: feeds boards 0, 1: pdu-a and pdu-c are one PDU, at the same address",
        ),
        (dict(wiring={"0": {"pdu": "pdu-a", "outlet": "05"}}), 'board 0: outlet "05" is none that a PDU has'),
        (dict(wiring={"0": {"pdu": "pdu-a", "outlet": " 5"}}), 'board 0: outlet " 5" is none that a PDU has'),
        (dict(wiring={"0": {"pdu": "pdu-a", "outlet": "five"}}), 'board 0: outlet "five" is none that a PDU has'),
        (dict(wiring={"0": {"pdu": "pdu-a", "outlet": 0}}), 'board 0: outlet "0" is none that a PDU has'),
        (
            dict(
                pdus={"pdu-a": {"driver": "ipmi", "host": "10.0.100.1"}},
                wiring={"0": {"pdu": "pdu-a", "outlet": "2"}},
            ),
            'board 0: outlet "2" is none that a PDU has: write 1, as a BMC has one machine',
        ),
        (
            dict(
                pdus={"pdu-a": {"driver": "redfish", "host": "10.0.100.1"}},
                wiring={"0": {"pdu": "pdu-a", "outlet": "Systems/Self"}},
            ),
            'board 0: outlet "Systems/Self" is none that a PDU has: write the Id of its system, as pdu_info shows it',
        ),
        (dict(pdus={"pdu-a": {"driver": "apc"}}), "pdu-a: has no host"),
        (
            dict(dhcp=True, boards_text=BOARDS.replace("10.0.2.2", "192.168.1.255")),
            "board1: has address 192.168.1.255, which dnsmasq gives to nobody",
        ),
    ],
)
def test_each_defect_is_named(changes, defect):
    defects, _notes = said(**changes)
    assert len(defects) == 1
    assert defect in defects[0]


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        (
            dict(pdus={"pdu-a": {"driver": "acp", "host": "h"}}),
            'tftp_proxy_pdus, pdu-a: no such driver: "acp": write apc',
        ),
        (
            dict(pdus={"pdu-a": {"driver": "frobnicate", "host": "h"}}),
            'pdu-a: no such driver: "frobnicate": use apc, command, fence, http, ipmi, redfish, snmp, uhubctl',
        ),
        (
            dict(pdus={"pdu-a": {"driver": "apc", "host": "h", "transport": "telent"}}),
            'tftp_proxy_pdus, pdu-a: no such transport: "telent": write telnet',
        ),
        (
            dict(pdus={"pdu-a": {"driver": "snmp", "host": "h", "snmp_version": "2"}}),
            'tftp_proxy_pdus, pdu-a: no such snmp_version: "2": write 2c',
        ),
        (
            dict(wiring={"0": {"pdu": "pdu-a", "outlet": "5", "driver": "ubot"}}),
            'tftp_proxy_boards, board 0: no such driver: "ubot": write uboot',
        ),
        (
            dict(credential_keys={"pdu-a": ["username", "pasword"]}),
            'tftp_proxy_pdu_credentials, pdu-a: unknown key "pasword": write password',
        ),
        (
            dict(credential_keys={}),
            "tftp_proxy_pdu_credentials, pdu-a: are none: give a mapping, such as username and password",
        ),
        (dict(boards_text=""), "tilera_boards: is empty: add a line for each board: id ip mac"),
        (dict(boards_text="# none yet\n"), "tilera_boards: names no boards: add a line for each board: id ip mac"),
    ],
)
def test_words_that_nobody_knows_are_said_with_what_is_near(changes, defect):
    """Lost: a set-up that says all is well, and each board that a verb then comes to."""
    defects, _notes = said(**changes)
    assert len(defects) == 1
    assert defect in defects[0]


@pytest.mark.parametrize(
    ("pdu", "defect"),
    [
        ({"driver": "fence"}, "'' is no fence agent: name its agent, like fence_apc"),
        ({"driver": "fence", "agent": "reboot"}, "'reboot' is no fence agent: name its agent, like fence_apc"),
        (
            {"driver": "fence", "agent": "fence_nobody"},
            "program fence_nobody is not installed: install the package that has fence_nobody",
        ),
        ({"driver": "command"}, "'' is no script: give the path of its script"),
        (
            {"driver": "command", "script": "/nowhere/pdu"},
            f"program /nowhere/pdu is not installed: put it there on {THIS_NODE}, for root to execute (chmod 755)",
        ),
        (
            {"driver": "command", "script": "/etc/passwd"},
            f"program /etc/passwd cannot be run (Permission denied): let root execute it on {THIS_NODE} (chmod 755)",
        ),
        ({"driver": "apc", "host": "a b c"}, "'a b c' is no host: give its name or address"),
        (
            {"driver": "apc", "host": "10.0.100.14:23"},
            "'10.0.100.14:23' is a host and its port: write them apart: host: 10.0.100.14, port: 23",
        ),
        ({"driver": "http", "api": "netio", "host": "plug-a:8080"}, "write them apart: host: plug-a, port: 8080"),
        ({"driver": "http", "api": "netio", "host": "http://plug-a"}, "'http://plug-a' is no host"),
        ({"driver": "redfish", "host": "h", "boot_once": "pxi"}, "no such boot_once: pxi: write pxe"),
        ({"driver": "redfish", "host": "h", "tls": False, "tls_ca": "/x"}, "has tls_ca without tls"),
        ({"driver": "redfish", "host": "h", "tls_ca": "/none.pem"}, "its tls_ca /none.pem is not there"),
        ({"driver": "snmp", "host": "-h"}, "'-h' is no host: give its name or address"),
        ({"driver": "fence", "agent": "fence_nobody", "host": "a b"}, "'a b' is no host: give its name or address"),
        ({"driver": "command", "script": "/bin/true", "host": "-a"}, "'-a' is no host: give its name or address"),
        (
            {"driver": "snmp", "community": "very private"},
            '"community" stands among its settings, where no driver reads it and more people do: give community in '
            "tftp_proxy_pdu_credentials, pdu-z, and nowhere else",
        ),
        ({"driver": "apc", "pasword": "very private"}, "give password in tftp_proxy_pdu_credentials, pdu-z"),
    ],
)
def test_settings_that_cannot_work_are_said_also_of_a_pdu_that_feeds_no_board(pdu, defect):
    """Lost: a set-up that says all is well, and the first verb that comes to that PDU."""
    defects, _notes = said(pdus={**GOOD.pdus, "pdu-z": {"host": "10.0.100.9", **pdu}})
    (found,) = [each for each in defects if defect in each]
    assert found.startswith("tftp_proxy_pdus, pdu-z: ")
    assert len(defects) == 1 + (pdu.get("host") == "a b")
    assert "very private" not in found


def test_what_one_mistake_stands_beside_is_said_too():
    """Lost: a set-up for each mistake of one PDU, or of one board."""
    defects, _notes = said(
        wiring={"0": {"consol": "/x", "pdu": "pdu-c", "outlet": "5", "ram_key": "console"}},
        pdus={
            "pdu-a": {"driver": "apc", "host": "h", "transport": "serial", "command_line": "maybe"},
            "pdu-b": {"driver": "apc", "hots": "h", "port": 99999, "transport": "serial"},
        },
    )
    for part in (
        "tftp_proxy_boards.0.consol: is no key: did you mean console?",
        "tftp_proxy_boards, board 0: no such PDU: pdu-c (known: pdu-a, pdu-b)",
        'tftp_proxy_pdus, pdu-a: no such transport: "serial"',
        'tftp_proxy_pdus.pdu-a.command_line: is "maybe": give true or false',
        "tftp_proxy_pdus.pdu-b.hots: is no key: did you mean host?",
        "tftp_proxy_pdus.pdu-b.port: is 99999",
        'tftp_proxy_pdus, pdu-b: no such transport: "serial"',
    ):
        assert len([defect for defect in defects if defect.startswith(part)]) == 1, (part, defects)
    assert len(defects) == 7, "what follows from a mistake is none of its own"


def test_words_that_are_right_or_not_said_are_no_mistakes(tmp_path):
    """Lost: a set-up that ran for years, for a key that a fence agent or a script of the site reads."""
    agent = tmp_path / "fence_site"
    agent.touch(0o755)
    pdus = {
        "a": {"driver": "apc", "host": "h", "transport": "", "snmp_version": "9"},
        "b": {"driver": "snmp", "host": "h", "snmp_version": 1},
        "c": {"driver": "command", "host": "rack 3", "transport": "carrier pigeon", "script": "/bin/true"},
        "d": {"driver": "fence", "host": "https://h/x", "snmp_version": "2c", "agent": str(agent)},
        "e": {"driver": "apc", "host": "fe80::1%eth0"},
    }
    keys = {"a": ["username", "password"], "b": ["community"], "c": ["token"], "d": ["login", "ssl"]}
    wiring = {"0": {"pdu": "c", "outlet": "1", "driver": None}, "1": {"pdu": "d", "outlet": "1", "driver": "pxe"}}
    keys["e"] = []
    assert said(pdus=pdus, wiring=wiring, credential_keys=keys, credentials_for=list(pdus)) == ([], [])


@pytest.mark.parametrize(
    ("wipe", "defects"),
    [
        (
            {"method": "zreo", "verify": "sample", "samples": "64"},
            ['tftp_proxy_wipe: no such method: "zreo": write zero'],
        ),
        ({"verify": "ful", "method": None}, ['tftp_proxy_wipe: no such verify: "ful": write full']),
        ({"verfy": "full"}, ['tftp_proxy_wipe: unknown key "verfy": write verify']),
        ({"samples": 0}, ["tftp_proxy_wipe.samples: is 0: give a whole number from 1 to 4096"]),
        ({"samples": None, "verify": "none"}, []),
    ],
)
def test_words_of_a_wipe_are_looked_at(wipe, defects):
    """Lost: a lease that ends on a board which nobody can wipe."""
    found = Findings()
    words_check.wipe(wipe, found)
    assert list(map(str, found.defects)) == defects


@pytest.mark.parametrize("span", ["1mni", "0", "-5min", "infinity", "", "1min\n[Install]", "10ms", "x" * 300, "%n"])
def test_an_interval_that_systemd_does_not_take_is_refused(span):
    """Lost: the timer that ends leases, for a unit that does not load, after all else was set up."""
    found = Findings()
    plan_check.interval("tftp_proxy_reap_interval", span, found)
    (defect,) = map(str, found.defects)
    assert defect.startswith("tftp_proxy_reap_interval: is ")
    assert defect.endswith(": give a time span of systemd of a second or more (30s, 5min)")


@pytest.mark.parametrize("span", ["1min", "30s", 90, "1.5h", "1h 20min", None])
def test_an_interval_that_systemd_takes_is_taken(span):
    found = Findings()
    plan_check.interval("x", span, found)
    assert found.defects == []


def test_a_machine_without_systemd_says_nothing_of_intervals(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    found = Findings()
    plan_check.interval("x", "soon", found)
    assert found.defects == []


def test_images_that_cannot_be_imported_are_said(tmp_path):
    """Lost: the end of the set-up, after the services were started, at the first image that is not there."""
    found, right = Findings(), f"sha256:{'ab' * 32}"
    (tmp_path / "a b.tar").touch()
    here, missing = str(tmp_path / "a b.tar"), f"no such file or folder on {THIS_NODE}: copy it there, or give a URL"
    given = [
        {"name": "a", "src": "/nowhere/a.tar"},
        {"name": "b", "url": "http://h/b.tar"},
        {"name": "c", "src": "/nowhere/c.tar", "checksum": 7},
        {"name": "d", "url": "ftp://h/d.tar", "checksum": right},
        {"name": "e", "url": "file:///nowhere/e.tar", "checksum": right},
    ]
    fine = [
        {"name": "f", "src": here, "checksum": None},
        {"name": "g", "src": str(tmp_path), "checksum": right},
        {"name": "h", "url": "https://h/h.tar", "checksum": right.replace("ab", "AB")},
        {"name": "i", "url": f"file://{here.replace(' ', '%20')}", "checksum": right},
    ]
    plan_check.images("gpu_lxc_images", given + fine, found)
    wanted = [
        f"gpu_lxc_images, a: /nowhere/a.tar: {missing}",
        "gpu_lxc_images, b: http://h/b.tar: needs a checksum: give checksum: sha256:… of the archive",
        "gpu_lxc_images, c: '7': is no checksum: write sha256: and 64 hexadecimal digits",
        f"gpu_lxc_images, c: /nowhere/c.tar: {missing}",
        "gpu_lxc_images, d: ftp://h/d.tar: is no address that images are fetched from: give a path, or a http",
        f"gpu_lxc_images, e: /nowhere/e.tar: {missing}",
    ]
    told = [str(defect) for defect in found.defects]
    assert [text[: len(start)] for text, start in zip(told, wanted)] == wanted
    assert len(told) == len(wanted), told


def test_images_without_a_place_are_said():
    """Lost: the end of the set-up, in an error of a template about an attribute."""
    found = Findings()
    given = [{"name": "debian", "src": "/"}, {"name": "b"}, {"name": "c", "src": "", "url": None}, {"name": "a b"}]
    plan_check.images("tftp_proxy_images", [*given, {"src": "/"}], found)
    assert [str(defect).partition(": name the")[0] for defect in found.defects] == [
        "tftp_proxy_images, b: has neither src nor url",
        "tftp_proxy_images, c: has neither src nor url",
        'tftp_proxy_images, a b: "a b" is no name for an image: give letters, digits, dots and dashes',
        "tftp_proxy_images, a b: has neither src nor url",
        "tftp_proxy_images[4]: has no name: give letters, digits, dots and dashes",
    ]


def test_one_kind_of_mistake_hides_no_other():
    """Lost: a set-up for each: what a file says, then what a PDU is, then its wiring, then the images."""
    plan = replace(
        GOOD,
        boards_text=BOARDS.replace("10.0.2.2", "x"),
        wiring={"0": {"pdu": "pdu-a", "outlet": [5]}, "1": {"pdu": "pdu-x", "outlet": 6}},
        pdus={"pdu-a": {"driver": "acp", "host": "h"}, "pdu-b": {"driver": "apc", "host": 7.5}},
        wipe={"method": "zreo"},
        images=[{"name": "debian"}],
        reap_interval="soon",
        mistakes=[dict(thing="tftp_proxy_pdsu", what="is no variable of this role", remedy="write tftp_proxy_pdus")],
    )
    defects = list(map(str, preflight.look(plan).defects))
    for part in (
        "pdsu",
        "tilera_boards:2:3",
        "boards.0.outlet",
        "pdu-x",
        '"acp"',
        "pdu-b.host",
        "zreo",
        "debian",
        "soon",
    ):
        assert len([defect for defect in defects if part in defect]) == 1, (part, defects)
    assert any("10.0.2.254: is not an address of this machine" in defect for defect in defects) or os.geteuid() != 0


def test_a_boards_file_that_the_controller_could_not_read_is_not_called_empty():
    plan = replace(GOOD, boards_text="", mistakes=[dict(thing="tilera_boards", what="is in UTF-16", remedy="save it")])
    assert preflight.boards_of(plan, found := Findings()) == []
    assert found.defects == []


def test_all_defects_come_at_once():
    defects, _notes = said(
        boards_text=BOARDS.replace("10.0.2.2", "x").replace("10.0.2.1", "y"), wiring={"0": {"pdu": "z", "outlet": 1}}
    )
    assert len(defects) == 3
    found = Findings()
    for text in defects:
        found.defect("x", text, "y")
    assert summary(found, "a proxy node").count("\n") == 3


def test_what_stops_nothing_is_a_note():
    defects, notes = said(credentials_for=["pdu-b"], wiring={"0": {"pdu": "pdu-a", "outlet": "5"}})
    assert defects == []
    assert [note.split(":")[0] for note in notes] == ["pdu-a", "pdu-b", "board1"]


def test_a_pdu_whose_key_is_not_pinned_is_said():
    """Lost: the PDU's password, to whoever answers at its address when the proxy asks first."""
    by_ssh = {"driver": "apc", "host": "10.0.100.1", "transport": "ssh"}
    defects, notes = said(pdus={"pdu-a": by_ssh})
    assert (defects, len(notes)) == ([], 1)
    assert "pdu-a: its ssh host key is not pinned" in notes[0]
    assert "give its host_key in tftp_proxy_pdus" in notes[0]
    assert said(pdus={"pdu-a": dict(by_ssh, host_key="ssh-rsa AAAA")}) == ([], [])


def test_machines_that_boot_by_http_where_nothing_is_served_by_it_are_said():
    """Lost: minutes of a server's firmware, which asks nobody and falls back to its disk, at each boot."""
    pdus = {"pdu-a": {"driver": "redfish", "host": "10.0.100.1", "boot_once": "uefi_http"}}
    wiring = {"0": {"pdu": "pdu-a", "outlet": "1"}, "1": {"pdu": "pdu-a", "outlet": "2"}}
    defects, notes = said(pdus=pdus, wiring=wiring)
    assert defects == []
    assert notes == [
        f"pdu-a: boot_once is uefi_http, and {THIS_NODE} serves nothing by HTTP: set tftp_proxy_boot_http: true, or "
        "boot_once: pxe, unless a web server of yours gives them ipxe.efi"
    ]
    assert said(pdus=pdus, wiring=wiring, boot_http=True) == ([], [])


@pytest.mark.parametrize(("kind", "protocol"), [(socket.SOCK_DGRAM, "udp"), (socket.SOCK_STREAM, "tcp")])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_the_program_that_holds_a_port_is_named(kind, protocol, address):
    name, program = Path("/proc/self/comm").read_text(encoding="utf-8").strip(), os.readlink("/proc/self/exe")
    ourselves = name if os.path.basename(program) == name else f"{name} ({program})"
    ourselves += f" of uid {os.geteuid()}" if os.geteuid() else ""
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind((address, 0))
        if protocol == "tcp":
            held.listen()
        port = held.getsockname()[1]
        assert machine.port_holders(protocol, port, "127.0.0.1") == {ourselves}
        assert machine.port_holders(protocol, port, "127.0.0.9") == ({ourselves} if address == "0.0.0.0" else set())
    assert machine.port_holders(protocol, port, "127.0.0.1") == set()


def test_a_process_that_keeps_who_asks_waiting_holds_up_no_look_at_ports(tmp_path):
    """Lost: a node's set-up and its self-test, for ever, to an account with a program that never is another one."""
    with own_file_system.holding(tmp_path, (1, 5), "leaving") as process, socket.socket() as held:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        time.sleep(0.3)  # for which it is on its way
        held.bind(("127.0.0.1", 0))
        held.listen()

        def asked():
            try:
                return sorted(machine.port_holders("tcp", held.getsockname()[1], "127.0.0.1"))
            except TimedOut as error:
                return str(error)

        said = in_child(asked, Deadline(30), "look", "")
        # some kernels tell what it has open all the same
        assert isinstance(said, list) or f"process {process.pid} (" in said


def test_the_file_system_of_a_path_is_its_nearest_mount():
    assert mount_of("/proc/self") == ("/proc", "proc")
    assert mount_of("/")[0] == "/"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
def test_overlays_are_tried_not_guessed():
    found = Findings()
    preflight.kernel(found)
    assert found.defects == []


def test_a_kernel_without_overlays_is_said_before_anything_is_set_up(tmp_path, monkeypatch):
    """Lost: an hour of set-up that ends in boards without roots."""
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\necho 'mount: unknown filesystem type overlay' >&2\nexit 32\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = Findings()
    preflight.kernel(found)
    (defect,) = map(str, found.defects)
    assert defect.startswith("overlay mounts: ")
    assert "unknown filesystem type overlay" in defect
    assert "a container must be privileged" in defect
