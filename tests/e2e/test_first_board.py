# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide to the first real board, word by word, by who has the collection's archive and nothing else of this clone.

If this fails, whoever follows it with a rack of their own is stuck at a step. A fresh Python environment gets
ansible-core from PyPI and the collection from its archive; the lab comes up from there. Each command of the page is
typed within the lab's network, with the page's own files. What only a lab needs lies beside them, in host_vars.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess

import pexpect
import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, blocks, guide, named

PAGE = guide("first_board")
#: What a command asks on a terminal, and what is typed there: the password of the lab's PDUs.
ASKED, TYPED = "Password of the PDU: ", "apc"
#: Lets the lab's key log in to its proxy node as an operator's would, and takes what is shown first for the host key.
SSH = """#!/bin/sh
exec /usr/bin/ssh -F {home}/ssh_config "$@"
"""
SSH_CONFIG = """Host *
  IdentityFile {home}/.ssh/id_ed25519
  IdentityFile {lab}/ssh/id_ed25519
  StrictHostKeyChecking accept-new
  UserKnownHostsFile {home}/known_hosts
"""
#: Of the lab's proxy node, a container on a small disk.
OF_THE_LAB = dict(
    ansible_python_interpreter="/usr/bin/python3", tftp_proxy_exports="ganesha", tftp_proxy_roots_overcommit=1000
)
#: Gives both boards' images, the lab's own and the same under another architecture; and the consoles the page's name.
PREPARE = """set -e
ln -s hetero/consoles /var/log/conserver
cp /srv/images/debian-12.tar /srv/images/tilera.tar
mkdir /srv/x86
tar -xf /srv/images/debian-12.tar -C /srv/x86
sed -i 's/tilepro64/x86_64/I' /srv/x86/image.json
grep -q x86_64 /srv/x86/image.json
"""


def commands():
    """The commands of the page's shell blocks, in order, but for those of class `elsewhere`: another machine's."""
    found = [(options, content) for language, options, content in blocks(PAGE) if language == "shell"]
    return [line for options, content in found if options.get("class") != "elsewhere" for line in content.splitlines()]


def without_disks(images):
    """What the page has who has no disk to wipe write of its images."""
    ram = images.pop("tftp_proxy_ram_images").values()
    return dict(images, tftp_proxy_images=[one for one in images["tftp_proxy_images"] if one["name"] not in ram])


class Site:
    """A user's folder and home, and the shell in which the page's commands are typed."""

    def __init__(self, folder):
        self.folder, self.home, self.lab = folder, folder / "home", folder / ".lab"
        (self.home / ".ssh").mkdir(parents=True)
        kept = ("LANG", "http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_CONFIG_FILE")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ["HOME"], ".cache")
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.env.update(HOME=str(self.home), USER="root", XDG_CACHE_HOME=cache, NO_COLOR="1", PAGER="cat")
        self.env.update(PATH=f"{folder}/venv/bin:{path}", PWD=str(folder))
        pip = os.path.expanduser("~/.config/pip/pip.conf")
        if os.path.exists(pip):
            self.env.setdefault("PIP_CONFIG_FILE", pip)

    @property
    def description(self):
        return json.loads((self.lab / "lab.json").read_text())

    def type(self, line, inside=True, timeout=900):
        """Type one line, within the lab's network as on a controller beside the boards; returns what it printed."""
        begin = ["nsenter", f"--net=/run/netns/{self.description['namespace']}"] if inside else []
        first, *more = [*begin, "bash", "-c", line]
        where = dict(cwd=str(self.folder), env=self.env, encoding="utf-8", timeout=timeout)
        terminal = pexpect.spawn(first, more, codec_errors="replace", dimensions=(50, 200), **where)
        said = ""
        if terminal.expect_exact([pexpect.EOF, ASKED]):
            said = terminal.before + ASKED
            terminal.sendline(TYPED)
            terminal.expect_exact(pexpect.EOF)
        said = f"{said}{terminal.before}".replace("\r\n", "\n")
        terminal.close()
        print(f"# {line}\n{said}")
        assert terminal.exitstatus == 0, f"{line}: ended with {terminal.exitstatus}\n{said}"
        return said

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    clone = ["git", "-c", "safe.directory=*", "clone", "--quiet", ROOT, tmp_path / "hetero.compute"]
    subprocess.run(clone, check=True, timeout=1200)
    try:
        yield made
    finally:
        with contextlib.suppress(FileNotFoundError):
            made.type("ansible-playbook hetero.compute.lab_down", inside=False)


