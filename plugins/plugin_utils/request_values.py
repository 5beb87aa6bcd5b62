# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request says, with its defaults, read from the variables of a play. request_mistakes.py says what is wrong.

What a form left empty says nothing. AWX sends "" for it, and marks it as unsafe; of other such text Ansible 2.19 makes
what YAML would: none, numbers, true of on. Only what is asked for is read: any other variable may be anybody's.
"""

from __future__ import annotations

import os
import pwd
import re
from functools import cached_property
from typing import Any, Callable, Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.site_nodes import site_nodes

# Most values need neither flavors nor keys, and Ansible compiles what is imported anew in each of its processes: what
# reads those is imported where they are asked for.

#: Variables of the environment by which a job knows itself: Tower's and AWX's of several releases.
JOB_VARIABLES = ("JOB_ID", "AWX_PRIVATE_DATA_DIR", "AWX_ISOLATED_DATA_DIR")
#: Names of users that Ansible leaves as they are: 2.19 makes a number of 007, older releases make a list of [1], and
#: two users would become one. Others are called by the number that AWX gave them, and so is who has such a number for
#: a name.
PLAIN_NAME = re.compile(r"(?!awx-user-|(True|False)\Z)[^\[{]")
#: Most parts of a request: no node has as many.
MOST = 10_000
#: A count, of fewer digits than Python refuses to read.
COUNT = "[0-9]{1,1000}"
PART = r"([1-9][0-9]{0,3}|10000)"
PARTS = re.compile(rf"\s*{PART}(\s*,\s*{PART})*\s*")
#: How a word says true; other words are false (Ansible's filter bool).
TRUE = ("true", "yes", "on", "1")
BOARD = re.compile(r"(board)?[0-9]+")
#: In place of a variable that there is not: null is one.
NOWHERE = object()


def number(value: Any) -> float:
    """Return a value as a number, -1 where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return -1.0


