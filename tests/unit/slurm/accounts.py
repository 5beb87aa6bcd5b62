# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's MariaDB and slurmdbd on the controller (machines.py), and accounts, as role slurm and its guide say."""

from __future__ import annotations

import subprocess

import yaml

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: On a file system of this machine's own: the controller's root is an overlay.
DATA = "/var/lib/hetero/mysql"
SMALL = ["--skip-networking", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--performance-schema=off"]


def account(slurm):
    """Start MariaDB, do what the role does to it, and start slurmdbd."""
    root = slurm.machine.root
    rc, output = slurm.run("mariadb-install-db", "--user=mysql", f"--datadir={DATA}", "--skip-test-db", timeout=900)
    assert rc == 0, output
    (root / "run" / "mysqld").mkdir(exist_ok=True)
    subprocess.run(["chown", "mysql:mysql", root / "run" / "mysqld"], check=True)
    slurm.start("mariadbd", f"--datadir={DATA}", "--user=mysql", "--socket=/run/mysqld/mysqld.sock", *SMALL)
    slurm.until(lambda: slurm.run("mariadb-admin", "ping")[0] == 0, 300)
    tasks = yaml.safe_load((ROOT / "roles" / "slurm" / "tasks" / "accounting.yml").read_text())
    (words,) = [task["ansible.builtin.command"]["argv"] for task in tasks if task["name"] == "Database"]
    rc, output = slurm.run(*(word.replace("{{ slurm_user }}", "slurm") for word in words))
    assert rc == 0, output
    subprocess.run(["chroot", root, "chown", "slurm", "/etc/slurm/slurmdbd.conf"], check=True)
    slurm.start("slurmdbd", "-D", user="slurm")
    slurm.until(lambda: slurm.run("sacctmgr", "-n", "show", "cluster")[0] == 0, 300)


def people(slurm, *names):
    """Have users on the controller, each with an account of its own and the same share."""
    for number, name in enumerate(names):
        rc, output = slurm.run("useradd", "--uid", 5001 + number, "--no-create-home", name)
        assert rc == 0, output
        for words in (["account", name], ["user", name, f"Account={name}", "Fairshare=1"]):
            rc, output = slurm.run("sacctmgr", "-i", "add", *words)
            assert rc == 0, output
