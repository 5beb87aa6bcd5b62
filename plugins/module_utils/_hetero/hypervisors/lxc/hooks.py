# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What LXC's hooks do when a container with devices starts: refuse what is stale. device_rules.py does the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Mapping, Sequence

from ...core.errors import BadInput, Refused
from . import identity, persistence, private_nodes
from .liblxc import Container
from .persistence import COPY_REMEDY, HERE

if TYPE_CHECKING:
    from .persistence import Host

RESTORE = "see systemctl status hetero-gpu-restore, or run hetero gpu-restore"


def started(arguments: Sequence[str], environ: Mapping[str, str], host: Host = HERE) -> None:
    """Run as a hook.

    :param arguments: those of identity.py's line, and what LXC adds.
    :param environ: LXC's environment.
    :raises HeteroError: why the container must not start.
    """
    # With lxc.hook.version = 1 LXC names the hook in the environment, otherwise in three more arguments.
    hook = environ.get("LXC_HOOK_TYPE") or "".join(arguments[-1:])
    if len(arguments) not in (2, 5) or hook not in identity.HOOKS:
        raise BadInput("is run by LXC, as a hook", f"hetero {identity.VERB}", "start the container by lxc-start")
    container = Container(arguments[1], arguments[0])
    if hook == "pre-start":
        check(container, environ.get("LXC_NAME"), environ.get("LXC_CONFIG_FILE"), host)
    else:
        # Imported here, because the other hook does not need it and a start waits for both.
        from .device_rules import settle

        settle(container, int(environ["LXC_PID"]), host)


def check(container: Container, name: str | None, config_file: str | None, host: Host = HERE) -> None:
    """Raise Refused if the container must not start with what is written for it."""
    written = persistence.read_file(identity.file_of(container))
    same = name == container.name and os.path.normpath(config_file or "") == container.config_file
    if not same or (written is not None and written.key != identity.key_of(container)):
        what = f"its configuration includes the devices of {container.folder}, of which it is a copy"
        if not same or written is None:
            raise Refused(what, f"container {name} ({config_file})", COPY_REMEDY)
        raise Refused(what, container.thing, persistence.copy_way(container, written.key))
    if written is None:
        return
    if written.refused is not None:
        raise Refused(f"cannot have the GPUs that it was given: {written.refused}", container.thing, RESTORE)
    if written.boot != host.boot:
        raise Refused("what it starts with is of an earlier boot of this host", container.thing, RESTORE)
    drivers = host.drivers()
    for major, driver in written.drivers.items():
        if drivers.get(major) != driver:
            what = f"major {major} was {driver or 'nobody'}'s and is {drivers.get(major) or 'nobody'}'s now"
            raise Refused(what, container.thing, RESTORE)
    for node in written.nodes:
        private_nodes.ensure(container, node, host.private)
