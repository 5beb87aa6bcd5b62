# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pages name is there: playbooks and their options, make's targets, modules, variables, files.

If these fail, somebody types what a page says and gets an error. What the commands do is for e2e's test_tour.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest
import yaml
from runner import plan

from ansible_collections.hetero.compute.tests.unit.documents.pages import PAGES, ROOT, blocks, guide, session

#: Folders of the repository; a path that begins with one is a file or folder of it.
FOLDERS = ("awx", "bench", "changelogs", "docs", "meta", "molecule", "playbooks", "plugins", "roles", "tests", "tools")
ROLES = sorted(path.parent.parent.name for path in ROOT.glob("roles/*/meta/argument_specs.yml"))
#: What the guides for developers have people write.
TO_BE_WRITTEN = {f"plugins/module_utils/_hetero/drivers/{name}.py" for name in ("power/http_relay", "boot/sd_card")}


def pages():
    return [pytest.param(path.read_text(), id=str(path.relative_to(ROOT))) for path in PAGES]


@lru_cache(maxsize=None)
def options(playbook):
    """Names that a playbook's header says it takes."""
    text = (ROOT / "playbooks" / f"{playbook}.yml").read_text()
    return set(re.findall(r"\b([a-z_]+)=[^ ]", " ".join(re.findall(r"^#.*", text, re.MULTILINE))))


@lru_cache(maxsize=1)
def variables():
    """Names of all roles' variables, and of those that playbooks read of an inventory."""
    names = set()
    for role in ROLES:
        names |= set(
            yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())["argument_specs"][
                "main"
            ]["options"]
        )
    for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]:
        names |= set(re.findall(r"\bhetero_[a-z_]+", path.read_text()))
    # what a request reads of them by its own code
    values = (ROOT / "plugins" / "plugin_utils" / "request_values.py").read_text()
    names |= set(re.findall(r"self\.\w+\(\"(hetero_[a-z_]+)\"", values))
    # the inventory of a lab has more, for plays of one's own
    lab = (ROOT / "roles" / "lab" / "templates" / "lab.yml.j2").read_text()
    return names | set(re.findall(r"^ +(lab_[a-z_]+): ", lab, re.MULTILINE))


@pytest.mark.parametrize("text", pages())
def test_playbooks_and_their_options(text):
    for playbook, rest in re.findall(r"ansible-playbook (?:-i \S+ )?hetero\.compute\.(\w+)((?:[^`\n]|\\\n)*)", text):
        if playbook == "NAME":
            continue
        assert (ROOT / "playbooks" / f"{playbook}.yml").is_file(), playbook
        named = set(re.findall(r"-e '?([a-z_]+)=", rest)) | set(re.findall(r"-e '\{\"([a-z_]+)\"", rest))
        assert named <= options(playbook) | variables(), (playbook, named)


@pytest.mark.parametrize("text", pages())
def test_targets_of_make(text):
    targets = set(re.findall(r"^([\w%-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    stages = {*plan.STAGES, *plan.GROUPS, "STAGE"}
    for target in re.findall(r"(?:^ *(?:[#$] )?|`)make ([a-z][\w-]*)", text, re.MULTILINE):
        known = target in targets or (target.startswith("test-") and target[5:] in stages)
        assert known, f"make {target}"


@pytest.mark.parametrize("text", pages())
def test_modules_of_commands(text):
    for module in re.findall(r"-m hetero\.compute\.(\w+)", text) + re.findall(
        r"^ *hetero\.compute\.(\w+):$", text, re.M
    ):
        assert (ROOT / "plugins" / "modules" / f"{module}.py").is_file(), module


@pytest.mark.parametrize("text", pages())
def test_variables(text):
    playbooks = {path.stem for path in ROOT.glob("playbooks/*.yml")}
    prefixes = "|".join(f"{role}_" for role in [*ROLES, "hetero"])
    # not those of a path or a longer name, nor ones that stand for several (tftp_proxy_…)
    for name in re.findall(rf"(?<![\w/.-])((?:{prefixes})[a-z][a-z0-9_]*)(?![\w/.-]*[/…*])", text):
        if name not in ("kvm_guests", "nova_compute", "hetero_drivers", *options("awx")):
            assert name in variables() | playbooks, name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files(path):
    text = path.read_text()
    names = set(re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", text)) - TO_BE_WRITTEN
    lost = [name for name in names if not (ROOT / name).exists()]
    lost += [
        link
        for link in re.findall(r"\]\(([^)#]+)", text)
        if path.suffix == ".md" and "://" not in link and not (path.parent / link).exists()
    ]
    assert lost == []


@pytest.mark.parametrize("text", pages())
def test_yaml_is_yaml(text):
    for language, _options, content in blocks(text):
        if language == "yaml":
            yaml.safe_load(content)


def test_all_options_are_in_the_guide_to_playbooks():
    """A user finds an option in the header of a file only. AWX's variables have a guide of their own."""
    text = guide("playbooks")
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        assert f"``{path.stem}``" in text, path.stem
        missing = [name for name in options(path.stem) if path.stem != "awx" and f"{name}=" not in text]
        assert missing == [], path.stem


def test_all_variables_of_a_site_that_requests_read_are_in_the_guide_to_playbooks():
    """A setting that nobody finds. The table of flavors that comes with the collection is none of a site's."""
    folder, text = ROOT / "plugins" / "plugin_utils", guide("playbooks")
    code = "".join((folder / f"request_{name}.py").read_text() for name in ("values", "options", "mistakes"))
    read = set(re.findall(r"\"(hetero_[a-z_]+)\"", code)) - {"hetero_instance_types"}
    assert len(read) > 10
    assert sorted(name for name in read if f"``{name}" not in text and f" {name}:" not in text) == []


def test_what_the_readme_types_the_tour_types():
    """The README's commands are run because the tour's are."""
    typed = {command.line for command in session(guide("tour")) + session(guide("gpu_host"))} | {"make test"}
    readme = session((ROOT / "README.md").read_text())
    assert len(readme) > 5
    assert [command.line for command in readme if command.line not in typed] == []


def test_every_guide_is_in_the_table_of_contents():
    """A guide that nobody finds."""
    sections = yaml.safe_load((ROOT / "docs" / "docsite" / "extra-docs.yml").read_text())["sections"]
    listed = [name for section in sections for name in section["toctree"]]
    assert sorted(listed) == sorted(path.stem for path in Path(ROOT / "docs" / "docsite" / "rst").glob("*.rst"))