def sound(read: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was read of a file, unless something is wrong with it by now: it may have gone meanwhile.

    :param read: with its `problem` in words, "" for none.
    :raises AnsibleFilterError: it has one.
    """
    if read["problem"]:
        raise AnsibleFilterError(str(read["problem"]))
    return read


class Requested:
    """Each property is a value of the request, by the name that playbooks use for it."""

    def __init__(self, look: Callable[..., Any]) -> None:
        """:param look: returns a variable by its name; where there is none, its second argument, or None."""
        self.look = look

    def is_there(self, name: str) -> bool:
        """Return whether there is a variable, if only of nothing (null)."""
        return self.look(name, NOWHERE) is not NOWHERE

    def said(self, name: str) -> Any:
        """Return an option; None where it is missing or empty. 0 and false say something."""
        value = self.look(name)
        return None if value == "" else value

    def filled(self, name: str, default: Any = "") -> Any:
        """Return an option; the default where it is missing, empty, 0 or false."""
        return self.look(name) or default

    def true(self, name: str) -> bool:
        """Return whether an option says true."""
        return str(self.filled(name)).lower() in TRUE

    @cached_property
    def site(self) -> dict[str, Any]:
        return site_nodes(self.look("groups"), self.filled("without"))

    @property
    def chosen(self) -> Mapping[str, Any]:
        """Which nodes the request goes to first: a single one without a look before, else as localhost decided.

        Of a syntax check, which asks nobody, no host has variables.
        """
        if self.site["alone"] or self.look("hostvars") is None:
            return dict(visits=self.site["alone"], refused=[], looked=False)
        if self.plan is None:
            raise AnsibleFilterError("localhost has decided nothing of this request yet")
        return self.plan

    @property
    def plan(self) -> Mapping[str, Any] | None:
        """What localhost decided last; None where it decided nothing yet."""
        try:
            plan: Mapping[str, Any] = self.look("hostvars")["localhost"]["_plan"]
        except KeyError:
            return None
        return plan

    @property
    def count(self) -> int:
        """How many instances; 0 where what was said is no whole number."""
        said = self.said("count")
        if said is None:
            return 1
        return int(said) if re.fullmatch(COUNT, str(said)) else 0

    @property
    def numbers_asked(self) -> str:
        """What `numbers` says, as text. Of one number Ansible may make a number, of several a list."""
        said = self.filled("numbers")
        return str(said) if isinstance(said, str) or not isinstance(said, Sequence) else ",".join(map(str, said))

    @property
    def numbers(self) -> list[int]:
        """Which of NAME-1 … NAME-N are meant, in their order; none for all, and where what was said is no such list."""
        asked = self.numbers_asked
        return sorted({int(one) for one in asked.split(",")}) if PARTS.fullmatch(asked) else []

    @property
    def names(self) -> list[Any]:
        """The instances that the request is about: NAME itself, or NAME-1 … NAME-N."""
        name, count = self.look("instance"), self.count
        parts = self.numbers or range(1, min(count, MOST) + 1)
        return [f"{name}-{part}" for part in parts] if count > 1 else [name]

    @property
    def partial(self) -> bool:
        return self.true("partial")

    @property
    def wait_minutes(self) -> float:
        """Minutes to wait for a node; -1 where what was said is no number."""
        return number(self.filled("wait", 0))

    @property
    def hours(self) -> Any:
        """Hours of its lease; "" for one without an end."""
        said = self.said("hours")
        return "" if said in (None, "none") else said

    @property
    def wait_interval(self) -> Any:
        """Seconds from one look for a free node to the next."""
        said = self.said("hetero_wait_interval")
        return 10 if said is None else said

    @property
    def timeout(self) -> Any:
        """Seconds in which an instance comes up."""
        said = self.said("hetero_boot_timeout")
        return 300 if said is None else said

    @property
    def priority(self) -> Any:
        """Of those that wait the highest goes first: the site's choice, as of an inventory for its tests by night."""
        return self.filled("hetero_priority", 0)

    @property
    def placement(self) -> Any:
        default = self.said("hetero_placement")
        return self.filled("placement", "spread" if default is None else default)

    @property
    def owner(self) -> str:
        """For whom this is asked: `owner`, else the user of AWX, else the user of the command line."""
        return str(self.filled("owner") or self._asker())

    def _asker(self) -> str:
        names = [f"{job}_user_name" for job in ("awx", "tower")]
        there = [self.look(name) for name in names if self.is_there(name)]
        if not there:
            return os.environ.get("USER") or self._who_runs_it()
        name = there[0]  # nothing, of who is called null
        if isinstance(name, str) and PLAIN_NAME.match(name):
            return name
        ids = [one for one in (self.look(f"{job}_user_id") for job in ("awx", "tower")) if one is not None]
        if not ids:
            raise AnsibleFilterError(f"awx_user_name is {str(name)[:60]}, and awx_user_id is missing: give owner=NAME")
        return f"awx-user-{ids[0]}"

    @staticmethod
    def _who_runs_it() -> str:
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError as error:
            raise AnsibleFilterError(f"user {os.geteuid()} of this machine has no name: give owner=NAME") from error

    @cached_property
    def _flavors(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        extra, file = self.filled("hetero_extra_instance_types", {}), self.filled("hetero_instance_types_file")
        from ansible_collections.hetero.compute.plugins.plugin_utils.filters.flavors import read

        return read(self.look("hetero_instance_types"), extra, file)

    @property
    def flavor_mistakes(self) -> str:
        """All that is wrong with the site's own flavors; "" where nothing is."""
        return "; ".join(self._flavors[1])

    @property
    def flavors(self) -> dict[str, dict[str, Any]]:
        """All flavors by name.

        :raises AnsibleFilterError: something is wrong with the site's own.
        """
        if self._flavors[1]:
            raise AnsibleFilterError("\n".join(self._flavors[1]))
        return self._flavors[0]

    @cached_property
    def flavor_name(self) -> Any:
        """The flavor that is meant, by its name, else by its flavorid; None where there is no such flavor.

        A name that is also another one's id is the name.
        """
        said = self.filled("flavor")
        if not isinstance(said, (str, int, float)) or said == "":
            return None
        by_id = {str(one["flavorid"]): name for name, one in self.flavors.items() if "flavorid" in one}
        by_name = {str(name): name for name in self.flavors}
        return {**by_id, **by_name}.get(str(said))

    @property
    def flavor(self) -> dict[str, Any]:
        """The flavor that is meant, with its name; {} where there is no such flavor."""
        return {} if self.flavor_name is None else self.flavors[self.flavor_name]

    @property
    def hypervisor(self) -> str:
        """What the flavor says of its node's hypervisor; "" where there is no such flavor, or the site's are wrong."""
        flavor = {} if self.flavor_mistakes else self.flavor
        return str((flavor.get("extra_specs") or {}).get("hypervisor", ""))

    @property
    def image(self) -> Any:
        return self.given_image or self.filled("hetero_default_image")

    @property
    def given_image(self) -> Any:
        """The image that was given, "" where none was."""
        return self.filled("image")

    @property
    def images(self) -> dict[str, Any]:
        """The image that is meant, by kind of instance; "" for what its host has for one."""
        asked = self.given_image
        container, guest = self.filled("hetero_container_image"), self.filled("hetero_guest_image")
        return dict(board=self.image, container=asked or container, guest=asked or guest)

    @property
    def devices(self) -> Any:
        return self.filled("devices", [])

    @property
    def boot_source(self) -> Any:
        return self.filled("boot_source", "nfs")

    @property
    def node(self) -> Any:
        """The board or node that an operator names: by `node`, else by `board`; "" for none."""
        said = [one for one in (self.said("node"), self.said("board")) if one is not None]
        return said[0] if said else ""

    @property
    def is_board(self) -> bool:
        """Whether that is a board, by its id or as tables call it."""
        return bool(BOARD.fullmatch(str(self.node)))

    @property
    def board(self) -> str:
        """The id of the board that is asked for, "" for any. node=board3 says the same as board=3."""
        said = self.said("board")
        if said is not None:
            return re.sub("^board(?=[0-9])", "", str(said))
        return self.one_board if self.is_board else ""

    @property
    def one_board(self) -> str:
        """The id of the board that an operator names; what was said, where it is none."""
        return re.sub("^board", "", str(self.node))

    @property
    def boards(self) -> list[str]:
        """The ids of the boards that an operator names; none for all that there are."""
        return [re.sub("^board", "", one) for one in self._listed(self.node)]

    @property
    def adopt(self) -> list[str]:
        """The instances of which an operator says to reconcile that their records are right."""
        return self._listed(self.filled("adopt"))

    @property
    def forget(self) -> list[str]:
        """The instances whose claims reconcile is told to end."""
        return self._listed(self.filled("forget"))

    @property
    def remove(self) -> list[str]:
        """The boards, of no boards file, of which reconcile is told to remove what is left."""
        return self._listed(self.filled("remove"))

    @staticmethod
    def _listed(said: Any) -> list[str]:
        return [one.strip() for one in str(said).split(",") if one.strip()]

    @property
    def wipe(self) -> str:
        return str(self.filled("wipe") or self.filled("hetero_wipe_method"))

    @property
    def wipe_verify(self) -> str:
        return str(self.filled("wipe_verify") or self.filled("hetero_wipe_verify"))

    @property
    def in_a_job(self) -> bool:
        """Whether a form asks. Then no file is read that it names: what runs the job may read others' secrets."""
        named = any(self.is_there(name) for name in ("awx_job_id", "tower_job_id"))
        return named or any(os.environ.get(name) for name in JOB_VARIABLES)

    @cached_property
    def login(self) -> dict[str, str]:
        """The public key that may log in, and what is wrong with it."""
        asked = {name: self.look(name) for name in ("key", "key_file")}
        sources = self.filled("ansible_inventory_sources", [])
        from ansible_collections.hetero.compute.plugins.plugin_utils.login_key import login_key

        return login_key(asked, self.in_a_job, self.look("hetero_ssh_public_key"), sources)

    @cached_property
    def cloud(self) -> dict[str, Any]:
        """Data for cloud-init, of which nothing is shown, and what is wrong with their file."""
        file = self.filled("user_data")
        if not file:
            return dict(text="", problem="")
        from ansible_collections.hetero.compute.plugins.plugin_utils.user_data import user_data

        return user_data(file, self.in_a_job)

    @property
    def public_key(self) -> str:
        """The key of a new instance."""
        return str(sound(self.login)["public"])

    @property
    def given_key(self) -> str:
        """The key that was given, "" where none was."""
        return str(sound(self.login)["given"])

    @property
    def cloud_data(self) -> Any:
        """The text of `user_data`."""
        return sound(self.cloud)["text"]

    @property
    def request(self) -> dict[str, Any]:
        """The request as one value, for the steps of module request.

        :raises AnsibleFilterError: it has no flavor, so that any node would do.
        """
        if not self.flavor:
            raise AnsibleFilterError(f"there is no flavor {str(self.look('flavor'))[:60]}")
        return dict(
            instance=self.look("instance"),
            owner=self.owner,
            flavor=self.flavor,
            count=self.count,
            numbers=self.numbers,
            partial=self.partial,
            placement=self.placement,
            board=self.board,
            proxy=str(self.filled("proxy")),
            boot_source=self.boot_source,
            image=self.image,
        )
