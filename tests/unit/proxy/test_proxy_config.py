# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy's configuration file: what is wrong with it is said by name."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils.proxy_node.config import pdu, read_config

PDUS = {"pdu-a": {"driver": "apc", "host": "h"}}


@pytest.fixture
def files(tmp_path):
    config, credentials = tmp_path / "proxy.json", tmp_path / "credentials.json"
    config.write_text(json.dumps({"pdus": PDUS, "credentials": str(credentials), "run_folder": "/r"}))
    return config, credentials


@pytest.mark.parametrize(
    ("text", "what"), [(None, "cannot be read"), ("{", "is not JSON"), ("[]", "is not a JSON object")]
)
def test_a_broken_file_is_named(files, text, what):
    """Without it, a node that was never set up would answer with a traceback."""
    config = files[0]
    config.unlink() if text is None else config.write_text(text)
    with pytest.raises(BadInput, match=rf"proxy.json: {what}.*: run the set-up playbook"):
        read_config(str(config))


def test_defaults_fill_what_is_left_out(files):
    """Without them, each set-up would have to name every folder."""
    config = read_config(str(files[0]))
    assert (config["run_folder"], config["tftp_root"], config["boards"]) == ("/r", "/tftpboot", {})


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
