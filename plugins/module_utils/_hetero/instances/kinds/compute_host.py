# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verbs of module `instance` on containers and guests: the claim that comes before a verb, and how one is followed.

The claim is compute_host/host_claims.py's, what a verb does is compute_host/lifecycle.py's.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Mapping, NoReturn

from ...claims.host.config import SET_UP
from ...compute_host import arrivals, lifecycle
from ...compute_host.claim_request import MOST, ClaimRequest
from ...compute_host.host import Host
from ...compute_host.host_claims import present
from ...compute_host.verb_options import Options
from ...core import job
from ...core.changes import Change
from ...core.errors import BadInput
from ...core.lines import line
from ...roots.cloud_init import must_be_user_data, must_have_cloud_init
from ...site.image_names import is_source
from ...site.instance import must_be_soft_timeout
from ...site.kinds import CONTAINER, GUEST, SECTIONS
from ...site.owners import names_of

if TYPE_CHECKING:
    from ...claims.host.config import Section
    from ...core.module import Module

#: Kind → what check mode says of one that is not there yet; {image} is its image.
PLANNED = {
    CONTAINER.name: "root would be made from {image}, container started, its GPUs opened",
    GUEST.name: "disk would be made from {image}, guest started with its devices",
}
#: Seconds that a verb may take beyond the timeout of each instance, to take in an image (images/store.py).
BESIDES = 1800.0
VERBS = {
    "running": lifecycle.running,
    "stopped": lifecycle.stopped,
    "rebooted": lifecycle.rebooted,
    "rebuilt": lifecycle.rebuilt,
    "migrated": arrivals.migrated,
    "extended": lifecycle.extended,
    "absent": lifecycle.absent,
}


def work(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Claim if that is asked for, do what `state` says, and return the module's result."""
    kind, planned = SECTIONS[params["kind"]], PLANNED[params["kind"]]
    change = Change(check)
    actor = f"{params['owner'] or f'{kind} instance'} pid {os.getpid()}"
    with Host(params["config"], actor, create=not check) as host:
        claimed: dict[str, Any] = {"lines": []}
        found = params["created"] and not check  # a play has claimed it before
        if params["flavor"] and params["state"] in ("present", "running") and not found:
            with change.step("claim"):
                request = _claim_request(params, host.config.section(kind), kind)
                _must_take_user_data(host, params["user_data"], request.image)
                claimed = present(host, request, change)
        # What a dry run only would have claimed is not there to be looked at.
        if params["state"] == "present" or (check and claimed.get("new")):
            if params["state"] == "running":
                new = claimed["instances"]
                claimed["lines"] += [line(one["instance"], host.name, "", planned.format(**one)) for one in new]
            # of one that looks for what another one would have claimed, the claim was told before, with its lease
            again = dict(diff=[]) if params["created"] else {}
            return dict(claimed, **{**change.result, **again})
        if claimed.get("new"):  # for who follows, before what is made of it
            host.store.event(params["instance"], "choice", claimed["lines"][0]["text"])
        options = _options(params)
        if params["flavor"] and params["state"] == "running":
            options = replace(options, names=tuple(_claim_request(params, host.config.section(kind), kind).instances))
        done = VERBS[params["state"]](host, params["instance"], options, change)
        # that it has its node is no news
        told = claimed["lines"] if claimed.get("new") else claimed["lines"][1:]
        return dict(done, lines=told + done["lines"])


def in_background(module: Module) -> NoReturn:
    """Do the same in a process that is followed by what it writes down of the request's instances."""
    params = module.params
    request = params["instance"]

    def prepare() -> tuple[str, dict[str, Any]]:
        with Host(params["config"]) as host:
            there = [claim.instance for claim in host.store.claims() if request in (claim.instance, claim.request)]
            names = sorted({*there, *names_of(request, min(params["count"], MOST))})
            followed = sorted({request, *names})  # what was chosen for several is an event of the request
            limit = BESIDES + params["timeout"] * len(names)
            return host.config.run_folder, dict(host.store.followed(), instances=followed, node=host.name, limit=limit)

    job.in_background(module, prepare, lambda: work(params, False))


def _must_take_user_data(host: Host, user_data: str | None, image: str) -> None:
    """Raise BadInput where user_data are none, or the image has no cloud-init; what is not there is told later."""
    if user_data is not None:
        must_be_user_data(user_data)
        if image in host.images.names():
            must_have_cloud_init(host.images.get(image))


def _options(params: Mapping[str, Any]) -> Options:
    must_be_soft_timeout(params["soft_timeout"])
    return Options(**{one.name: params[one.name] for one in fields(Options) if one.name in params})


def _claim_request(params: Mapping[str, Any], section: Section, kind: str) -> ClaimRequest:
    given = {one.name: params[one.name] for one in fields(ClaimRequest) if one.name in params}
    given.update(kind=kind, devices=tuple(params.get("devices", ())), numbers=tuple(params["numbers"]))
    return ClaimRequest(params["instance"], **dict(given, image=params["image"] or _default_image(section)))


def _default_image(section: Section) -> str:
    name = section.default_image or ""
    if is_source(name):
        what = f"default_image is {name!r}, and requests give images by name"
        raise BadInput(what, "host.json", f"{SET_UP}, which imports it")
    return name
