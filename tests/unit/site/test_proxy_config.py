# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy's configuration file: what is wrong with it is said by name."""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire, pdu, read_config

PDUS = {"pdu-a": {"driver": "apc", "host": "h"}}


@pytest.fixture
def files(tmp_path):
    config, credentials = tmp_path / "proxy.json", tmp_path / "credentials.json"
    config.write_text(json.dumps({"pdus": PDUS, "credentials": str(credentials), "run_folder": "/r"}))
    return config, credentials


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, rf"cannot be read on node {re.escape(os.uname().nodename)} \(No such file or directory\)"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
    ],
)
def test_a_broken_file_is_named(files, text, what):
    """Without it, a node that was never set up would answer with a traceback."""
    config = files[0]
    config.unlink() if text is None else config.write_text(text)
    with pytest.raises(BadInput, match=rf"proxy.json: {what}.*: run ansible-playbook hetero"):
        read_config(str(config))


def test_defaults_fill_what_is_left_out(files):
    """Without them, each set-up would have to name every folder."""
    config = read_config(str(files[0]))
    assert (config.run_folder, config.tftp_root, config.boards) == ("/r", "/tftpboot", {})


def test_an_unknown_pdu_names_the_known(files):
    """Without it, a typing error in the wiring would be a KeyError on the proxy."""
    with pytest.raises(BadInput, match=r"pdu-b: no such PDU \(known: pdu-a\)"):
        pdu(read_config(str(files[0])), "pdu-b")


def test_credentials_come_from_their_own_file(files):
    """Without it, passwords would have to lie where everybody reads."""
    config = read_config(str(files[0]))
    assert pdu(config, "pdu-a") == (PDUS["pdu-a"], {})
    files[1].write_text(json.dumps({"pdu-a": {"username": "u", "password": "p"}}))
    assert pdu(config, "pdu-a") == (PDUS["pdu-a"], {"username": "u", "password": "p"})
    files[1].write_text("{")
    with pytest.raises(BadInput, match=r"credentials.json: is not JSON"):
        pdu(config, "pdu-a")


#: What proxy.json says, and how the error calls it.
WRONG = (
    ({"state_folder": "hetero"}, 'state_folder: is "hetero": give an absolute path'),
    ({"tftp_root": 5}, "tftp_root: is 5: give an absolute path"),
    ({"run_folder": "/run/a\0b"}, 'run_folder: is "/run/a\\u0000b": give an absolute path'),
    ({"credentials": "/" + "x" * 256}, "credentials: is "),
    ({"tile_monitor": "\ud800"}, "tile_monitor: is "),
    ({"tile_monitor": "/\ud800"}, "tile_monitor: is "),
    ({"dhcp": "yes"}, 'dhcp: is "yes": give true or false'),
    ({"root_gb": 0}, "root_gb: is 0: give a whole number from 1 to 1000000"),
    ({"root_gb": 1.5}, "root_gb: is 1.5: give a whole number"),
    ({"root_gb": True}, "root_gb: is true: give a whole number"),
    ({"roots_overcommit": 0.5}, "roots_overcommit: is 0.5: give a number from 1 to"),
    ({"server": "0.0.0.0/0"}, 'server: is "0.0.0.0/0": give an IPv4 address'),
    ({"network": 7}, "network: is 7: give an IPv4 network"),
    ({"pdus": []}, "pdus: is []: give a mapping"),
    ({"pdus": {"a": {"port": 65536}}}, "pdus.a.port: is 65536: give a whole number from 1 to 65535"),
    ({"pdus": {"a": None}}, "pdus.a: is null: give a mapping"),
    ({"pdus": {"a\0": {}}}, 'pdus, name: is "a\\u0000": give text of at most 200 characters'),
    ({"boards": {"3": {"outlet": 1.5}}}, "boards.3.outlet: is 1.5: give text"),
    ({"boards": {"3": {"disk": ["/dev/sda", 7]}}}, 'boards.3.disk: is ["/dev/sda", 7]: give a device'),
    ({"boards": {"3": {"console": "log"}}}, 'boards.3.console: is "log": give an absolute path'),
    ({"boards": {"3": {"accept_unwiped": [0.5]}}}, "boards.3.accept_unwiped[0]: is 0.5: give text"),
    ({"ram_images": {"tilepro64": {}}}, "ram_images.tilepro64: is {}: give text"),
    ({"exprots": "nfsd"}, "exprots: is no key: did you mean exports? A key of your own needs another name"),
    ({"pdus": {"a": {"hots": "h"}}}, "pdus.a.hots: is no key: did you mean host?"),
    ({"pdus": {"a": {"legcy_ssh": True}}}, "pdus.a.legcy_ssh: is no key: did you mean legacy_ssh?"),
    ({"pdus": {"a": {"snmp_verson": 3}}}, "pdus.a.snmp_verson: is no key: did you mean snmp_version?"),
    ({"boards": {"3": {"oulet": 1}}}, "boards.3.oulet: is no key: did you mean outlet?"),
    ({"boards": {"3": {"fake": {"stal": "nfs"}}}}, "boards.3.fake.stal: is no key: did you mean stall?"),
    ({"boards": {"3": {"fake": {"wrong_kye": True}}}}, "boards.3.fake.wrong_kye: is no key: did you mean wrong_key?"),
    ({"wipe": {"metod": "discard"}}, "wipe.metod: is no key: did you mean method?"),
    ({"wipe": {"samples": "many"}}, 'wipe.samples: is "many": give a whole number'),
)


