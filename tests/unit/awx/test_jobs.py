# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job template's answers, typed as AWX types them, through ansible-runner to the playbooks. If these fail, a
survey that somebody filled in fails as a job, or does what was not asked for.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.tests.awx import jobs, rules
from ansible_collections.hetero.compute.tests.turns import todays
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy

NOBODY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
PDUS = {"pdu-a": {"username": "apc", "password": "marker-{{ nobody }}"}}
OTHER = KEY.replace("ssh-ed25519 AAAA", "ssh-ed25519 AAAB")


@pytest.fixture
def on_folders(tmp_path, read):
    """AWX whose inventory has a proxy that is a folder, with two boards."""
    if os.geteuid() != 0:
        pytest.skip("a root of one's own needs root: run as root")
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    config = tmp_path / "p1" / "etc" / "hetero" / "proxy.json"
    wired = json.loads(config.read_text())
    for board in wired["boards"].values():
        board.update(console="/etc/hetero/board.log")
    config.write_text(json.dumps(wired))
    config.with_name("board.log").write_text("login:\n")
    try:
        books = Playbooks(tmp_path, ["p1"])
        env = dict(
            jobs.environment(), **{name: books.env[name] for name in ("ANSIBLE_CONNECTION_PLUGINS", "PROXY_ROOTS")}
        )
        yield jobs.Awx(tmp_path, read, tmp_path / "inventory.json", dict(env, ANSIBLE_PIPELINING="true"))
    finally:
        proxy.remove()


@pytest.fixture
def unreachable(tmp_path, read):
    """AWX whose inventory has hosts of each kind, which nobody can reach: what a job says before it asks them."""
    own = {"hetero_default_image": "debian", "tftp_proxy_boards_file": str(jobs.PROJECT / "files" / "tilera_boards")}
    own.update(tftp_proxy_server="10.0.2.254")
    local = {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}
    inventory = {"all": {"vars": own, "hosts": local}}
    for group, name in (("proxies", "p1"), ("hypervisor_lxc", "g1"), ("hypervisor_kvm", "k1")):
        inventory[group] = {"hosts": {name: NOBODY}}
    (tmp_path / "inventory.json").write_text(json.dumps(inventory))
    credentials = {"pdus": {"credentials": json.dumps(PDUS)}}
    return jobs.Awx(tmp_path, read, tmp_path / "inventory.json", jobs.environment(), credentials)


def test_the_life_of_an_instance(on_folders):
    """Each verb on a board as a user fills in its form, empty answers sent and left out."""
    run = on_folders.run
    form = dict(instance="jackie", flavor="tp64.8x8", key=KEY, image="", hours=24, count=1, partial="false", board=0)
    form.update(boot_source="nfs", attempts=2)
    dry = run("provide an instance", check=True, **rules.filled_in(form))
    assert (dry.rc, dry.artifacts) == (0, {}), dry.output
    job = run("provide an instance", **rules.filled_in(form))
    assert job.rc == 0, job.output
    (given,) = job.artifacts["hetero_instances"]
    assert (given["instance"], given["board"]) == ("jackie", 0)
    # nothing but what must be said, and the survey as AWX's own form saves it
    again = run("provide an instance", edited=True, instance="jackie", flavor="tp64.8x8", key=KEY)
    assert (again.rc, again.changed) == (0, 0), again.output
    shown = run("status")
    assert re.search("lease (24 h|1 d|23 h [0-9]+ min) left", shown.output), shown.output
    eve = run("terminate an instance", user="eve", instance="jackie", wipe="discard")
    assert eve.rc != 0
    assert "jackie belongs to jo, not to eve" in eve.output
    for name, answers, said in (
        ("console of an instance", {"lines": 5}, "board0"),
        ("extend an instance's lease", {"hours": "none"}, "lease: no end"),
        ("stop an instance", {}, "jackie is stopped"),
        ("start an instance", {}, "jackie is running on board0"),
        ("rebuild an instance", {"image": "", "key": OTHER, "fresh": "false"}, "jackie is running on board0"),
        ("reboot an instance", {"how": "hard", "soft_timeout": 30}, "board0"),
        ("migrate an instance", {}, "jackie is running on board1"),
    ):
        done = run(name, edited=True, instance="jackie", **answers)
        assert done.rc == 0, done.output
        assert said in done.output, done.output
    ended = run("terminate an instance", edited=True, instance="jackie", wipe="discard")
    assert ended.rc == 0, ended.output


