# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which NFS server a machine gets. If these fail, tenants who do not trust each other share all files of a new proxy
node without a word, or boards that run lose theirs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    FOLDER,
    Claim,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import machine, nfs_check, preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan

PROGRAMS = {"ganesha": "ganesha.nfsd", "nfsd": machine.KERNEL_SERVER}
#: What is said of each proxy node that exports by nfs-ganesha.
OPEN = f"root on any board reads and writes all files of {THIS_NODE} and of its tenants"
SWITCH = "when no board has an instance, set tftp_proxy_exports: nfsd and run ansible-playbook hetero.compute.proxy"


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A machine whose kernel has an NFS server, and that was never set up."""
    monkeypatch.setattr(nfs_check, "has_nfsd", lambda: node.has_nfsd)
    monkeypatch.setattr(nfs_check, "may_open_by_handle", lambda: True)
    for module in (nfs_check, preflight):
        monkeypatch.setattr(module, "port_holders", lambda _kind, port, _at: node.held() if port == 2049 else set())
    files = {name: server._replace(file=str(tmp_path / name)) for name, server in nfs_check.SERVERS.items()}
    monkeypatch.setattr(nfs_check, "SERVERS", files)

    def look(exports="auto"):
        plan = Plan(server="10.0.2.254", state_folder=str(tmp_path), config=str(node.config), exports=exports)
        found = Findings()
        server = nfs_check.nfs_server(plan, found)
        aside = nfs_check.set_aside(server)
        preflight.ports(plan, found, [server, *aside])
        return server, [str(defect) for defect in found.defects], [str(note) for note in found.notes], aside

    def set_up(server):
        node.config.write_text(f'{{"exports": "{server}"}}')
        (tmp_path / server).write_text("")
        node.holders = {PROGRAMS[server]}

    def claim(board=1, instance="jackie"):
        claim = Claim(board, instance, instance, "jo", {"name": "tp64.8x8"}, "demo", "ssh-rsa AAAA", 1.5)
        with Store(str(tmp_path / "state.db"), records=str(tmp_path / FOLDER)) as store:
            store.adopt(Kept(claim, "running"), "running", "", "a test")

    node = SimpleNamespace(has_nfsd=True, holders=set(), config=tmp_path / "proxy.json", folder=tmp_path)
    node.look, node.set_up, node.claim = look, set_up, claim
    node.held = lambda: node.holders
    return node


def test_a_new_machine_gets_the_kernels_server(node):
    """Lost: all files of the node and of its tenants, on each machine where nobody asked for nfs-ganesha."""
    assert node.look() == ("nfsd", [], [], [])


def test_a_new_machine_whose_kernel_has_none_is_not_set_up(node):
    """Lost: the same, on a container that nobody said to be for tenants who trust each other."""
    node.has_nfsd = False
    _server, (defect,), notes, _aside = node.look()
    assert notes == []
    assert defect.startswith("NFS: tftp_proxy_exports is nfsd on a new machine, and this kernel has no NFS server")
    assert "whose kernel has module nfsd" in defect
    assert "tftp_proxy_exports: ganesha is for tenants who trust each other" in defect
    assert OPEN in defect


@pytest.mark.parametrize("asked", ["auto", "nfsd"])
def test_a_machine_that_lost_its_kernels_server_is_told_so(node, asked):
    node.set_up("nfsd")
    node.has_nfsd = False
    server, (defect,), _notes, _aside = node.look(asked)
    assert server == "nfsd"
    assert defect.startswith("NFS: this kernel has no NFS server, or it is not this container's: use a machine")


def test_what_was_set_up_with_the_kernels_server_stays(node):
    node.set_up("nfsd")
    node.claim()
    assert node.look() == ("nfsd", [], [], [])


def test_what_was_set_up_with_ganesha_stays_and_is_told_what_that_is(node):
    """Lost: the roots of boards that run, by another server's handles; or what an operator must know about this one."""
    node.set_up("ganesha")
    node.claim()
    server, defects, (note,), aside = node.look()
    assert (server, defects, aside) == ("ganesha", [], [])
    assert note == (f"NFS: nfs-ganesha, which auto keeps here, serves names with / in them, by which {OPEN}: {SWITCH}")


