# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows a module that takes long, and prints each phase within two seconds: this one, and those that name it."""

from __future__ import annotations

from typing import Any

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import is_of
from ansible_collections.hetero.compute.plugins.plugin_utils import asks
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import no_answer
from ansible_collections.hetero.compute.plugins.plugin_utils.outcomes import contradiction
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Follows


class ActionModule(Follows):
    """The module in the background, followed. Of what it answers only instances that it was asked for count: a node
    that names others would have their names lead to its own machine.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        asks.spread(self._task.args)
        result = super().run(tmp, task_vars)
        if not self._is_instance or self._task.check_mode or "instances" not in result or result.get("failed"):
            return result
        created = self._task.args.get("created")
        many = len(created) if isinstance(created, list) else 0
        why = contradiction(result["instances"], self._task.args.get("state", "running"), max(1, many))
        return no_answer("instance", why) if why else result

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result = super()._asked(tmp, task_vars)
        if self._is_instance and isinstance(result.get("instances"), list):
            result["instances"] = [one for one in result["instances"] if self._is_asked_for(one)]
        return result

    @property
    def _is_instance(self) -> bool:
        """Return whether this is module instance, and no other that is followed."""
        return self.module.rpartition(".")[2] == "instance"

    def _is_asked_for(self, one: Any) -> bool:
        """Return whether an instance is one of the call's; what is no instance at all is judged by answers.py."""
        if not isinstance(one, dict) or not isinstance(one.get("instance"), str):
            return True
        name, numbers = str(self._task.args["instance"]), self._task.args.get("numbers") or ()
        return is_of(dict(instance=one["instance"], request=name), name, {int(number) for number in numbers})