def installed(site, lines):
    """Type the page's first commands, as far as the collection is there; returns the others."""
    last = next(number for number, line in enumerate(lines) if line.startswith("ansible-doc"))
    for line in lines[: last + 1]:
        site.type(line, inside=False)
    shutil.rmtree(site.folder / "hetero.compute")  # from here on there is the archive alone
    (archive,) = site.folder.glob("hetero-compute-*.tar.gz")
    site.write("requirements.yml", named(PAGE, "requirements").replace("hetero-compute-VERSION.tar.gz", archive.name))
    site.type("ansible-galaxy collection install --force --offline -r requirements.yml", inside=False)
    where = "ansible_collections/hetero/compute"
    assert (site.home / ".ansible" / "collections" / where / "MANIFEST.json").exists()
    return lines[last + 1 :]


@pytest.mark.long
def test_word_by_word(site):
    """A command that fails, a file that is not found as the page lays it, a board that does not come up."""
    rest = installed(site, commands())
    assert len(rest) > 10
    site.write("ansible.cfg", named(PAGE, "ansible.cfg"))
    site.type("ansible-playbook hetero.compute.lab_up", inside=False, timeout=2400)
    site.write("home/ssh_config", SSH_CONFIG.format(home=site.home, lab=site.lab))
    site.write("venv/bin/ssh", SSH.format(home=site.home))
    (site.folder / "venv/bin/ssh").chmod(0o755)
    site.type("ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519")
    site.type(f"ssh root@10.0.2.254 {shlex.quote(PREPARE)}")
    site.type("ssh root@10.0.2.254 'tar -C /srv/x86 -cf /srv/images/bookworm-amd64.tar .; rm -r /srv/x86'")
    site.write("files/boards", named(PAGE, "boards"))
    site.write("inventory.yml", named(PAGE, "inventory"))
    host = dict(OF_THE_LAB)
    site.write("host_vars/proxy1.yml", yaml.safe_dump(host))
    said = {}
    for line in rest:
        if line.startswith("export "):
            name, value = line.removeprefix("export ").split("=")
            site.env[name] = value.replace("~", str(site.home))
            continue
        if "-e instance=jackie" in line and "tftp_proxy_images" not in host:
            # step 6 is a change of the inventory, and step 3 once more
            host.update(without_disks(yaml.safe_load(named(PAGE, "images"))))
            site.write("host_vars/proxy1.yml", yaml.safe_dump(host))
            site.type("ansible-playbook -i inventory.yml hetero.compute.proxy")
        # a login ends with what is typed into it
        said[line] = site.type(f"{line} true" if line.startswith("ssh ") else line)
    found = {name: [text for line, text in said.items() if name in line] for name in ("cabling", "pdu_info", "status")}
    assert all(len(texts) == 1 for texts in found.values()), found
    assert "board0" in found["cabling"][0]
    assert "vaulted_pdu_password: !vault |" in (site.folder / "group_vars" / "proxies.yml").read_text()
    assert "jackie is running on board1: ssh root@10.0.2.2" in "".join(said.values())
    assert "bob is running on board0: ssh root@10.0.2.1" in "".join(said.values())
    assert len(re.findall(r"^board[01] .* power off ", found["status"][0], re.MULTILINE)) == 2
    dry = said[next(line for line in said if line.endswith("hetero.compute.proxy --check --diff"))]
    assert len(dry.splitlines()) < 2000, "a dry run of the set-up is to be read by people"
