# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of moving in share: samples, the work of module site_files, and how its files are read."""

from __future__ import annotations

from pathlib import Path

import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.documents import Asked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.move_in import move_in

SAMPLES = Path(__file__).parent / "samples"
#: In each sample that has a password.
MARKER = "geheim-marker"
PROXY = {"name": "proxy1", "server": "10.0.2.254"}


def moved(folder, source, *files, answers=None, check=False, replace=False):
    """The result of the module's work, with its files below a folder."""
    paths = [str(SAMPLES / name if isinstance(name, str) else name) for name in files]
    if answers is not None:
        folder.mkdir(exist_ok=True)
        (folder / "answers.yml").write_text(yaml.safe_dump(answers))
    params = dict(source=source, src=paths, url="", folder=str(folder), replace=replace)
    return move_in(params, Asked(paths), check)


def questions(result):
    """{(about, key): why} of what is asked, but of the proxy node."""
    return {(one["about"], one["key"]): one["why"] for one in result["questions"] if one["about"] != "the proxy node"}


def needed(result):
    return {(one["about"], one["key"]) for one in result["questions"] if one["needed"]}


def wiring(folder):
    """What the host variables of the proxy node say."""
    return yaml.safe_load((folder / "host_vars" / "proxy1.yml").read_text())


def files(folder):
    """{path: text} of all that is there."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