@pytest.mark.parametrize(("said", "line"), WRONG)
def test_a_wrong_value_is_named_with_what_it_should_be(files, said, line):
    """Before, it was a traceback of whatever came upon it first, an endless loop, or a file opened by its number."""
    files[0].write_text(json.dumps(said))
    with pytest.raises(BadInput) as caught:
        read_config(str(files[0]))
    assert str(caught.value).splitlines()[0].startswith(f"{files[0]}: {line}"), str(caught.value)


def test_all_mistakes_are_said_at_once(files):
    """An operator would set the proxy up once for each."""
    said = {}
    for one, _line in WRONG:
        said.update({key: value for key, value in one.items() if key not in said})
    files[0].write_text(json.dumps(said))
    with pytest.raises(BadInput) as caught:
        read_config(str(files[0]))
    lines = str(caught.value).splitlines()
    assert len(lines) == len(said) + 1, lines
    assert lines[-1].endswith("then run ansible-playbook hetero.compute.proxy")
    assert [mistake["thing"].partition(".")[0] for mistake in caught.value.failure["mistakes"]] == list(said)


def test_a_heap_of_mistakes_is_counted(files):
    """A file of 4,000 boards with one slip in the template would fill the screen."""
    files[0].write_text(json.dumps({"boards": {str(n): {"outlet": {}} for n in range(300)}}))
    with pytest.raises(BadInput) as caught:
        read_config(str(files[0]))
    lines = str(caught.value).splitlines()
    assert len(lines) == 102
    assert lines[100].endswith("and 200 more")
    assert len(caught.value.mistakes) == 300


def test_what_is_said_is_read_as_it_was_meant(files):
    """Null and empty texts, which templates make of nothing, say nothing; digits are numbers, and outlets text."""
    config = {"interface": None, "network": "", "root_gb": "16", "roots_overcommit": 2, "site": {"own": [None]}}
    config["pdus"] = {"a": {"port": "23", "host_key": "", "snmp_version": 3, "outlets": [1, "2"], "site": None}}
    config["boards"] = {"0": {"outlet": 8, "disk": "/dev/sda", "console": None}, "1": {"disk": []}}
    files[0].write_text(json.dumps(config))
    read = read_config(str(files[0]))
    assert (read.interface, read.network, read.root_gb, read.roots_overcommit) == ("", "", 16, 2)
    assert read.others == {"site": {"own": [None]}}
    assert read.pdus == {"a": {"port": 23, "snmp_version": "3", "outlets": ["1", "2"], "site": None}}
    assert read.boards == {"0": Wire(outlet="8", disk="/dev/sda"), "1": Wire(disk=[])}


