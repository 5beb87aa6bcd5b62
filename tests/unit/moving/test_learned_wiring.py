# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring that was learned, as a file. If these fail, a file of the site's is written over, or read no more."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.learned_wiring import write_wiring

WIRING = {"10": {"disk": "none"}, "2": {"pdu": "pdu-a", "outlet": "5", "driver": "pxe"}}


def write(path, *wiring, check=False):
    (given,) = wiring or (WIRING,)
    return write_wiring(dict(file=str(path), wiring=given, host="p1"), check)


def test_a_new_file_has_all_boards(tmp_path):
    path = tmp_path / "site" / "wiring.yml"
    assert write(path, check=True)["changed"] is True
    assert not path.exists()
    result = write(path)
    assert (result["changed"], result["lines"]) == (True, [f"{path} has them, as tftp_proxy_boards of p1"])
    text = path.read_text()
    assert yaml.safe_load(text) == {"tftp_proxy_boards": {2: WIRING["2"], 10: WIRING["10"]}}
    head = text.splitlines()[:4]
    learned = "ansible-playbook hetero.compute.cabling -e learn=…"
    assert head[0] == f"# Learned by {learned}: tftp_proxy_boards of p1, all of it"
    look = f"ansible-playbook hetero.compute.proxy --limit p1 --check --diff -e @{path}"
    assert head[1] == f"# To look at it: {look}"
    assert head[3] == "tftp_proxy_boards:"


@pytest.mark.parametrize("wiring", [None, WIRING])
@pytest.mark.parametrize("check", [False, True])
def test_what_is_there_stays(tmp_path, wiring, check):
    path = tmp_path / "wiring.yml"
    path.write_text("mine\n")
    with pytest.raises(Refused, match="is there, and stays; nothing was written: name another file"):
        write(path, wiring, check=check)
    assert path.read_text() == "mine\n"


def test_without_wiring_it_is_only_looked(tmp_path):
    assert write(tmp_path / "wiring.yml", None)["changed"] is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["yml", "yaml", "json"])
def test_no_file_is_hidden_from_ansible(tmp_path, end):
    """Of host_vars/p1.yml and host_vars/p1/ Ansible reads the folder alone: the PDUs would be gone."""
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / f"p1.{end}").write_text("tftp_proxy_pdus: {}\n")
    with pytest.raises(BadInput, match=f"would keep Ansible from reading .*/host_vars/p1.{end}: name a file outside"):
        write(tmp_path / "host_vars" / "p1" / "wiring.yml", None)
    with pytest.raises(BadInput, match=r"p1/wiring.yml.*: name a file outside host_vars, such as wiring.yml"):
        write(tmp_path / "host_vars" / "p1" / "wiring.yml", None)
    assert write(tmp_path / "host_vars" / "p2" / "wiring.yml")["changed"] is True
    assert write(tmp_path / "site" / "wiring.yml")["changed"] is True


def test_what_is_no_board_is_refused_before_an_outlet_is_switched(tmp_path):
    params = dict(file=str(tmp_path / "wiring.yml"), boards={"board3": {}}, wiring=None, host=None)
    with pytest.raises(BadInput, match='tftp_proxy_boards: "board3": is no board\'s id'):
        write_wiring(params, False)


def test_outlets_that_were_learned_count_and_other_words_are_the_inventorys(tmp_path):
    """The node's wiring is from before, and the inventory may have been edited since."""
    boards = {"0": {"pdu": "pdu-a", "outlet": 4, "disk": "/dev/sda"}, "1": None, "2": {"pdu": "pdu-a", "outlet": 6}}
    learned = {
        "0": {"pdu": "pdu-a", "outlet": "3", "disk": "none"},
        "7": {"pdu": "pdu-a", "outlet": "8", "disk": "none"},
    }
    path = tmp_path / "wiring.yml"
    write_wiring(dict(file=str(path), boards=boards, wiring=learned, host="p1"), False)
    assert yaml.safe_load(path.read_text())["tftp_proxy_boards"] == {
        0: {"pdu": "pdu-a", "outlet": "3", "disk": "/dev/sda"},
        1: {},
        2: boards["2"],
        7: learned["7"],
    }
