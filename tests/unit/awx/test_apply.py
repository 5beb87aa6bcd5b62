# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/awx.yml by the real modules of awx.awx, against a server that speaks AWX's REST. If these fail, an
operator's second run changes AWX, a dry run writes, or a job template has not what the tables say.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.hetero.compute.tests.awx import collection
from ansible_collections.hetero.compute.tests.awx.jobs import BIN, PROJECT, ROOT, environment
from ansible_collections.hetero.compute.tests.awx.server import SECRET, TOKEN, Server

URL = "https://git.example.org/hardware.git"
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nbWFya2Vy\n-----END OPENSSH PRIVATE KEY-----\n"
GIVEN = {
    "ansible_python_interpreter": sys.executable,
    "hetero_awx_project_url": URL,
    "hetero_awx_ssh_private_key": PRIVATE,
    "hetero_awx_known_hosts": "10.0.2.254 ssh-ed25519 AAAA",
    "hetero_awx_pdu_credentials": {"pdu-a": {"username": "apc", "password": "marker"}},
    "hetero_awx_user_teams": ["people"],
    "hetero_awx_operator_teams": ["operators"],
}


@pytest.fixture
def awx():
    server = Server(PROJECT)
    yield server
    server.close()


def apply(awx, folder, *flags, **more):
    """How much was changed; nothing secret is said."""
    rc, output = run(awx, folder, *flags, **more)
    assert rc == 0, output
    return sum(map(int, re.findall(r" changed=(\d+) ", output)))


def run(awx, folder, *flags, **more):
    (folder / "given.json").write_text(json.dumps({**GIVEN, **more}))
    argv = [BIN / "ansible-playbook", "-i", "localhost,", "hetero.compute.awx", "-e", "@given.json", *flags]
    env = dict(environment(collection.folder()), CONTROLLER_HOST=awx.url, CONTROLLER_OAUTH_TOKEN=TOKEN)
    env.update(HOME=str(folder), no_proxy="127.0.0.1")
    env.update(ANSIBLE_DEPRECATION_WARNINGS="false", ANSIBLE_PIPELINING="true")
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=4000, check=False)
    output = done.stdout + done.stderr
    assert "marker" not in output
    assert "bWFya2Vy" not in output
    return done.returncode, output


def test_a_limit_that_leaves_it_no_host_is_refused(awx, tmp_path):
    """Lost: what was to be made in AWX, without a word and with exit code 0."""
    rc, output = run(awx, tmp_path, "--limit", "p1", "-i", "p1,")
    assert (rc, "--limit leaves out localhost" in " ".join(output.split())) == (2, True), output
    assert awx.writes == []


def test_who_cannot_be_asked_is_told_by_what(tmp_path):
    """Lost: the way on of an operator who forgot a variable, or whose token is over."""
    rc, output = run(SimpleNamespace(url="http://127.0.0.1:9"), tmp_path)
    assert rc == 2, output
    assert "export CONTROLLER_HOST=https://awx.example.org CONTROLLER_OAUTH_TOKEN=TOKEN" in output


def test_a_private_repository_and_image(awx, tmp_path, read):
    """Lost: sites whose hardware is nobody's business: AWX could not fetch their repository, nor pull their image."""
    kind = awx.make("credential_types", {"name": "ours", "inputs": {"fields": []}})
    git, registry = [
        awx.make("credentials", {"name": name, "credential_type": kind["id"]}) for name in ("our git", "our registry")
    ]
    more = {"_templates": [read["templates"]["status"]]}
    given = {"hetero_awx_project_credential": "our git", "hetero_awx_image_credential": "our registry"}
    assert apply(awx, tmp_path, **more, **given) > 0
    assert awx.named("projects")["hetero.compute"]["credential"] == git["id"]
    assert awx.named("execution_environments")["hetero.compute"]["credential"] == registry["id"]
    # what is there, by this playbook or by hand, stays where none is named
    assert apply(awx, tmp_path, **more) == 0
    assert awx.named("projects")["hetero.compute"]["credential"] == git["id"]


def test_what_another_organization_has_is_not_taken(awx, tmp_path, read):
    """Lost: the execution environment of everybody who uses what the first organization has."""
    more = {"_templates": [read["templates"]["status"]]}
    apply(awx, tmp_path, **more)
    awx.make("organizations", {"name": "Other"})
    awx.writes.clear()
    rc, output = run(awx, tmp_path, **more, hetero_awx_organization="Other")
    assert rc == 2, output
    assert "Organization Default of AWX has hetero.compute, and one only can" in output
    rc, output = run(awx, tmp_path, **more, hetero_awx_organization="Nobody")
    assert "AWX has no organization Nobody: give -e hetero_awx_organization=NAME" in output
    assert awx.writes == []