def test_a_configuration_of_an_older_release_names_no_server(node):
    """Each release that wrote none exported by nfs-ganesha."""
    node.config.write_text("{}")
    assert node.look()[0] == "ganesha"


@pytest.mark.parametrize("before", [None, "ganesha"])
def test_who_asks_for_ganesha_has_it_and_is_told(node, before):
    if before:
        node.set_up(before)
    server, defects, (note,), _aside = node.look("ganesha")
    assert (server, defects) == ("ganesha", [])
    assert note == f"NFS: nfs-ganesha serves names with / in them, by which {OPEN}: {SWITCH}"


def test_a_container_is_not_told_to_switch_to_what_it_has_not(node):
    node.has_nfsd = False
    _server, defects, (note,), _aside = node.look("ganesha")
    assert defects == []
    assert note.endswith("tenants who trust each other, or set up a proxy node whose kernel has module nfsd")


@pytest.mark.parametrize(("before", "after"), [("ganesha", "nfsd"), ("nfsd", "ganesha")])
def test_the_server_changes_while_nobody_has_a_board(node, before, after):
    """Lost: the way out. The set-up stopped at the other server, which it had started itself, and holds the port."""
    node.set_up(before)
    server, defects, _notes, aside = node.look(after)
    assert (server, defects, aside) == (after, [], [before])
    # a set-up that was cut off after it wrote its configuration and before it stopped the other one
    node.config.write_text(f'{{"exports": "{after}"}}')
    (node.folder / after).write_text("")
    server, defects, _notes, aside = node.look()
    assert (server, defects, aside) == (after, [], [before])


def test_a_server_that_is_not_the_roles_own_is_not_stopped(node):
    """Lost: what somebody else exports from there."""
    node.holders = {"ganesha.nfsd"}
    _server, (defect,), _notes, aside = node.look()
    assert aside == []
    assert defect == "port 2049/tcp (NFS): is held by ganesha.nfsd: stop and disable ganesha.nfsd"


@pytest.mark.parametrize(("before", "after"), [("ganesha", "nfsd"), ("nfsd", "ganesha")])
def test_the_server_does_not_change_under_a_board_that_is_somebodys(node, before, after):
    """Lost: all open files of all boards that run: each is stale by another server's handles."""
    node.set_up(before)
    node.claim(1, "jackie")
    node.claim(3, "bob")
    _server, (defect,), _notes, _aside = node.look(after)
    assert defect == (
        f"tftp_proxy_exports: is {after}, and by {before} are the files of jackie on board1, bob on board3: they would"
        f" all be stale: set it when no board has an instance; until then tftp_proxy_exports: {before}"
    )


def test_the_server_does_not_change_where_nobody_can_tell_who_has_boards(node):
    node.set_up("ganesha")
    (node.folder / "state.db").write_text("this is no database" * 100)
    _server, (defect,), _notes, _aside = node.look("nfsd")
    assert "so that tftp_proxy_exports cannot become nfsd" in defect


@pytest.mark.parametrize("damaged", ["state.db", f"{FOLDER}/board1.json"])
def test_boards_that_may_be_somebodys_keep_their_server_as_those_that_are(node, damaged):
    """Lost by a guess: the files of a running board, whose claim nobody can read, to a node without its proxy.json."""
    path = node.folder / damaged
    path.parent.mkdir(exist_ok=True)
    path.write_text("this says nothing" * 100)
    node.holders = {PROGRAMS["ganesha"]}
    assert (node.look()[0], node.look()[3]) == ("ganesha", [])
    node.set_up("ganesha")
    _server, (defect,), _notes, _aside = node.look("nfsd")
    assert "so that tftp_proxy_exports cannot become nfsd" in defect


@pytest.mark.parametrize(
    "written", ['{"boards": {"1": {"pdu', '{"exports": "nfsd", "boards": {"1": {"disk": {}}}}', "", None]
)
@pytest.mark.parametrize("server", ["ganesha", "nfsd"])
def test_a_broken_file_is_written_anew_for_the_server_that_runs(node, written, server):
    """Lost: the way out. Each verb says of a broken proxy.json to run the set-up, which stopped at the same file."""
    node.holders = {PROGRAMS[server]}
    if written is not None:
        node.config.write_text(written)
    else:
        node.claim()
    found, defects, (note, *_of_ganesha), _aside = node.look()
    assert (found, defects) == (server, [])
    assert note.startswith(f"{node.config}: ")
    assert note.endswith(f", and is written anew: its boards' files stay with {server}")


