# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of labgrid's exporter. If these fail, a board is switched by an outlet beside its own."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.moving.moves import (
    MARKER,
    PROXY,
    files,
    moved,
    needed,
    questions,
    wiring,
)

REST = dict(arch="aarch64", vcpus=4, memory_mb=2048, local_gb=0, driver="uboot")
BOARDS = ("jackie", "bob", "carol", "dave", "apollo")


def answered(name, number):
    return {**REST, "mac": f"02:00:00:00:05:0{number}", "ip": f"10.0.2.{number}"}


ANSWERS = {"proxy": PROXY, "boards": {name: answered(name, number) for number, name in enumerate(BOARDS, 1)}}


def test_what_it_does_not_say_is_asked(tmp_path):
    result = moved(tmp_path, "labgrid", "exporter.yaml")
    asked = questions(result)
    assert result["boards"] == []
    assert not (tmp_path / "files").exists(), "no board is whole"
    for name in BOARDS:
        assert {"mac", "arch", "vcpus", "memory_mb", "local_gb"} <= {key for about, key in asked if about == name}
    assert ("jackie", "ip") not in asked, "its NetworkService says it"
    assert "switch switch-a, port 7" in asked["bob", "mac"]
    assert ("jackie", "console_from") not in asked, "its NetworkSerialPort says it"
    assert "pdudaemon switches it" in asked["apc-rack12", "driver"]
    assert 'model "gude8316" of labgrid: driver snmp switches' in asked["gude.example.org", "driver"]
    assert ("hub", "mac") not in asked
    assert MARKER not in str(files(tmp_path)) + str(result)


def test_answers_complete_it(tmp_path):
    result = moved(tmp_path, "labgrid", "exporter.yaml", answers=ANSWERS)
    assert needed(result) == {("apc-rack12", "driver"), ("apc-rack12", "host"), ("gude.example.org", "driver")}
    said = wiring(tmp_path)
    assert said["tftp_proxy_pdus"] == {
        "10.0.100.31": {"driver": "http", "api": "shelly2", "host": "10.0.100.31"},
        "10.0.100.9": {"driver": "snmp", "snmp_version": "1", "host": "10.0.100.9"},
        "strip.example.org": {"driver": "http", "api": "dli", "host": "strip.example.org", "tls": True},
    }
    outlets = {number: (wire.get("pdu"), wire.get("outlet")) for number, wire in said["tftp_proxy_boards"].items()}
    # labgrid counts this strip's outlets from 0, its labels and our driver from 1
    assert outlets == {
        0: ("10.0.100.31", "0"), 1: ("strip.example.org", 5), 2: (None, None), 3: (None, None), 4: ("10.0.100.9", 8),
    }  # fmt: skip
    assert said["tftp_proxy_pdu_credentials"]["10.0.100.31"] == {
        "username": "admin",
        "password": "{{ vaulted_10_0_100_31_password }}",
    }


def test_a_pdu_that_is_answered_feeds_its_boards(tmp_path):
    pdus = {"apc-rack12": {"driver": "apc", "host": "10.0.100.12", "username": "apc"}}
    moved(tmp_path, "labgrid", "exporter.yaml", answers={**ANSWERS, "pdus": pdus})
    said = wiring(tmp_path)
    assert said["tftp_proxy_pdus"]["apc-rack12"] == {"driver": "apc", "host": "10.0.100.12"}
    assert said["tftp_proxy_boards"][2] == {"pdu": "apc-rack12", "outlet": 3, "driver": "uboot"}


def test_two_models_at_one_address_are_a_question(tmp_path):
    (tmp_path / "e.yaml").write_text(
        "a: {NetworkPowerPort: {model: shelly_gen1, host: 'http://10.0.100.5', index: 0}}\n"
        "b: {NetworkPowerPort: {model: shelly_gen2, host: 'http://10.0.100.5', index: 1}}\n"
    )
    asked = questions(moved(tmp_path / "site", "labgrid", tmp_path / "e.yaml"))
    assert 'says "shelly2", and says "shelly1" elsewhere' in asked["10.0.100.5", "api"]


@pytest.mark.parametrize(
    ("model", "index", "outlet"),
    [("raritan", 12, 12), ("poe_mib", "7", 7), ("eaton", 3, 3), ("sentry", 8, 8), ("sentry", 9, "1.2:1")]
    + [("sentry", "48", "1.6:8")],
)
def test_a_pdu_by_snmp_of_any_maker(tmp_path, model, index, outlet):
    """labgrid counts the outlets of a Sentry through, eight to an infeed."""
    text = f"a: {{NetworkPowerPort: {{model: {model}, host: 10.0.100.5, index: {index!r}}}}}\n"
    (tmp_path / "e.yaml").write_text(text)
    answers = {"proxy": PROXY, "boards": {"a": answered("a", 1)}}
    moved(tmp_path / "site", "labgrid", tmp_path / "e.yaml", answers=answers)
    said = wiring(tmp_path / "site")
    assert said["tftp_proxy_pdus"]["10.0.100.5"] == {"driver": "snmp", "host": "10.0.100.5", "snmp_version": "1"}
    assert said["tftp_proxy_boards"][0]["outlet"] == outlet


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# for n in range(3)\nboard{{ n }}: {}\n# endfor\n", "is a template"),
        ("a: [1, 2]\n", "is no exporter's configuration"),
        ("a: {b: 1\n", "is not YAML"),
        ("", "is no exporter's configuration"),
    ],
)
def test_what_is_no_configuration_is_said(tmp_path, text, words):
    (tmp_path / "e.yaml").write_text(text)
    with pytest.raises(BadInput, match=words):
        moved(tmp_path / "site", "labgrid", tmp_path / "e.yaml")
