# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a play are given of a request, each as one value: Ansible compiles every expression of a task anew
in the process of each node. request_values.py has the single values.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import Requested, number


class RequestOptions(Requested):
    """As Requested; variables whose names begin with _ are the play's own."""

    @property
    def wrong(self) -> str:
        """All that is wrong with it, in words, "" where nothing is: of the words of -e, of who is left out, of the
        numbers and words of the play (_words), of what it looks at besides (_checks), and what it says (_problems).
        """
        from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import one_line
        from ansible_collections.hetero.compute.plugins.plugin_utils.filters.misspelt import misspelt
        from ansible_collections.hetero.compute.plugins.plugin_utils.request_mistakes import mistakes

        found = [misspelt(self.look("_options").split(), self.look("_goes_on"), self.look("_vain"))]
        if self.is_there("ansible_limit"):
            found.append(self.look("_limited"))
        if self.site["unknown"]:
            found.append(f"without: the inventory has no {', '.join(self.site['unknown'])}")
        found += mistakes(self, self.look("_words", ()), self.look("_checks", ()))
        found += self.look("_problems", ())
        return one_line("; ".join(dict.fromkeys(filter(None, found))))

    @property
    def visit(self) -> dict[str, Any]:
        """What the node is to be asked for of whom the play is just now; {} for nothing."""
        name = self.look("inventory_hostname")
        return next((visit for visit in self.look("_visits") if visit["item"] == name), {})

    @property
    def claim(self) -> dict[str, Any]:
        """The options of module instance by which a node claims its share of the request (_visits), or brings up what
        it claimed before (_claimed_before).
        """
        visit, again = self.visit, self.look("_claimed_before")
        options = dict(
            instance=self.look("instance"),
            kind=visit["kind"],
            owner=self.owner,
            flavor=self.flavor,
            ssh_public_key=self.public_key,
            boot_source=self.boot_source,
            devices=self.devices,
            count=self.count,
            numbers=visit["numbers"] or self.numbers,
            priority=self.priority,
            # what one of several nodes does not have, the next one may have
            partial=self.partial or (len(self.look("_visits")) > 1 and not again),
            attempts=2 if self.said("attempts") is None else int(number(self.look("attempts"))),
            timeout=self.timeout,
        )
        if again:
            options.update(created=[claim["created"] for claim in visit["claims"]])
        elif self.said("hours") is not None:
            options.update(lease_hours=self.hours or 0)
        given = dict(image=self.images[visit["kind"]], user_data=self.cloud_data, board=self.board)
        options.update((name, value) for name, value in given.items() if value)
        options.update(self._wipes)
        # of a request that waits, its place in the queue
        asked = (self.plan or {}).get("asked")
        return options if asked is None else dict(options, asked=asked)

    @property
    def _wipes(self) -> dict[str, Any]:
        """How disks are wiped, and that is proven; {} where each node has its own usual way (tftp_proxy_wipe)."""
        names = dict(wipe_method=("wipe", "hetero_wipe_method"), wipe_verify=("wipe_verify", "hetero_wipe_verify"))
        said = {option: self.filled(name) or self.filled(site) for option, (name, site) in names.items()}
        return {option: value for option, value in said.items() if value}

    @property
    def deed(self) -> dict[str, Any]:
        """The options of module instance by which a node does a verb (_state) with its part of an instance."""
        name, state = self.look("inventory_hostname"), self.look("_state")
        part = next(part for part in (self.plan or {})["parts"] if part["item"] == name)
        options = dict(
            instance=self.look("instance"),
            kind=part["kind"],
            created=[claim["created"] for claim in part["claims"]],
            owner=part["claims"][0]["owner"],
            numbers=part["numbers"],
            timeout=self.timeout,
        )
        options.update((key, value) for key, value in self._own(state).items() if value not in ("", None))
        return options

    def _own(self, state: str) -> dict[str, Any]:
        """Return the options that only the verb of a state has; "" or None is what was not given."""
        if state == "rebooted":
            return dict(how=self.filled("how", "auto"), soft_timeout=self.filled("soft_timeout", 30))
        if state == "rebuilt":
            data = self.cloud_data
            fresh = bool(data) or self.filled("fresh", False)
            return dict(image=self.given_image, ssh_public_key=self.given_key, user_data=data, fresh=fresh)
        if state == "extended":
            said = self.said("hours")
            return dict(lease_hours=0 if said == "none" else said)
        if state == "migrated":
            return dict(board=self.board)
        return dict(only_key=self.filled("only_key"), **self._wipes) if state == "absent" else {}

    @property
    def find(self) -> dict[str, Any]:
        """The options of module request that finds an instance for a verb (_to). Of one that takes no numbers (_words)
        they may be a variable of the inventory.
        """
        numbers = self.numbers if "numbers" in self.look("_words", ()) else []
        options = dict(
            request=dict(instance=self.look("instance"), owner=self.owner, numbers=numbers),
            nodes=self.site["nodes"],
            without=self.site["without"],
            force=self.true("force"),
        )
        return dict(options, to=self.look("_to")) if self.is_there("_to") else options

    @property
    def step(self) -> dict[str, Any]:
        """The options of module request for a step that goes by the last plan, or by another one (_before)."""
        return dict(
            request=self.request,
            nodes=self.site["nodes"],
            without=self.site["without"],
            plan=self.look("_before") if self.is_there("_before") else self.plan,
            wait=self.look("_minutes", self.wait_minutes),
            interval=self.wait_interval,
        )