def test_what_operators_do(on_folders):
    """Each verb that is an operator's, with an instance of somebody on a board."""
    run = on_folders.run
    job = run("provide an instance", edited=True, instance="jackie", flavor="tp64.8x8", key=KEY)
    assert job.rc == 0, job.output
    for name, answers, said in (
        ("console of a board", {"node": "board0", "lines": 1}, "board0"),
        ("reconcile", {}, "2 boards: 2 as recorded"),
        ("maintenance of a board", {"node": "board1", "state": "on", "reason": "its fan rattles"}, "its fan rattles"),
        ("maintenance of a board", {"node": "board1", "proxy": "p1", "state": "off"}, "board1"),
        ("repair a board", {"node": "1", "proxy": "p1"}, "TASK [Free it]"),
        ("terminate anybody's instance", {"instance": "jackie", "wipe": "discard"}, "board0"),
    ):
        done = run(name, user="operator", edited=True, **answers)
        assert done.rc == 0, done.output
        assert said in done.output, done.output
    assert "jackie" not in run("status").output


#: What a user may be called → what Ansible may make of it in a job, and of another user's name.
ODD = [
    "007",
    "7",
    "010",
    "8",
    "0x10",
    "yes",
    "true",
    "True",
    "null",
    "~",
    "1.5",
    "2024-01-01",
    "[1]",
]
#: The name that is one, and the one that AWX's number of another becomes.
PLAIN = ["jo", "awx-user-7"]


@pytest.mark.parametrize("days", [4, pytest.param(1, marks=pytest.mark.long)])
def test_each_users_name_is_one_owner(tmp_path, days):
    """Lost: another's instances, by a name that Ansible reads as theirs; one's own, by one that is no text to it."""
    said = str(jobs.ROOT / "playbooks/vars/request.yml")
    play = [{"hosts": "localhost", "gather_facts": False, "vars_files": [said]}]
    facts = "{{ {'owner': _owner, 'text': _owner is string} | to_json }}"
    play[0]["tasks"] = [{"ansible.builtin.copy": {"dest": "{{ playbook_dir }}/{{ told }}", "content": facts}}]
    (tmp_path / "play.json").write_text(json.dumps(play))
    owners = {}
    users = [*PLAIN, *todays(ODD, days)]
    for number, user in enumerate(users):
        variables = rules.of_the_job(user)
        (tmp_path / "vars").write_text(rules.extra_vars_file(variables, {"extra_vars": {}}))
        words = ["-c", "local", "-e", f"@{tmp_path}/vars", "-e", f"told=told-{number}"]
        words += ["-e", f"ansible_python_interpreter={sys.executable}", "play.json"]
        argv = [str(jobs.BIN / "ansible-playbook"), "-i", "localhost,", *words]
        subprocess.run(argv, cwd=tmp_path, env=jobs.environment(), check=True, timeout=600, stdout=subprocess.DEVNULL)
        told = json.loads((tmp_path / f"told-{number}").read_text())
        assert told["text"], user
        assert told["owner"] in (user, f"awx-user-{variables['awx_user_id']}"), user
        owners[user] = told["owner"]
    assert len(set(owners.values())) == len(users), owners
    assert owners["jo"] == "jo"
    assert owners["awx-user-7"] != "awx-user-7", "the name of whom AWX numbered 7"


def test_users_who_are_called_by_numbers(on_folders):
    """Lost: a board with each try, for it belongs to nobody who could end it; or to whom a name like it belongs."""
    run = on_folders.run
    job = run("provide an instance", user="007", instance="jackie", flavor="tp64.8x8", key=KEY)
    assert job.rc == 0, job.output
    for other in ("7", f"awx-user-{rules.of_the_job('007')['awx_user_id']}"):
        theirs = run("terminate an instance", user=other, instance="jackie", wipe="discard")
        assert theirs.rc != 0
        assert "jackie belongs to " in theirs.output, theirs.output
    own = run("terminate an instance", user="007", instance="jackie", wipe="discard")
    assert own.rc == 0, own.output
    assert "jackie" not in run("status").output


@pytest.mark.parametrize("name", ["010", "yes"])
def test_an_instance_that_may_be_called_otherwise(unreachable, name):
    """Lost: instance 8, by who ends 010. Where Ansible leaves the text as it is, the name is that text."""
    for template, more in (("provide an instance", dict(flavor="tp64.8x8", key=KEY)), ("terminate an instance", {})):
        job = unreachable.run(template, edited=True, instance=name, **more)
        assert job.rc != 0
        said = "which may not be what was typed" in job.output
        assert said or f"may hold {name}: " in job.output, job.output
        assert said != bool(job.stats["dark"]), job.output


