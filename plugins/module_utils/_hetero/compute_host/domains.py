# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's domains that have PCI devices, against the table of who has what: those of no instance, and devices that a
domain has and the table gives to somebody else or to nobody, or the other way round.

A domain is never touched: it is somebody's. What is allocated to a domain that is no more is free again; what a guest
that was made here has although nobody has it by the table is its again.
"""

from __future__ import annotations

import os

from ..claims.host.allocation import short
from ..devices.pci import domains
from ..devices.pci.allocation import write_down
from ..hypervisors.libvirt.attachment import holder_of
from ..hypervisors.libvirt.guests import is_whole

PHASE = "pci"
DOMAIN = holder_of("")


def audit(host, change):
    """[{domain, address, found, done}], `done` None where it is only reported."""
    with host.store.transaction(dry=change.check):
        rows = host.store.allocations()
        instances = {claim.holder for claim in host.store.claims()}
        defined, running = domains.holders(host.pci)
        told = (host, rows, instances, defined, running, change)
        seen = _had(*told) + _given(*told)
    return sorted(seen, key=lambda one: (one["domain"], one["address"]))


def _had(host, rows, instances, defined, running, change):
    """What domains have. What a guest that was made here has, and nobody by the table, which was lost or is older, is
    written down.
    """
    seen = []
    for address in sorted({*defined, *running}):
        holders = [row.holder for row in rows if row.address == address]
        runs = running.get(address, [])
        for name in sorted({*defined.get(address, ()), *runs}):
            own = holder_of(name)
            if own in holders and own in instances:
                continue
            found = f"a domain of no instance {'has' if name in runs else 'would start with'} it"
            if own in instances:
                found = f"its guest {'has' if name in runs else 'would start with'} it besides its own"
            if own in holders:
                found += ", and it is allocated to that"
            elif holders:
                found += f", and it is allocated to {', '.join(map(short, holders))}"
            else:
                found += ", and it is allocated to nobody"
            ours = not holders and is_whole(os.path.join(host.config["kvm"]["guests_folder"], name))
            seen.append(_finding(name, address, found, "written down" if ours else None))
            if ours:
                change.note(address, {"holder": None}, {"holder": name})
                write_down(host.store, own, address, host.pci)
    return seen


def _given(host, rows, instances, defined, running, change):
    """What domains of no instance are to have, and do not."""
    seen = []
    for row in rows:
        if row.holder in instances or not row.holder.startswith(DOMAIN):
            continue
        name = row.holder[len(DOMAIN) :]
        if name in (*defined.get(row.address, ()), *running.get(row.address, ())):
            continue
        if _is_there(name, host.pci):
            found = "allocated to a domain that does not have it (libvirt_hostdev, state detached, frees it)"
            seen.append(_finding(name, row.address, found))
            continue
        seen.append(_finding(name, row.address, "allocated to a domain that is no more", "freed"))
        change.note(row.address, {"holder": short(row.holder)}, {"holder": None})
        host.store.free(row)
        host.store.event(None, PHASE, f"free again: {row.holder} is no more", address=row.address)
    return seen


def _finding(name, address, found, done=None):
    return dict(domain=name, address=address, found=found, done=done)


def _is_there(name, paths):
    return any(os.path.exists(os.path.join(folder, f"{name}.xml")) for folder in (paths.domains, paths.running_domains))
