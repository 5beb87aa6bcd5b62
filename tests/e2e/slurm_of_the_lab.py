# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's controller on the lab's own machine, for boards that really boot: set up as the guide says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

from labs import ANSIBLE, FLAVOR, ROOT

from ansible_collections.hetero.compute.tests.unit.plays import proxies
from ansible_collections.hetero.compute.tests.unit.slurm.controllers import Controller

#: Addresses of the lab's own machine and of its proxy node, on the boards' network (roles/lab/templates/lab.json.j2).
ADDRESS, PROXY = "10.0.2.253", "10.0.2.254"
KEYS, HOME = "/etc/hetero/keys", "/var/lib/hetero-slurm"
#: Seconds in which a job's first line is there; two boards at once take half a minute.
LIMIT = 600
EVENTS = """import json, sqlite3
rows = sqlite3.connect("file:/var/lib/hetero/state.db?mode=ro", uri=True).execute(
    "SELECT time, board, instance, phase, text FROM events WHERE time > {since} ORDER BY id")
print(json.dumps(rows.fetchall()))"""


class SlurmOfTheLab(Controller):
    """A controller on the lab's own machine."""

    def __init__(self, folder, lab):
        super().__init__(folder, lab.description["namespace"], ADDRESS)
        self.lab = lab

    def set_up(self, slots, number=None, boot_timeout=300, **variables):
        """Follow the guide's steps: playbook slurm, its key on the proxy node, a user's key.

        :param slots: what `slurm_slots` says of the lab's flavor.
        :param number: uid of user ann, the next free one where it is None.
        :param boot_timeout: seconds.
        :param variables: more of the role's.
        """
        local = {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}
        own = dict(hetero_default_image="debian-12", hetero_boot_timeout=boot_timeout, ansible_user="root")
        own.update(ansible_python_interpreter="/usr/bin/python3")
        site = {"all": {"vars": own, "hosts": local}, "proxies": {"hosts": {"proxy1": {"ansible_host": PROXY}}}}
        partitions = {"boards": {"flavors": [FLAVOR], "default": True}}
        variables.update(slurm_partitions=partitions, slurm_slots={FLAVOR: slots}, slurm_keys=KEYS)
        entry = self.its_inventory(site, **variables)
        entry["hosts"]["ctl"].update(ansible_connection="folder", ansible_python_interpreter="/usr/bin/python3")
        entry["hosts"]["ctl"].update(ansible_remote_tmp="/tmp/hetero-plays")
        path = self.folder / "slurm.json"
        path.write_text(json.dumps({"slurm": entry}))
        connection = Path(proxies.__file__).parent / "connection"
        env = dict(self.lab.env, ANSIBLE_CONNECTION_PLUGINS=str(connection), PROXY_ROOTS=str(self.folder))
        argv = [ANSIBLE / "ansible-playbook", "-i", self.lab.folder / "inventory", "-i", path, "hetero.compute.slurm"]
        done = subprocess.run(
            argv, check=False, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=1200,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        self.lab.on_proxy(f"mkdir -p -m 700 /root/.ssh; echo '{self.public_key.strip()}' >> /root/.ssh/authorized_keys")
        rc, output = self.logs_in(PROXY)
        assert rc == 0, output
        self.person("ann", self.machine.folder / "etc" / "hetero" / "keys", number)
        self.start_all()

    def play(self, name, **options):
        """The words of a play as Slurm's user has it, with a progress line for each phase."""
        site = json.loads(self.machine.path("etc/slurm/hetero.json").read_text())
        env = dict(site["environment"], HOME=HOME, LANG="C.UTF-8", PYTHONUNBUFFERED="1")
        words = [word for key, value in options.items() for word in ("-e", f"{key}={value}")]
        return [
            "env",
            *(f"{key}={value}" for key, value in env.items()),
            *site["play"],
            f"hetero.compute.{name}",
            *words,
        ]

    def lines(self, *words, user):
        """Run a command; its exit code, and its lines, each with the time at which it came."""
        process = subprocess.Popen(
            self.inside(*words, user=user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={"PATH": os.environ["PATH"], "HOME": f"/home/{user}"}, cwd="/",
        )  # fmt: skip
        found = [(time.time(), line.rstrip()) for line in process.stdout]
        return process.wait(LIMIT), found

    def events(self, since):
        return json.loads(self.lab.on_proxy(f"python3 -c '{EVENTS.format(since=since)}'"))

    def begun(self, since):
        """When Slurm's program began to ask for a node; its log has milliseconds."""
        text = self.machine.path("var/log/hetero-slurm/hetero-slurm.log").read_text()
        stamps = re.findall(r"^(\S+ \S+) resume\[", text, re.M)
        times = [datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp() for stamp in stamps]
        return next(one for one in times if one > since)
