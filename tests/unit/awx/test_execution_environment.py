# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Execution environment as ansible-builder sees it. If these fail, jobs in AWX have no netaddr, pexpect or ssh."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
import yaml

from ansible_collections.hetero.compute.tests.awx import image
from ansible_collections.hetero.compute.tests.awx.jobs import BIN, ROOT, environment


def builder(*words, cwd):
    argv = [BIN / "ansible-builder", *words]
    done = subprocess.run(argv, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def collections(tmp_path):
    """A folder of collections with this one in it, as an image has it."""
    (tmp_path / "ansible_collections" / "hetero").mkdir(parents=True)
    os.symlink(ROOT, tmp_path / "ansible_collections" / "hetero" / "compute")
    return tmp_path


def test_what_the_collection_needs(collections):
    said = yaml.safe_load(builder("introspect", str(collections), cwd=collections))
    needed = {kind: [line.partition("  #")[0] for line in lines] for kind, lines in said.items()}
    assert needed["python"] == ["netaddr>=0.8", "pexpect>=4.6"]
    assert needed["system"] == ["openssh-client [platform:dpkg]", "openssh-clients [platform:rpm]"]


def test_what_is_asked_for_is_what_is_imported():
    """Every package that requirements.txt names for the controller is in the image as well, but for Ansible itself."""
    own = {line.split("=")[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if line[:1].isalpha()}
    asked = {line.split(">")[0] for line in (ROOT / "meta" / "ee-requirements.txt").read_text().splitlines()}
    assert own - {"ansible-core"} <= asked


GALAXY = [BIN / "ansible-galaxy", "collection"]


def context_of_the_page(folder):
    """What ansible-builder makes of awx/execution-environment.yml, with the archive of this collection beside it."""
    run = dict(env=environment(), capture_output=True, timeout=120)
    subprocess.run([*GALAXY, "build", ROOT, "--output-path", folder / "built"], check=True, **run)
    (folder / "awx").mkdir()
    (archive,) = (folder / "built").iterdir()
    archive.rename(folder / "awx" / "hetero-compute.tar.gz")
    file = shutil.copy(ROOT / "awx" / "execution-environment.yml", folder / "awx")
    context = folder / "context"
    words = ["--file", str(file), "--context", str(context), "--output-filename", "Containerfile"]
    builder("create", *words, cwd=folder)
    return context


def test_the_image_has_a_list_of_packages_and_pip(tmp_path):
    """Lost: every image. Debian's has no list of packages until one is fetched, and its Python refuses ensurepip."""
    text = (context_of_the_page(tmp_path) / "Containerfile").read_text()
    before, installs, after = text.partition("RUN $PKGMGR install $PYPKG")
    assert "docker.io/library/debian:" in before
    assert re.search(r"^RUN apt-get update && apt-get install .*\bpython3-pip\b", before, re.M), text
    assert installs
    assert "pip_install" not in after


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mmdebstrap"), reason="needs root and mmdebstrap")
def test_the_image_can_be_built(tmp_path):
    """Lost: AWX's first step. Each step of the image runs in a bare Debian, and a job's user plays a playbook in it."""
    image.debian(tmp_path / "debian")
    image.Build(context_of_the_page(tmp_path), tmp_path / "debian", tmp_path)
    words = ["/opt/builder/bin/entrypoint", "dumb-init", "ansible-playbook", "hetero.compute.flavors"]
    done = image.inside(tmp_path / "final", words, work="/runner", user="1000:0")
    assert "The inventory has no proxy node, no GPU host and no KVM host" in done.stdout, done.stdout + done.stderr
    for needed in (["ssh", "-V"], ["ansible-runner", "--version"], ["python3", "-c", "import netaddr, pexpect"]):
        done = image.inside(tmp_path / "final", needed, user="1000:0")
        assert done.returncode == 0, done.stderr


def test_the_image_installs_the_archive(tmp_path):
    """Lost: the image, where no server of collections has this one. What its Containerfile runs is run here."""
    run = dict(env=environment(), capture_output=True, timeout=120)
    context, installed = context_of_the_page(tmp_path), tmp_path / "image"
    text = (context / "Containerfile").read_text()
    install = "$ANSIBLE_GALAXY_CLI_COLLECTION_OPTS -r requirements.yml --collections-path"
    assert "COPY _build /build\nWORKDIR /build\n" in text
    assert install in text
    # here, not there, this collection is installed already
    words = ["install", "--force", "--offline", "-r", "requirements.yml", "--collections-path", installed]
    subprocess.run([*GALAXY, *words], cwd=context / "_build", check=True, **run)
    said = yaml.safe_load(builder("introspect", str(installed), cwd=tmp_path))
    assert [line.partition("  #")[0] for line in said["python"]] == ["netaddr>=0.8", "pexpect>=4.6"]
    assert "ansible-core>=2.16" in text
    assert "ansible-runner>=2.4" in text
