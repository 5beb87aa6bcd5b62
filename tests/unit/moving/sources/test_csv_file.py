# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of a table. If these fail, a board has another's outlet, or something that nobody ever said of it."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import read
from ansible_collections.hetero.compute.tests.unit.moving.moves import (
    MARKER,
    PROXY,
    files,
    moved,
    needed,
    questions,
    wiring,
)


def test_a_whole_table_leaves_no_question(tmp_path):
    result = moved(tmp_path, "csv", "boards.csv", answers={"proxy": PROXY})
    assert result["questions"] == []
    assert result["changed"]
    boards = read(tmp_path / "files" / "boards")
    assert [(board.id, board.ip, board.mac, board.vcpus, board.memory_mb, board.arch) for board in boards] == [
        (0, "10.0.2.2", "00:1a:ca:00:58:98", 4, 8192, "x86_64"),
        (1, "10.0.2.3", "00:1a:ca:00:58:99", 4, 4096, "aarch64"),
    ]
    said = wiring(tmp_path)
    assert said["tftp_proxy_pdus"] == {"pdu-a": {"driver": "snmp", "host": "10.0.100.1"}}
    assert said["tftp_proxy_boards"] == {
        0: {"pdu": "pdu-a", "outlet": 6, "disk": "/dev/sda"},
        1: {"pdu": "pdu-a", "outlet": 7, "driver": "uboot"},
    }
    assert said["tftp_proxy_pdu_credentials"] == {"pdu-a": {"community": "{{ vaulted_pdu_a_community }}"}}
    assert result["vault"] == ["vaulted_pdu_a_community"]


def test_no_secret_is_written_or_said(tmp_path):
    result = moved(tmp_path, "csv", "boards.csv", answers={"proxy": PROXY})
    assert MARKER not in str(files(tmp_path)) + str(result)
    assert any("secrets belong into a vault" in note for note in result["notes"])


def test_what_is_wrong_is_asked_and_never_guessed(tmp_path):
    """A missing field, two boards with one MAC, an outlet of two boards, words that are none, Jinja in a cell."""
    result = moved(tmp_path, "csv", "broken.csv", answers={"proxy": PROXY})
    asked = questions(result)
    assert needed(result) == {
        ("lacks", "memory_mb"), ("twin-a", "mac"), ("twin-b", "mac"), ("odd", "vcpus"), ("slip", "ip"),
        ("evil", "arch"), ("pdu-b", "driver"),
    }  # fmt: skip
    assert "is said of twin-a (broken.csv:3) and twin-b (broken.csv:4)" in asked["twin-a", "mac"]
    assert "outlet 3 of pdu-a is said of share-a" in asked["share-b", "outlet"]
    assert 'no such driver: "pdu3000"' in asked["pdu-b", "driver"]
    assert 'no such driver: "pxxe"' in asked["slip", "driver"]
    assert result["boards"] == [{"id": 0, "name": "share-a"}, {"id": 1, "name": "share-b"}]
    assert wiring(tmp_path)["tftp_proxy_boards"] == {0: {}, 1: {}}
    assert "lookup" not in (tmp_path / "host_vars" / "proxy1.yml").read_text()


def test_each_question_says_where_its_answer_is_written(tmp_path):
    result = moved(tmp_path, "csv", "broken.csv")
    places = yaml.safe_load((tmp_path / "answers.yml").read_text())
    said = {one["where"] for one in result["questions"]}
    assert said >= {"proxy: name", "boards: lacks: memory_mb", "pdus: pdu-b: driver"}
    for one in result["questions"]:
        at = places
        for key in one["where"].split(": "):
            assert key in at, one
            at = at[key]
        assert at is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "names neither a column name nor mac"),
        ("name,mac,mac_address\nx,y,z\n", "has two columns that mean mac"),
        ("name,mac\nx,y,z\n", "has 3 cells where the first line has 2"),
        ('name,mac\n"x,y\n', "is no table"),
        ("name,mac\n", "has no boards"),
    ],
)
def test_what_is_no_table_is_said(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BadInput, match=words):
        moved(tmp_path / "site", "csv", tmp_path / "t.csv")
    assert not (tmp_path / "site").exists()


def test_a_file_that_is_no_text_is_said(tmp_path):
    (tmp_path / "t.csv").write_bytes("name,mac\nx,y\n".encode("utf-16"))
    with pytest.raises(BadInput, match="is not in UTF-8"):
        moved(tmp_path / "site", "csv", tmp_path / "t.csv")
    with pytest.raises(BadInput, match="cannot be read"):
        moved(tmp_path / "site", "csv", tmp_path / "none.csv")


def test_an_address_of_the_web_is_taken_without_its_password(tmp_path):
    (tmp_path / "t.csv").write_text(
        "name,mac,ip,arch,vcpus,memory_mb,local_gb,pdu,outlet,pdu_driver,pdu_api,pdu_host\n"
        f"a,02:00:00:00:00:01,10.0.2.1,x86_64,1,1024,0,plug,0,http,shelly2,https://jo:{MARKER}@10.0.100.5:8443/x\n"
        f"b,02:00:00:00:00:02,10.0.2.2,x86_64,1,1024,0,bad,0,http,shelly2,http://jo:{MARKER}@[::1/\n"
    )
    result = moved(tmp_path / "site", "csv", tmp_path / "t.csv", answers={"proxy": PROXY})
    said = wiring(tmp_path / "site")
    assert said["tftp_proxy_pdus"] == {
        "plug": {"driver": "http", "api": "shelly2", "host": "10.0.100.5", "port": 8443, "tls": True}
    }
    assert said["tftp_proxy_pdu_credentials"]["plug"]["username"] == "jo"
    assert "its address is none" in questions(result)["bad", "host"]
    assert MARKER not in str(files(tmp_path / "site")) + str(result)


def test_a_path_that_is_none_is_a_question_of_its_own(tmp_path):
    (tmp_path / "t.csv").write_text(
        "name,mac,ip,arch,vcpus,memory_mb,local_gb,console\na,02:00:00:00:00:01,10.0.2.1,x86_64,1,1024,0,boards.log\n"
    )
    result = moved(tmp_path / "site", "csv", tmp_path / "t.csv", answers={"proxy": PROXY})
    assert "give an absolute path" in questions(result)["a", "console"]
    assert wiring(tmp_path / "site")["tftp_proxy_boards"] == {0: {}}


@pytest.mark.parametrize("row", ["{long},02:00:00:00:00:01,pdu-a", "a,02:00:00:00:00:01,{long}"])
def test_a_name_that_no_key_of_yaml_can_have_is_refused(tmp_path, row):
    """Lost: the answers to all boards, in a file that the next run cannot read."""
    (tmp_path / "t.csv").write_text(f"name,mac,pdu\n{row.format(long='x' * 1100)}\n")
    with pytest.raises(BadInput, match=r"t\.csv:2: has a name of 1100 characters, x+…: give it one of at most 150"):
        moved(tmp_path / "site", "csv", tmp_path / "t.csv")
