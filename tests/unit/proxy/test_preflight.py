# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a user sets up a proxy node that cannot work and learns why one reason at a time, or not at all."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.node.findings import Findings, summary
from ansible_collections.hetero.compute.plugins.module_utils.node.machine import mount_of
from ansible_collections.hetero.compute.plugins.module_utils.proxy_node import machine, preflight

BOARDS = """\
0 10.0.2.1 00:1A:CA:00:57:90 10 16218 917 476 1 tilera_hv 1 {"arch":"TILEPro64"}
1 10.0.2.2 00:1A:CA:00:58:98 10 16218 917 476 1 tilera_hv 1 {"arch":"TILEPro64"}
"""
GOOD = preflight.Plan(
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


@pytest.mark.parametrize(("kind", "protocol"), [(socket.SOCK_DGRAM, "udp"), (socket.SOCK_STREAM, "tcp")])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_the_program_that_holds_a_port_is_named(kind, protocol, address):
    ourselves = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind((address, 0))
        if protocol == "tcp":
            held.listen()
        port = held.getsockname()[1]
        assert machine.port_holders(protocol, port, "127.0.0.1") == {ourselves}
        assert machine.port_holders(protocol, port, "127.0.0.9") == ({ourselves} if address == "0.0.0.0" else set())
    assert machine.port_holders(protocol, port, "127.0.0.1") == set()


def test_the_file_system_of_a_path_is_its_nearest_mount():
    assert mount_of("/proc/self") == ("/proc", "proc")
    assert mount_of("/")[0] == "/"


@pytest.mark.parametrize(
    ("asked", "before", "kernel_has_it", "server", "said"),
    [
        ("auto", None, True, "ganesha", ""),
        ("auto", "ganesha", True, "ganesha", ""),
        ("auto", "nfsd", True, "nfsd", ""),
        ("nfsd", "ganesha", True, "nfsd", ""),
        ("nfsd", None, False, "nfsd", "this kernel has no NFS server"),
    ],
)
def test_the_nfs_server_is_one_that_can_and_stays(tmp_path, monkeypatch, asked, before, kernel_has_it, server, said):
    """Else another server's handles make all boards' files stale."""
    monkeypatch.setattr(preflight, "has_nfsd", lambda: kernel_has_it)
    monkeypatch.setattr(preflight, "may_open_by_handle", lambda: True)
    config, found = tmp_path / "proxy.json", Findings()
    if before:
        config.write_text(f'{{"exports": "{before}"}}')
    plan = replace(GOOD, exports=asked, config=str(config))
    assert preflight.nfs_server(plan, found) == server
    assert [text for text in map(str, [*found.defects, *found.notes]) if said in text] or not said
    assert bool(found.defects) == (server == "nfsd" and not kernel_has_it)


@pytest.mark.parametrize(
    "written", ['{"boards": {"1": {"pdu', '{"exports": "nfsd", "boards": {"1": {"disk": {}}}}', ""]
)
@pytest.mark.parametrize(("holder", "server"), [("ganesha.nfsd", "ganesha"), (machine.KERNEL_SERVER, "nfsd")])
def test_a_broken_file_is_written_anew_for_the_server_that_runs(tmp_path, monkeypatch, written, holder, server):
    """Lost: the way out. Each verb says of a broken proxy.json to run the set-up, which stopped at the same file."""
    monkeypatch.setattr(preflight, "has_nfsd", lambda: True)
    monkeypatch.setattr(preflight, "may_open_by_handle", lambda: True)
    monkeypatch.setattr(preflight, "port_holders", lambda *_port: {holder})
    config, found = tmp_path / "proxy.json", Findings()
    config.write_text(written)
    assert preflight.nfs_server(replace(GOOD, exports="auto", config=str(config)), found) == server
    (note,) = map(str, found.notes)
    assert found.defects == []
    assert note.startswith(f"{config}: ")
    assert note.endswith(f", and is written anew: its boards' files stay with {server}")


def test_a_broken_file_without_a_server_that_runs_takes_an_operators_word(tmp_path, monkeypatch):
    """Lost by a guess: the other server's handles make all boards' files stale."""
    monkeypatch.setattr(preflight, "may_open_by_handle", lambda: True)
    monkeypatch.setattr(preflight, "port_holders", lambda *_port: set())
    config, found = tmp_path / "proxy.json", Findings()
    config.write_text("{")
    plan = replace(GOOD, exports="auto", config=str(config))
    preflight.nfs_server(plan, found)
    (defect,) = map(str, found.defects)
    assert defect.endswith("say which it was: tftp_proxy_exports: ganesha, or nfsd")
    found = Findings()
    assert preflight.nfs_server(replace(plan, exports="ganesha"), found) == "ganesha"
    assert found.defects == []


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
