# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of PDUs' credentials. If these fail, a set-up takes what YAML made of a password, and switches no outlet."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import pdu, read_config
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.credential_mistakes import credential_mistakes

#: What is written behind `password:`, and what is said of it.
WRONG = (
    ("yes", "is true or false to YAML"),
    ("[SECRET-WORD]", "is a list or a mapping to YAML"),
    ("{SECRET-WORD: x}", "is a list or a mapping to YAML"),
    ("12.50", "is a number with a point to YAML"),
    ("2024-01-31", "is a date to YAML"),
    ("", "is empty"),
    ('""', "is empty"),
    (r'"SECRET-WORD\nb"', "has a line end or another control character"),
    (r'"SECRET\0WORD"', "has a line end or another control character"),
)


@pytest.mark.parametrize(("written", "what"), WRONG)
def test_a_secret_that_yaml_made_something_else_of_is_named_and_not_shown(written, what):
    """Lost: all PDUs, after a set-up that said all was well; or the secret, in a log."""
    given = yaml.safe_load(f"pdu-a: {{username: apc}}\npdu-b:\n  username: apc\n  password: {written}\n")
    (mistake,) = credential_mistakes(given)
    assert (mistake["thing"], mistake["what"]) == ("tftp_proxy_pdu_credentials, pdu-b", f"its password {what}")
    assert mistake["remedy"]
    for part in ("SECRET", "WORD", "12.5", "2024"):
        assert part not in json.dumps(mistake)


def test_right_secrets_have_nothing_to_say():
    """Lost: a set-up that ran for years. What is no mapping is the node's to say."""
    given = "a: {username: apc, password: 0}\nb: {community: 'yes'}\nc: x\nd: {ssl: 1, site: ''}\n"
    assert credential_mistakes(yaml.safe_load(given)) == []


def test_text_from_a_vault_is_looked_at_as_text():
    """Lost: each credential that is kept in a vault, on Ansible before 2.19, whose object for it is no text."""

    class Kept:
        __ENCRYPTED__ = True

        def __init__(self, data):
            self.data = data

        def __str__(self):
            return self.data

    assert credential_mistakes({"a": {"password": Kept("SECRET")}}) == []
    (mistake,) = credential_mistakes({"a": {"password": Kept("SECRET\n")}})
    assert "line end" in mistake["what"]


@pytest.mark.parametrize("bad", [{"password": True}, {"password": ["SECRET-WORD"]}, {"own": 12.5}, "SECRET-WORD", None])
def test_the_credential_of_one_pdu_keeps_nobody_from_another(tmp_path, bad):
    """Lost: all boards, for the password of one PDU that may feed none of them."""
    config, credentials = tmp_path / "proxy.json", tmp_path / "credentials.json"
    pdus = {name: {"driver": "apc", "host": "h"} for name in ("pdu-a", "pdu-b", "pdu-c")}
    config.write_text(json.dumps({"pdus": pdus, "credentials": str(credentials)}))
    credentials.write_text(json.dumps({"pdu-a": bad, "pdu-b": {"username": "u", "password": "p"}}))
    read = read_config(str(config))
    assert pdu(read, "pdu-b")[1] == {"username": "u", "password": "p"}
    assert pdu(read, "pdu-c")[1] == {}
    with pytest.raises(BadInput, match=r"credentials.json: pdu-a") as caught:
        pdu(read, "pdu-a")
    assert "SECRET-WORD" not in str(caught.value)
