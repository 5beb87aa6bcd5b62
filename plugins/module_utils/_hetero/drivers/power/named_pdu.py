# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PDU that a module's arguments name, or describe if it is in no configuration, and the states of its outlets.

outlets.py has the session with it and switches outlets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ContextManager, Mapping, NamedTuple, Sequence

from ...core.argument_spec import PDU_SECRETS, PDU_SETTINGS
from ...core.errors import BadInput
from ...site.proxy_config import pdu, read_config
from .driver import BY_HAND
from .outlets import session
from .run_folder import own_run_folder

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .outlets import Result, Session


class NamedPdu(NamedTuple):
    """A PDU with all that a session with it needs."""

    name: str
    settings: dict[str, Any]
    secrets: Mapping[str, Any]
    run_folder: str

    def session(self, deadline: Deadline) -> ContextManager[Session]:
        return session(self.name, self.settings, self.secrets, deadline, self.run_folder)

    @property
    def host_key(self) -> str | None:
        """Return how the PDU's ssh host key is known: "pinned" or "first seen"; None without ssh."""
        if self.settings.get("transport") != "ssh":
            return None
        return "pinned" if self.settings.get("host_key") else "first seen"


def named(params: Mapping[str, Any]) -> NamedPdu:
    """Return the NamedPdu of a module's arguments (core/argument_spec.py, PDU)."""
    if params["pdu"] is not None:
        config = read_config(params["config"])
        settings, secrets = pdu(config, params["pdu"])
        return NamedPdu(params["pdu"], settings, secrets, config.run_folder)
    settings = {option: params[option] for option in PDU_SETTINGS if params[option] is not None}
    outlets = [outlet for outlet in params["outlets"] or () if outlet != "all"]
    secrets = {option: params[option] for option in PDU_SECRETS}
    settings.update({"path": params["host"], "outlets": outlets, BY_HAND: True})
    return NamedPdu(params["host"], settings, secrets, own_run_folder())


def tell(opened: Session, outlets: Sequence[str] | None) -> dict[str, Result]:
    """Return the states of outlets (of all if none is named) in the form that switching them returns, and what they
    draw: `watts` and `kwh`, each only where the device tells.
    """
    status = opened.status()
    if not outlets or "all" in outlets:
        outlets = list(status)
    missing = [outlet for outlet in outlets if outlet not in status]
    if missing:
        raise BadInput(f"no outlet {', '.join(missing)} (it has {', '.join(status)})", opened.name, "correct outlets")
    found: dict[str, Result] = {
        outlet: dict(before=status[outlet], after=status[outlet], seconds=0.0) for outlet in outlets
    }
    for outlet, drawn in opened.drawn(list(outlets)).items():
        found[outlet].update({name: value for name, value in drawn._asdict().items() if value is not None})
    return found
