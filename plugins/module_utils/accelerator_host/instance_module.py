# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules lxc_instance and kvm_instance have in common: options, verbs, and the claim that comes before a verb.

The claim is claiming.py's, the verbs are instances.py's.
"""

from __future__ import annotations

import os
from dataclasses import fields

from ..change import Change
from ..errors import BadInput
from ..images.names import is_source
from ..instances import must_be_soft_timeout
from ..spec import HOST_CLAIMS, INSTANCE
from . import instances
from .claiming import Wish, line, present
from .config import SET_UP
from .host import Host

SPEC = HOST_CLAIMS + INSTANCE
VERBS = {
    "running": instances.running,
    "stopped": instances.stopped,
    "rebooted": instances.rebooted,
    "rebuilt": instances.rebuilt,
    "extended": instances.extended,
    "absent": instances.absent,
}


def work(params, check, kind, planned):
    """Claim where that is asked for, then do what `state` says; returns the module's result.

    :param kind: what an instance claimed here runs in, one of instances.KINDS.
    :param planned: what check mode says would be made of a new claim; {image} in it is its image.
    """
    change = Change(check)
    actor = f"{params['owner'] or f'{kind}_instance'} pid {os.getpid()}"
    with Host(params["config"], actor, create=not check) as host:
        claimed = {"lines": []}
        if params["flavor"] and params["state"] in ("present", "running"):
            with change.step("claim"):
                claimed = present(host, _wish(params, host.config[kind], kind), change)
        # What a dry run only would have claimed is not there to be looked at.
        if params["state"] == "present" or (check and claimed.get("new")):
            if params["state"] == "running":
                new = claimed["instances"]
                claimed["lines"] += [line(one["instance"], host.name, planned.format(**one)) for one in new]
            return dict(claimed, **change.result)
        done = VERBS[params["state"]](host, params["instance"], _options(params), change)
        return dict(done, lines=(claimed["lines"] if claimed.get("new") else []) + done["lines"])


def _options(params):
    must_be_soft_timeout(params["soft_timeout"])
    return instances.Options(**{one.name: params[one.name] for one in fields(instances.Options) if one.name in params})


def _wish(params, config, kind):
    given = {one.name: params[one.name] for one in fields(Wish) if one.name in params}
    given.update(kind=kind, devices=tuple(params.get("devices", ())), numbers=tuple(params["numbers"]))
    return Wish(params["instance"], **dict(given, image=params["image"] or _default_image(config)))


def _default_image(config):
    name = config["default_image"] or ""
    if is_source(name):
        what = f"default_image is {name!r}, and requests give images by name"
        raise BadInput(what, "host.json", f"{SET_UP}, which imports it")
    return name
