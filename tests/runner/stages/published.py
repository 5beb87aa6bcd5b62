# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages about what users get: ansible-lint's rules, and the packed collection."""

from __future__ import annotations

import json
import shutil
import tempfile

from runner.places import BIN, BUILD, ROOT, environment
from runner.tools import StageFailed, counted, tool


def lint(log):
    """ansible-lint on what users get: each other playbook costs a syntax check, which its scenario is as well."""
    return _lint(log, *(f"--exclude={folder}/" for folder in ("docs", "molecule", "plugins", "tests")))


def lint_everywhere(log):
    """ansible-lint on all files."""
    return _lint(log)


def _lint(log, *words):
    # It installs the collection into Ansible's home and believes that copy later: each run has a home of its own.
    with tempfile.TemporaryDirectory(prefix="hetero-lint-") as home:
        env = environment(ANSIBLE_HOME=home)
        output = tool(log, [BIN / "ansible-lint", "--profile", "production", "--offline", "--nocolor", *words], env=env)
    return f"{counted(r' in ([0-9]+) files processed', output, 'files')} files"


def package(log):
    """The collection as a user gets it: packed, accepted by Galaxy's importer, installed, documentation read there."""
    folder = BUILD / "package"
    shutil.rmtree(folder, ignore_errors=True)
    galaxy = [BIN / "ansible-galaxy", "collection"]
    tool(log, [*galaxy, "build", "--output-path", folder])
    (archive,) = folder.glob("*.tar.gz")
    importer = folder / "galaxy-importer.cfg"
    importer.write_text("[galaxy-importer]\nrun_ansible_lint = False\n")  # stage `lint` does
    importing = environment(GALAXY_IMPORTER_CONFIG=str(importer))
    tool(log, [BIN / "python", "-m", "galaxy_importer.main", archive], cwd=folder, env=importing)
    env = environment(ANSIBLE_COLLECTIONS_PATH=str(folder))
    tool(log, [*galaxy, "install", "--offline", "--collections-path", folder, archive], env=env)
    installed = folder / "ansible_collections" / "hetero" / "compute"
    for name in ("tests", "tools", "build", ".git", ".lab", ".venv", "molecule"):
        if (installed / name).exists():
            raise StageFailed(f"{name} is in the package, and not for users")
    shown = 0
    for kind, pattern in (
        ("module", "plugins/modules/*.py"),
        ("callback", "plugins/callback/*.py"),
        ("inventory", "plugins/inventory/*.py"),
        ("filter", "plugins/filter/*.yml"),
        ("lookup", "plugins/lookup/*.py"),
        ("test", "plugins/test/*.yml"),
        ("role", "roles/*/meta/argument_specs.yml"),
    ):
        output = tool(log, [BIN / "ansible-doc", "--type", kind, "--list", "--json", "hetero.compute"], env=env)
        names = sorted(json.loads(output[output.index("{") :]))
        written = len(list(ROOT.glob(pattern)))
        if len(names) < written:
            raise StageFailed(f"ansible-doc lists {len(names)} of {written}: {pattern}")
        if names and "[WARNING]" in tool(log, [BIN / "ansible-doc", "--type", kind, *names], env=env):
            raise StageFailed(f"ansible-doc warns about a {kind}")
        shown += len(names)
    if shown == 0:
        raise StageFailed("nothing documented: the tool tested nothing")
    # its templates lie beside it, and are no Python
    show = ["localhost", "--module-name=ansible.builtin.debug", "--args=msg={{ {} | hetero.compute.status_page }}"]
    if "<!DOCTYPE html>" not in tool(log, [BIN / "ansible", *show], env=env):
        raise StageFailed("the status page is not made")
    return f"{archive.name}, {shown} documented"