@pytest.mark.parametrize("written", ["{", None])
def test_without_a_server_that_runs_an_operators_word_is_taken(node, written):
    """Lost by a guess: the other server's handles make all boards' files stale. A node that was installed anew, whose
    state folder was kept, has no file at all.
    """
    if written is not None:
        node.config.write_text(written)
    else:
        node.claim()
    _server, (defect,), _notes, _aside = node.look()
    assert defect.endswith("say which it was: tftp_proxy_exports: ganesha, or nfsd")
    for word in ("ganesha", "nfsd"):
        server, defects, _notes, _aside = node.look(word)
        assert (server, defects) == (word, [])


#: A program that takes the name of nfs-ganesha, as an account if one is given, and listens on a port that it says. With
#: `hidden` no process has the socket: it is on its way from the program to itself.
FORGED = """
import os, socket, sys
account, hidden = int(sys.argv[1]), sys.argv[2]
with open("/proc/self/comm", "w") as comm:
    comm.write("ganesha.nfsd")
os.setuid(account)
with socket.create_server(("127.0.0.1", 0)) as sock:
    print(sock.getsockname()[1], flush=True)
    if hidden:
        one, other = socket.socketpair()
        socket.send_fds(one, [b"x"], [sock.fileno()])
        sock.close()
    print("listens", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another account needs root: run as root")
@pytest.mark.parametrize(
    ("account", "hidden", "said"),
    [
        (65534, "", r"ganesha.nfsd \(/.*python.*\) of uid 65534"),
        (0, "", r"ganesha.nfsd \(/.*python.*\)"),
        (65534, "hidden", "a program outside this container of uid 65534"),
    ],
)
def test_only_roots_own_server_tells_by_which_one_boards_have_their_files(node, monkeypatch, account, hidden, said):
    """Lost: all files of the node and of its tenants, by a local account that chose nfs-ganesha for the operator, or
    the kernel's server, by whose handles all files of boards that run would be stale.
    """
    node.claim()
    with subprocess.Popen(
        [sys.executable, "-c", FORGED, str(account), hidden], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        held = int(program.stdout.readline())
        assert program.stdout.readline() == "listens\n"
        node.held = lambda: machine.port_holders("tcp", held, "127.0.0.1")
        monkeypatch.setattr(machine, "NFS", held, raising=False)
        _server, defects, _notes, _aside = node.look()
        program.stdin.close()
    untold, stranger = defects
    assert "no NFS server runs here that would tell" in untold
    assert re.fullmatch(rf"port 2049/tcp \(NFS\): is held by {said}: stop and disable {said}", stranger)


@pytest.mark.parametrize("kind", ["board-roots", "roots"])
def test_a_root_alone_says_that_somebody_may_have_a_board(node, kind):
    """Lost: the files of each board that runs, where the database and the records of claims are lost together."""
    (node.folder / kind / "fs_3").mkdir(parents=True)
    assert node.look() == ("nfsd", [], [], []), "an empty folder is nobody's root"
    (node.folder / kind / "fs_3" / "made.json").write_text("{}")
    server, defects, _notes, _aside = node.look()
    assert server == "ganesha", "of a node that is not known, nothing is changed"
    assert "no NFS server runs here that would tell" in defects[0]
    node.set_up("ganesha")
    assert node.look()[0] == "ganesha"
    (why,) = [text for text in node.look("nfsd")[1] if "fs_3" in text]
    assert "is the root of board3, of which no claim is known, so that tftp_proxy_exports cannot become nfsd" in why
    assert why.endswith("ansible-playbook hetero.compute.reconcile says whose it is")


def test_the_root_of_a_known_claim_is_told_by_its_instance_alone(node):
    """Lost: who is meant, among errors of roots that are somebody's as they should be."""
    node.set_up("ganesha")
    node.claim(board=3)
    (node.folder / "board-roots" / "fs_3").mkdir(parents=True)
    (node.folder / "board-roots" / "fs_3" / "made.json").write_text("{}")
    defects = node.look("nfsd")[1]
    assert any("jackie on board3" in text for text in defects)
    assert not any("fs_3" in text for text in defects)
