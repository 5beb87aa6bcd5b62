# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are there, numbers that boards have, and answers. If these fail, a site's own work is written over, or a
board gets another one's number, and with it its root.
"""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.documents import yaml_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.yaml_lines import (
    Template,
    flow,
    for_ansible,
    word,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import BoardsFileError, read
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, files, moved, questions, wiring

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb\n"
JACKIE, BOB, EVE = (
    f"{name},02:00:00:00:08:0{number},10.0.2.{number},x86_64,4,8192,0\n"
    for number, name in enumerate(("jackie", "bob", "eve"), 1)
)


def table(folder, *rows):
    path = folder / "t.csv"
    path.write_text(HEAD + "".join(rows))
    return path


def ids(folder):
    return {board.mac[-2:]: board.id for board in read(folder / "files" / "boards")}


def test_no_text_of_others_is_a_template_to_ansible():
    """Lost: the controller, to who writes a command for a console: in a table, its line breaks are not seen."""
    line = "#jinja2:variable_start_string:'[[',variable_end_string:']]'\n[[ lookup('pipe', 'id') ]]"
    console = {"command": line, "more": ["{{ x }}", Template("{{ ours }}")]}
    value = {"pdu": "pdu-a", "outlet": 3, "console_from": console}
    text = for_ansible(value)
    assert text == (
        f"{{pdu: pdu-a, outlet: 3, console_from: {{command: !unsafe {json.dumps(line)}, "
        'more: [!unsafe "{{ x }}", "{{ ours }}"]}}'
    )
    assert yaml_of(text, "site") == value


@pytest.mark.parametrize(
    "text", ["a\u00a0\U0001f600", "\U000e0001", "\U0001f600", "\x7f\t\"\\u0041", "\u2028", "\ufeff"]
)
def test_a_text_is_the_same_when_it_is_read(text):
    """Lost: a password of a PDU with an emoji and a blank that does not break: no program could write it any more."""
    assert yaml_of(f"{{k: {word(text)}}}", "site") == {"k": text}
    assert yaml.safe_load(word(text)) == text
    assert word(text).isprintable()


def test_a_second_run_changes_nothing(tmp_path):
    site = tmp_path / "site"
    first = moved(site, "csv", "broken.csv", answers={"proxy": PROXY})
    there = files(site)
    times = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    again = moved(site, "csv", "broken.csv")
    assert (first["changed"], again["changed"]) == (True, False)
    assert (again["diff"], files(site)) == ([], there)
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == times
    assert questions(again) == questions(first)


def test_check_shows_it_and_writes_nothing(tmp_path):
    site = tmp_path / "site"
    result = moved(site, "csv", "boards.csv", check=True)
    assert result["changed"]
    assert not site.exists()
    diff = {entry["after_header"]: entry["after"] for entry in result["diff"]}
    assert "00:1A:CA:00:58:98" in diff[str(site / "files" / "boards")]
    assert "name: null" in diff[str(site / "answers.yml")]


def test_a_file_that_is_there_is_changed_by_a_word_only(tmp_path):
    site = tmp_path / "site"
    moved(site, "csv", table(tmp_path, JACKIE), answers={"proxy": PROXY})
    there = files(site)
    more = table(tmp_path, JACKIE, BOB)
    with pytest.raises(Refused, match=r"files/boards, host_vars/proxy1\.yml are there with another content"):
        moved(site, "csv", more)
    assert files(site) == there
    dry = moved(site, "csv", more, check=True)
    assert any("replace=true writes it anew" in note for note in dry["notes"])
    assert files(site) == there
    assert moved(site, "csv", more, replace=True)["changed"]
    assert ids(site) == {"01": 0, "02": 1}


def test_nothing_is_written_where_one_file_would_need_the_word(tmp_path):
    site = tmp_path / "site"
    (site / "files").mkdir(parents=True)
    (site / "files" / "boards").write_text("# mine\n")
    with pytest.raises(Refused):
        moved(site, "csv", table(tmp_path, JACKIE))
    assert files(site) == {"files/boards": "# mine\n"}


def test_an_inventory_and_answers_are_peoples_own(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "inventory.yml").write_text("all: {}\n")
    own = "# ours\nproxy: {server: 10.0.2.254, name: proxy1}\nboards: {bob: {skip: true}}\n"
    (site / "answers.yml").write_text(own)
    result = moved(site, "csv", table(tmp_path, JACKIE, BOB), replace=True)
    assert (site / "inventory.yml").read_text() == "all: {}\n"
    assert (site / "answers.yml").read_text() == own
    assert [one["name"] for one in result["boards"]] == ["jackie"]
    assert any("inventory.yml is there and is not changed" in note for note in result["notes"])


def test_new_questions_are_added_by_a_word_and_answers_stay(tmp_path):
    site = tmp_path / "site"
    moved(site, "csv", table(tmp_path, JACKIE))
    path = site / "answers.yml"
    path.write_text(path.read_text().replace("name: null", "name: proxy1").replace("pdu: null", "pdu: pdu-b"))
    before = path.read_text()
    lacking = table(tmp_path, JACKIE, BOB.replace("8192", ""))
    result = moved(site, "csv", lacking)
    assert any("answers.yml has no line for some questions" in note for note in result["notes"])
    assert path.read_text() == before
    moved(site, "csv", lacking, replace=True)
    said = yaml.safe_load(path.read_text())
    assert (said["proxy"]["name"], said["boards"]["jackie"]["pdu"]) == ("proxy1", "pdu-b")
    assert said["boards"]["bob"]["memory_mb"] is None
    assert said["pdus"]["pdu-b"]["driver"] is None


def test_a_board_keeps_its_number(tmp_path):
    """By its MAC, whatever comes before it; and a number that was another's is no new board's."""
    site = tmp_path / "site"
    moved(site, "csv", table(tmp_path, JACKIE, BOB))
    moved(site, "csv", table(tmp_path, EVE, BOB, JACKIE), replace=True)
    assert ids(site) == {"01": 0, "02": 1, "03": 2}
    result = moved(site, "csv", table(tmp_path, BOB, EVE.replace(":03", ":04")), replace=True)
    assert ids(site) == {"02": 1, "04": 3}
    assert any("has board0, board2" in note for note in result["notes"])


def test_a_number_that_two_would_have_is_a_question(tmp_path):
    site = tmp_path / "site"
    moved(site, "csv", table(tmp_path, JACKIE, BOB))
    answers = {"boards": {"eve": {"id": 1}}}
    result = moved(site, "csv", table(tmp_path, JACKIE, BOB, EVE), answers=answers, replace=True)
    assert {("bob", "id"), ("eve", "id")} <= set(questions(result))
    assert ids(site) == {"01": 0}


def test_a_boards_file_with_defects_is_not_gone_over(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "boards").write_text("0 10.0.2.1\n")
    with pytest.raises(BoardsFileError):
        moved(tmp_path, "csv", table(tmp_path, JACKIE), replace=True)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"bords": {}}, "has an unknown key"),
        ({"boards": {"jackie": {"memory": 1}}}, "is no word for an answer"),
        ({"pdus": {"pdu-a": {"password": "geheim"}}}, "is a secret, which this file is not for"),
        ({"proxy": {"server": "10.0.2.256"}}, "give an IPv4 address"),
        ({"proxy": {"name": "a b"}}, "give a host's name"),
        ({"proxy": {"name": "../x"}}, "give a host's name"),
        ({"boards": {"jackie": 5}}, "give keys and values there"),
        ({"boards": {"jackie": {"skip": "maybe"}}}, "give true or false"),
        ([1], "holds no answers"),
    ],
)
def test_answers_that_are_none_are_said(tmp_path, answers, words):
    with pytest.raises(BadInput, match=words) as said:
        moved(tmp_path / "site", "csv", table(tmp_path, JACKIE), answers=answers)
    assert "geheim" not in str(said.value)


def test_a_wrong_answer_is_asked_again(tmp_path):
    answers = {"boards": {"jackie": {"mac": "ff:ff:ff:ff:ff:ff", "ip": "10.0.2.9"}, "gone": {"ip": "10.0.2.1"}}}
    result = moved(tmp_path / "site", "csv", table(tmp_path, JACKIE), answers=answers)
    assert "answers.yml, boards: jackie: mac is no board's MAC" in questions(result)["jackie", "mac"]
    assert any("boards: gone: is none that the source has" in note for note in result["notes"])


def test_an_answer_of_ansibles_own_words_is_no_value(tmp_path):
    answers = {"proxy": PROXY, "boards": {"jackie": {"console": "{{ lookup('pipe', 'id') }}"}}}
    result = moved(tmp_path / "site", "csv", table(tmp_path, JACKIE), answers=answers)
    assert "which no inventory may hold" in questions(result)["jackie", "console"]
    assert wiring(tmp_path / "site")["tftp_proxy_boards"] == {0: {}}


def test_two_boards_of_one_name_are_two(tmp_path):
    other = BOB.replace("bob", "jackie").replace("8192", "")
    result = moved(tmp_path / "site", "csv", table(tmp_path, JACKIE, other))
    assert ("jackie (2)", "memory_mb") in questions(result)


def test_a_wiring_that_the_set_up_refuses_is_a_question(tmp_path):
    """A number of an outlet that no APC unit has; the board is written down without it."""
    head = HEAD.strip() + ",pdu,outlet,pdu_driver,pdu_host,driver,disk\n"
    rows = [JACKIE.strip() + ",pdu-a,B7,apc,10.0.100.1,,\n", BOB.strip() + ",pdu-a,8,,,,sda\n"]
    (tmp_path / "t.csv").write_text(head + "".join(rows))
    result = moved(tmp_path / "site", "csv", tmp_path / "t.csv", answers={"proxy": PROXY})
    asked = questions(result)
    assert "is none that a PDU has" in asked["jackie", "outlet"]
    assert "disk is no device name" in asked["bob", "disk"]
    wires = wiring(tmp_path / "site")["tftp_proxy_boards"]
    assert wires == {0: {}, 1: {"pdu": "pdu-a", "outlet": 8}}


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "site").write_text("")
    with pytest.raises((HeteroError, NotADirectoryError)):
        moved(tmp_path / "site", "csv", table(tmp_path, JACKIE))


@pytest.mark.parametrize(
    "text", ["yes", "null", "1", "010", "1:30", "a b", "a: b", "#x", "", "é", "\x1b", "10.0.0.1", "x.y"]
)
def test_words_of_yaml_stay_what_they_are(text):
    assert yaml.safe_load(f"{word(text)}: {flow([text, {text: 1}, True, None])}") == {
        text: [text, {text: 1}, True, None]
    }


def test_one_pdu_by_two_names_feeds_two_boards_by_no_outlet(tmp_path):
    head = HEAD.strip() + ",pdu,outlet,pdu_driver,pdu_host\n"
    rows = [JACKIE.strip() + ",pdu-a,8,apc,10.0.100.1\n", BOB.strip() + ",pdu-b,8,snmp,10.0.100.1\n"]
    (tmp_path / "t.csv").write_text(head + "".join(rows))
    result = moved(tmp_path / "site", "csv", tmp_path / "t.csv", answers={"proxy": PROXY})
    said = "one outlet would feed jackie (outlet 8 of pdu-a) and bob (outlet 8 of pdu-b)"
    assert said in questions(result)["jackie", "outlet"]
    assert wiring(tmp_path / "site")["tftp_proxy_boards"] == {0: {}, 1: {}}


def test_the_proxys_own_address_is_no_boards(tmp_path):
    rows = table(tmp_path, JACKIE.replace("10.0.2.1", PROXY["server"]))
    result = moved(tmp_path / "site", "csv", rows, answers={"proxy": PROXY})
    assert "is the proxy node's own" in questions(result)["jackie", "ip"]


def test_a_link_stays_a_link(tmp_path):
    site = tmp_path / "site"
    (site / "files").mkdir(parents=True)
    (site / "files" / "boards").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("")
    moved(site, "csv", table(tmp_path, JACKIE), replace=True)
    assert (site / "files" / "boards").is_symlink()
    assert "10.0.2.1" in (tmp_path / "elsewhere").read_text()