def test_a_dry_run_tells_of_a_team_that_is_none(awx, tmp_path, read):
    """Lost: the word for it, until templates are there that nobody may run."""
    more = {"_templates": [read["templates"]["status"]]}
    rc, output = run(awx, tmp_path, "--check", **more, hetero_awx_user_teams=["status", "peple"])
    assert rc == 2, output
    assert "peple" in output
    # a template that is called as a team is
    awx.make("teams", {"name": "status"})
    assert run(awx, tmp_path, "--check", **more, hetero_awx_user_teams=["status"])[0] == 0


#: Two of the templates, for `make test`; `make test-all` takes them all, a module each.
SOME = ["provide an instance", "status"]


@pytest.mark.parametrize("names", [pytest.param(SOME, id="some"), pytest.param([], id="all", marks=pytest.mark.long)])
def test_made_once(awx, tmp_path, read, names):
    wanted = {name: template for name, template in read["templates"].items() if name in names or not names}
    more = {"_templates": list(wanted.values())} if names else {}
    assert apply(awx, tmp_path, "--check", **more) > 0
    assert awx.writes == []
    assert apply(awx, tmp_path, **more) > 0
    made = awx.templates()
    assert set(made) == {f"hetero.compute: {name}" for name in wanted}
    for name, template in wanted.items():
        compare(awx, made[f"hetero.compute: {name}"], template)
    (project,), (source,) = awx.objects["projects"], awx.objects["inventory_sources"]
    assert (project["scm_url"], source["source"], source["source_path"]) == (URL, "scm", "inventory")
    injectors = awx.named("credential_types")["hetero.compute: nodes"]["injectors"]
    assert injectors == read["types"]["nodes"]["injectors"]
    kept = awx.named("credentials")["hetero.compute: PDUs"]
    assert kept["inputs"] == {"credentials": json.dumps(GIVEN["hetero_awx_pdu_credentials"])}
    users = [template for template in wanted.values() if template["for"] == "users"]
    assert {team: awx.held_by(team) for team in ("people", "operators")} == {
        "people": len(users),
        "operators": len(wanted),
    }

    awx.writes.clear()
    # one thing that somebody changed by hand is put back, and nothing else
    awx.named("job_templates")["hetero.compute: status"]["allow_simultaneous"] = False
    assert apply(awx, tmp_path, **more) == 1
    assert [(method, path.split("/")[3]) for method, path, _data in awx.writes] == [("PATCH", "job_templates")]


def compare(awx, template, wanted):
    assert template["extra_vars"] == wanted["extra_vars"]
    assert template["survey_enabled"] is bool(wanted["survey"])
    assert template["survey_spec"] == (wanted["survey_spec"] if wanted["survey"] else {})
    assert template["allow_simultaneous"] is True
    assert template["ask_variables_on_launch"] is False
    held = ["hetero.compute: PDUs"] * (wanted["playbook"] == "proxy") + ["hetero.compute: nodes"]
    assert awx.credentials_of(template) == held


def test_the_server_hides_secrets_as_awx_does(awx):
    """Without it, a second run that rewrites every secret would not be seen."""
    kind = awx.make("credential_types", {"name": "t", "inputs": {"fields": [{"id": "a", "secret": True}]}})
    made = awx.make("credentials", {"name": "c", "credential_type": kind["id"], "inputs": {"a": "x"}})
    assert awx.answer("GET", made["url"], {}, {})[1]["inputs"] == {"a": SECRET}


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_constructor("!unsafe", lambda loader, node: "")


def test_every_key_is_one_of_the_modules(tmp_path):
    """A task that awx.awx refuses with "Unsupported parameters" on somebody's AWX: keys, types and choices of each."""
    (play,) = yaml.load((ROOT / "playbooks" / "awx.yml").read_text(), _Loader)
    asked = {}
    for task in play["tasks"]:
        asked.update({name: task[name] for name in task if name.startswith("awx.awx.")})
    argv = [BIN / "ansible-doc", "--json", *asked]
    env = dict(environment(collection.folder()), HOME=str(tmp_path))
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=1200, check=True)
    described = json.loads(done.stdout)
    assert len(asked) == 8
    for name, arguments in asked.items():
        options = described[name]["doc"]["options"]
        assert set(arguments) <= set(options), name
        assert {key for key, option in options.items() if option.get("required")} <= set(arguments), name
        for key, value in arguments.items():
            choices = options[key].get("choices")
            assert not choices or "{{" in str(value) or value in choices, (name, key)