#: Template → answers (none: another test has them), and what the job says that no host can be asked.
ASKING = {
    "provide an instance": dict(instance="ml-8", flavor="cg1.xlarge", key=KEY, hours=1, count=2, partial="true"),
    "terminate an instance": dict(instance="ml-8", without=""),
    "reboot an instance": dict(instance="ml-8", how="soft", soft_timeout=1),
    "stop an instance": dict(instance="ml-8"),
    "start an instance": dict(instance="ml-8"),
    "rebuild an instance": dict(instance="ml-8", image="other", fresh="true"),
    "migrate an instance": dict(instance="ml-8", board=3, node="gpu1"),
    "extend an instance's lease": dict(instance="ml-8", hours="87600"),
    "console of an instance": dict(instance="ml-8", lines=10000),
    "watch an instance": dict(instance="ml-8"),
    "status": {},
    "flavors": {},
    "provide an instance while nodes are down": dict(instance="ml-8", flavor="cg1.xlarge", key=KEY, without=""),
    "images": dict(nodes="p1", image="debian-13", src="/srv/images/debian-13.tar", state="present"),
    "terminate anybody's instance": dict(instance="ml-8", wipe="zero"),
    "take back an instance's move": dict(instance="ml-8", back="true"),
    "console of a board": dict(node="board3", proxy="p1", lines=1),
    "repair a board": dict(node="3", wipe="secure_erase"),
    "maintenance of a board": dict(node="board3", state="off"),
    "reconcile": {},
    "cabling": dict(node="board3,board4", seconds=1, learn=""),
    "check of boards": dict(node="board3,board4", proxy="p1"),
    "set up the proxy nodes": dict(nova_compute="true"),
    "set up the GPU hosts": {},
    "set up the KVM hosts": {},
}


#: What the life above does not show; `make test-all` asks the others as well.
SOON = {"provide an instance", "images", "cabling"}
SOON |= {"set up the proxy nodes", "set up the GPU hosts", "set up the KVM hosts"}


@pytest.mark.parametrize(
    "name", [name if name in SOON else pytest.param(name, marks=pytest.mark.long) for name in sorted(ASKING)]
)
def test_answers_pass_the_playbooks_own_checks(unreachable, name):
    """The job fails at a host that cannot be reached, and nowhere before."""
    job = unreachable.run(name, edited=True, **ASKING[name])
    if "instance" in ASKING[name]:
        assert "p1, g1, k1 cannot be asked, and may hold ml-8" in job.output, job.output
        return
    if name == "flavors":
        assert "Could not be asked: p1, g1, k1" in job.output, job.output
        return
    # these two show who did answer, and only then fail for who did not
    shows = name in ("status", "reconcile", "images", "console of a board")
    assert job.stats["dark"] or (shows and "p1" in job.output), job.output
    assert "UNREACHABLE" in job.output or name == "status", job.output
    assert list(job.stats["failures"]) == (["localhost"] if shows else []), job.output


def test_all_templates_are_tried(read):
    assert set(ASKING) == set(read["templates"])


@pytest.mark.parametrize(
    ("name", "answers", "said"),
    [
        ("provide an instance", dict(instance="x", flavor="tp64.8x8", key="PRIVATE KEY"), "That is a private key"),
        ("rebuild an instance", dict(instance="x", key="-----BEGIN OPENSSH PRIVATE KEY-----"), "That is a private key"),
        ("maintenance of a board", dict(node="board3", state="on"), "A reason is missing"),
        ("repair a board", dict(node="{{ lookup('pipe', 'id') }}"), "Name the board"),
    ],
)
def test_what_a_survey_lets_through_the_playbook_says(unreachable, name, answers, said):
    """Told by the playbook, not by a module's trace; and an answer that looks like a template is only text."""
    job = unreachable.run(name, edited=True, **answers)
    assert job.rc != 0
    assert said in job.output, job.output
    assert not job.stats["dark"]


def test_the_pdus_passwords(unreachable, tmp_path):
    """The set-up of proxy nodes gets them as the role wants them, from a file, and the job does not show them."""
    template = unreachable.read["templates"]["set up the proxy nodes"]
    variables = rules.inject(unreachable.read["types"]["pdus"], unreachable.credentials["pdus"], tmp_path)
    path = variables["hetero_awx_pdu_file"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    (tmp_path / "vars").write_text(rules.extra_vars_file({**template["extra_vars"], **variables}, template))
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.assert": {"that": SAME}}]}]
    (tmp_path / "play.json").write_text(json.dumps(play))
    (tmp_path / "expected.json").write_text(json.dumps({"expected": PDUS["pdu-a"]["username"]}))
    words = ["-e", f"@{tmp_path}/vars", "-e", f"@{tmp_path}/expected.json", "play.json"]
    argv = [str(jobs.BIN / "ansible-playbook"), "-i", str(unreachable.inventory), *words]
    done = subprocess.run(
        argv, cwd=tmp_path, env=unreachable.env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "marker" not in unreachable.run("set up the proxy nodes").output


SAME = [
    "tftp_proxy_pdu_credentials['pdu-a'].username == expected",
    "tftp_proxy_pdu_credentials['pdu-a'].password | length == 19",
]
