# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Job templates as AWX has them, and jobs as it runs them: by ansible-runner, from a folder of files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import ansible_runner
import yaml

from ansible_collections.hetero.compute.tests.awx.rules import extra_vars_file, inject, launch, of_the_job
from ansible_collections.hetero.compute.tests.builds import shared

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "awx" / "project"
BIN = Path(sys.executable).parent
#: The tables of playbooks/awx.yml as Ansible understands them.
TABLES = """- hosts: localhost
  connection: local
  gather_facts: false
  vars_files: [{files}]
  tasks:
    - ansible.builtin.copy:
        dest: "{{{{ playbook_dir }}}}/tables.json"
        content: "{{{{ {{'templates': _templates, 'types': _credential_types}} | to_json }}}}"
"""
FILES = ("playbooks/vars/request.yml", "awx/surveys.yml", "awx/credentials.yml")


def environment(*collections):
    """Nobody's settings but ours."""
    foreign = ("ANSIBLE_", "PYTHON", "CONTROLLER_", "TOWER_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    paths = ":".join(map(str, [ROOT / "build", *collections]))
    return dict(
        env,
        PATH=f"{BIN}:{env['PATH']}",
        ANSIBLE_COLLECTIONS_PATH=paths,
        ANSIBLE_LOCALHOST_WARNING="false",
        ANSIBLE_NOCOLOR="1",
        **shared(),
    )


def tables(folder):
    """{"templates": job templates by playbook-and-name as launch() takes them, "types": credential types}."""
    (folder / "tables.yml").write_text(TABLES.format(files=", ".join(str(ROOT / name) for name in FILES)))
    argv = [
        BIN / "ansible-playbook",
        "-i",
        "localhost,",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        "tables.yml",
    ]
    done = subprocess.run(
        argv, cwd=folder, env=environment(), capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    read = json.loads((folder / "tables.json").read_text())
    for template in read["templates"]:
        template["survey_enabled"] = bool(template["survey"])
        template["survey_spec"] = {"name": "", "description": "", "spec": template["survey"]}
        template["extra_vars"] = {"hetero_playbook": template["playbook"], **template.get("extra_vars", {})}
    return {"templates": {template["name"]: template for template in read["templates"]}, "types": read["types"]}


@dataclass
class Job:
    """A job that ended."""

    rc: int
    output: str
    stats: dict
    artifacts: dict
    kept: Path

    @property
    def everything(self):
        """All that AWX keeps of it and shows to whoever may see the job: output, events, facts, artifacts."""
        return "\n".join(path.read_text(errors="replace") for path in self.kept.rglob("*") if path.is_file())

    @property
    def changed(self):
        return sum(self.stats["changed"].values())


class Awx:
    """Runs jobs in folders below `folder`.

    :param inventory: path of the inventory, as AWX has it in a file
    :param env: environment of the jobs
    :param credentials: name of a credential type → its inputs
    """

    def __init__(self, folder, read, inventory, env, credentials=None):
        self.folder, self.read, self.inventory, self.env = folder, read, inventory, env
        self.credentials = credentials or {}
        self.runs = 0

    def run(self, name, user="jo", edited=False, check=False, **answers):
        template = self.read["templates"][name]
        variables = {**of_the_job(user), **launch(template, answers, edited)}
        self.runs += 1
        place = self.folder / f"job-{self.runs}"
        (place / "env").mkdir(parents=True)
        shutil.copytree(PROJECT, place / "project")
        (place / "env" / "extravars").write_text(extra_vars_file(variables, template))
        words = []
        for kind in ["nodes", *template.get("credentials", [])]:
            if kind in self.credentials:
                given = inject(self.read["types"][kind], self.credentials[kind], place / "env")
                (place / "env" / f"tmp-{kind}.json").write_text(json.dumps(given))
                words += ["-e", f"@{place}/env/tmp-{kind}.json"]
        ended = ansible_runner.run(
            private_data_dir=str(place),
            playbook="play.yml",
            inventory=str(self.inventory),
            envvars=self.env,
            cmdline=" ".join([*words, *(["--check"] if check else [])]),
            quiet=True,
            settings={"suppress_env_files": True, "job_timeout": 300},
        )
        with ended.stdout as file:
            output = file.read()
        last = [event["event_data"] for event in ended.events if event["event"] == "playbook_on_stats"]
        assert last, output
        return Job(ended.rc, output, last[0], last[0].get("artifact_data") or {}, Path(ended.config.artifact_dir))


def on_lab(lab, folder):
    """AWX with a lab's inventory, less the way in that is the credential's there."""
    shutil.copytree(lab.folder / "inventory", folder / "inventory")
    path = folder / "inventory" / "lab.yml"
    text = yaml.safe_load(path.read_text())
    for group in ("proxies", "hypervisor_lxc", "hypervisor_kvm"):
        for node in text.get(group, {}).get("hosts", {}).values():
            del node["ansible_ssh_private_key_file"], node["ansible_control_path_dir"]
            (proxy_command,) = re.findall(r'-o ProxyCommand="[^"]+"', node["ansible_ssh_common_args"])
            node["ansible_ssh_common_args"] = proxy_command
    path.write_text(yaml.safe_dump(text))
    way = lab.folder / "ssh"
    held = {"ssh_private_key": (way / "id_ed25519").read_text(), "known_hosts": (way / "known_hosts").read_text()}
    (folder / "tables").mkdir()
    env = dict(environment(), HOME=str(folder), ANSIBLE_SSH_CONTROL_PATH_DIR=str(folder / "first"))
    return Awx(folder, tables(folder / "tables"), folder / "inventory", env, {"nodes": held})