@pytest.mark.parametrize(
    ("said", "meant"), [("pasword", "password"), ("usernmae", "username"), ("comunity", "community")]
)
def test_a_misspelt_credential_is_named_and_not_shown(files, said, meant):
    """Lost: a PDU that refuses a login, whose password stands right there."""
    files[1].write_text(json.dumps({"pdu-a": {said: "SECRET-WORD", "site": "own"}}))
    with pytest.raises(BadInput, match=rf"pdu-a.{said}: is no key: did you mean {meant}\?") as caught:
        pdu(read_config(str(files[0])), "pdu-a")
    assert "SECRET-WORD" not in str(caught.value) + json.dumps(caught.value.failure)


@pytest.mark.parametrize(
    "said",
    [
        {"pdu-a": {"own": ["SECRET-WORD"]}},
        {"pdu-a": "SECRET-WORD"},
        {"pdu-a": {"password": ["SECRET-WORD"]}},
        {"pdu-a": None},
    ],
)
def test_a_wrong_secret_is_named_and_not_shown(files, said):
    """Lost: a password in a log of Ansible, for the sake of a misplaced bracket."""
    files[1].write_text(json.dumps(said))
    with pytest.raises(BadInput, match=r"credentials.json: pdu-a") as caught:
        pdu(read_config(str(files[0])), "pdu-a")
    assert "SECRET-WORD" not in str(caught.value) + json.dumps(caught.value.failure)


@pytest.mark.parametrize("text", ['{"a": NaN', '{"a": ' + "[" * 100000])
def test_what_is_no_json_is_said(files, text):
    """Python's reader ends on depth with an error of its own."""
    files[0].write_text(text)
    with pytest.raises(BadInput, match=r"proxy.json: is not JSON"):
        read_config(str(files[0]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"state_folder": "/var/lib/hetero", "state_folder": "/nowhere"}', "the key state_folder is there twice"),
        ('{"boards": {"0": {}, "0": {}}}', "the key 0 is there twice"),
    ],
)
def test_a_key_that_is_there_twice(files, text, said):
    """Lost: all tenants' boards from sight, to a line that was pasted below another: readers take the last."""
    files[0].write_text(text)
    with pytest.raises(BadInput, match=said):
        read_config(str(files[0]))


def test_a_number_that_no_float_holds(files):
    """Lost: the line that is wrong, in a traceback of Python's own limits."""
    files[0].write_text('{"roots_overcommit": 1' + "0" * 400 + "}")
    with pytest.raises(BadInput, match="roots_overcommit: is 1000"):
        read_config(str(files[0]))


def test_lists_in_lists_of_each_depth(files):
    """Lost: the same; Python reads JSON that is deeper than what it writes."""
    for deep in range(400, 1000, 2):
        files[0].write_text('{"exports": ' + "[" * deep + "]" * deep + "}")
        with pytest.raises(BadInput, match=r"exports: is \[|exports: is nested too deep|is not JSON \(it is nested"):
            read_config(str(files[0]))


def test_numbers_that_json_has_not_hide_no_other_mistake(files):
    """Lost: one set-up for the NaN, and another for what it hid. Python's reader takes numbers that no other does."""
    files[0].write_text(
        '{"dhcp": "yes", "roots_overcommit": NaN, "root_gb": 1e999, "own": [{"a": -Infinity}], "wipe": Infinity,'
        ' "pdus": {"a": {"agent_options": {"b": [NaN]}, "outlets": [NaN], "port": 0}}}'
    )
    with pytest.raises(BadInput) as caught:
        read_config(str(files[0]))
    assert [line.partition(": ")[2].partition(": give")[0] for line in str(caught.value).splitlines()[:-1]] == [
        'dhcp: is "yes"',
        "roots_overcommit: is NaN",
        "root_gb: is Infinity",
        "wipe: is Infinity",
        "pdus.a.outlets[0]: is NaN",
        "pdus.a.port: is 0",
        "own[0].a: is -Infinity",
        "pdus.a.agent_options.b[0]: is NaN",
    ]
