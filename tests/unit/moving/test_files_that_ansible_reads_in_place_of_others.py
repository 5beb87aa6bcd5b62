# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of several files of variables of one host Ansible reads the first alone: a folder or file NAME, NAME.yml, NAME.yaml,
NAME.json. If these fail, cabling's write= (the guide names write=host_vars/NAME.yml) or move_in writes a file that
hides the site's own one, or that nobody reads, and says that all is well.

Lost: the PDUs of the node, in a file that is still there; or the wiring, in one that nobody reads.

Tests moving/variables.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving import variables
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.learned_wiring import write_wiring
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved

WIRING = {"2": {"pdu": "pdu-a", "outlet": "5"}}
CSV = "name,mac,ip,arch,vcpus,memory_mb,local_gb\njackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,0\n"
VAULT = os.path.join("proxy1", "vault.yml")
#: File of the site → what Ansible would do with proxy1.yml beside it.
THERE = {"proxy1.yaml": "keep", "proxy1.json": "keep", "proxy1": "not be read", VAULT: "not be read"}


def put(folder, name):
    path = folder / "host_vars" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"from": name}))


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def learned(folder, name):
    return write_wiring(dict(file=str(folder / "host_vars" / name), wiring=WIRING, host="proxy1"), False)


def move_in(folder):
    (folder / "boards.csv").write_text(CSV)
    return moved(folder, "csv", folder / "boards.csv", answers={"proxy": PROXY})


@pytest.mark.dear
def test_ansible_looks_in_this_order(tmp_path):
    """What is known here of Ansible, of which a release may be another."""
    (tmp_path / "hosts.ini").write_text("[proxies]\nproxy1\n")
    program = os.path.join(os.path.dirname(sys.executable), "ansible-inventory")
    words = [program, "-i", "hosts.ini", "--host", "proxy1"]
    for end in reversed(variables.ENDINGS):
        put(tmp_path, f"proxy1{end}")
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=1200, check=True)
        assert json.loads(done.stdout)["from"] == f"proxy1{end}"
        first = variables.of(str(tmp_path / "host_vars"), "proxy1")[0]
        assert os.path.basename(first) == f"proxy1{end}"


@pytest.mark.parametrize(("mine", "would"), THERE.items())
def test_learned_wiring_is_not_written_beside_it(tmp_path, mine, would):
    put(tmp_path, mine)
    top = mine.partition(os.sep)[0]
    words = f"proxy1.yml: would {would}.* .*/host_vars/{top}: name a file outside host_vars, such as wiring.yml"
    with pytest.raises(BadInput, match=words):
        learned(tmp_path, "proxy1.yml")
    assert files(tmp_path) == [f"host_vars/{mine}"]


def test_in_a_folder_that_is_read_it_is_written(tmp_path):
    put(tmp_path, VAULT)
    put(tmp_path, "proxy2.yml")
    assert learned(tmp_path, os.path.join("proxy1", "wiring.yml"))["changed"] is True


@pytest.mark.parametrize("mine", THERE)
def test_move_in_writes_nothing_beside_it(tmp_path, mine):
    put(tmp_path, mine)
    top = mine.partition(os.sep)[0]
    way = "give another folder=FOLDER, and copy" if mine == VAULT else "rename it proxy1.yml"
    with pytest.raises(Refused, match=f"host_vars/{top}: holds the variables of proxy1.*nothing was written: {way}"):
        move_in(tmp_path)
    assert files(tmp_path) == ["answers.yml", "boards.csv", f"host_vars/{mine}"]


def test_renamed_it_stays_and_what_it_lacks_is_named(tmp_path):
    put(tmp_path, "proxy1.yml")
    notes = move_in(tmp_path)["notes"]
    assert "host_vars/proxy1.yml would have tftp_proxy_boards: 0: {}" in notes
    assert json.loads((tmp_path / "host_vars" / "proxy1.yml").read_text()) == {"from": "proxy1.yml"}


@pytest.mark.parametrize(
    ("mine", "read"),
    [
        (None, "group_vars/proxies.yml"),
        ("proxies.yaml", "group_vars/proxies.yaml"),
        (os.path.join("proxies", "vault.yml"), "group_vars/proxies/secrets.yml"),
    ],
)
def test_secrets_are_added_where_they_are_read(tmp_path, mine, read):
    """Lost: a password that was typed and encrypted, in a file that nobody reads."""
    if mine:
        put(tmp_path, os.path.join("..", "group_vars", mine))
    (tmp_path / "boards.csv").write_text(CSV.replace(",local_gb", ",local_gb,pdu,outlet,pdu_driver,pdu_host", 1))
    text = (tmp_path / "boards.csv").read_text().replace("8192,0", "8192,0,pdu-a,1,apc,10.0.100.1")
    (tmp_path / "boards.csv").write_text(text)
    lines = moved(tmp_path, "csv", tmp_path / "boards.csv", answers={"proxy": PROXY})["lines"]
    (line,) = (line for line in lines if line.startswith("! "))
    assert line.endswith(f">> {read}")
