# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which action plugin runs a module, by meta/runtime.yml: what a person sees while it works."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
ROUTES = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["plugin_routing"]["modules"]
MODULES = {path.stem: path.read_text() for path in (ROOT / "plugins" / "modules").glob("*.py")}


def routed(plugin):
    return {name for name, route in ROUTES.items() if route.get("action_plugin") == f"hetero.compute.{plugin}"}


def test_each_route_leads_somewhere():
    """Lost: a module that no play can call, for its action plugin or its new name is misspelt."""
    plugins = {path.stem for path in (ROOT / "plugins" / "action").glob("*.py")}
    for name, route in ROUTES.items():
        (kind, target) = next(iter(route.items()))
        assert target.rpartition(".")[2] in {"redirect": MODULES, "action_plugin": plugins}[kind], name
        assert (name in MODULES) == (kind == "action_plugin"), name
    assert plugins <= set(MODULES), "each has a module that documents it"


def test_what_goes_on_in_the_background_is_followed():
    """Lost: a boot of minutes without a line, and a play that says it is done while the board still boots."""
    taking = {name for name, text in MODULES.items() if 'params["background"]' in text}
    assert taking
    assert taking == routed("instance")


def test_former_names_lead_to_the_same_plugin():
    """Lost: what is followed, and what is looked at, for a play that calls a module by the name that it had."""
    plugins = {path.stem for path in (ROOT / "plugins" / "action").glob("*.py")}
    new = {route["redirect"].rpartition(".")[2] for route in ROUTES.values() if "redirect" in route}
    assert [name for name in new & plugins if "action_plugin" not in ROUTES.get(name, {})] == []
