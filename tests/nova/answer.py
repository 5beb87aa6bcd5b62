# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Nova itself says. Run by Nova's own environment, with a kind of question as argument: reads its cases as JSON
from standard input, writes an answer for each to standard output. Holds no rule of Nova's.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import logging
import os
import pathlib
import sys
import tempfile
from unittest import mock

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18  # linux/sched.h, linux/mount.h


def operators(cases):
    """extra_specs: {value, requirement} → true, false, or the name of the exception.

    A value that is no text and no list goes in as ComputeCapabilitiesFilter gives it: as its text.
    """
    from nova.scheduler.filters import extra_specs_ops

    for case in cases:
        value = case["value"]
        if value is not None and not isinstance(value, list):
            value = str(value)
        try:
            yield extra_specs_ops.match(value, case["requirement"])
        except (IndexError, TypeError, ValueError) as error:
            yield type(error).__name__


def effective(cases):
    """Options of a service: {root, argv, environment, wsgi} → their values, or {"error": name of the exception}.

    `root` holds the etc of the machine in question, which the service's process has in place of this machine's.
    """
    from nova import monkey_patch

    monkey_patch.patch(backend="threading")
    from nova import config
    from nova.api.openstack import wsgi_app
    from oslo_config import cfg

    def read(case):
        _mount(case["root"] + "/etc", "/etc")
        os.environ.clear()
        # the one thing that a web server's start wants beside files: a broker, and none is there to be asked
        os.environ.update(case["environment"], OS_DEFAULT__TRANSPORT_URL="fake://")
        sys.argv = case["argv"]
        try:
            if case["wsgi"]:
                wsgi_app.init_global_data(wsgi_app._get_config_files(), "osapi_compute", "nova-api-os-compute")
            else:
                config.parse_args(sys.argv, configure_db=False, init_rpc=False)
            pci, scheduler = config.CONF.pci, config.CONF.filter_scheduler
            return dict(
                alias=pci.alias,
                device_spec=pci.device_spec,
                enabled_filters=scheduler.enabled_filters,
                available_filters=scheduler.available_filters,
                pci_in_placement=scheduler.pci_in_placement,
            )
        except cfg.Error as error:
            return dict(error=type(error).__name__)

    for case in cases:
        yield _in_a_process(read, case)


def _in_a_process(function, case):
    """Nova's configuration is global, and mounts are the process's own: a child for each case."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        with os.fdopen(into, "w") as file:
            file.write(json.dumps(function(case)))
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as file:
        answer = file.read()
    if os.waitpid(child, 0)[1] != 0 or not answer:
        raise SystemExit(f"no answer to {case}")
    return json.loads(answer)


def _mount(source, target):
    libc = ctypes.CDLL(None, use_errno=True)
    for failed in (
        libc.unshare(CLONE_NEWNS),
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
        libc.mount(source.encode(), target.encode(), None, MS_BIND, None),
    ):
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


#: What nova/pci/stats.py says when it leaves devices out, and what we call that.
DROPPED = {
    "mismatched PCI attribute": "alias",
    "wrong NUMA node": "numa",
    "PFs": "pf",
    "remote-managed": "remote_managed",
}


def schedule(cases):
    """A host for a flavor: {alias, device_spec, devices, in_use, flavor's extra_specs, cells} → {"fits", "stage"}, or
    {"error": name of the exception}.

    The compute node's tracker makes the pools, the scheduler's filters decide. The stage is read from what they log.
    """
    from nova import monkey_patch

    monkey_patch.patch(backend="threading")
    import nova.conf
    from nova import exception, objects
    from nova.pci import request, stats
    from nova.scheduler import host_manager
    from nova.scheduler.filters import numa_topology_filter, pci_passthrough_filter
    from nova.virt import hardware
    from oslo_utils import uuidutils

    objects.register_all()
    conf, said, sysfs = nova.conf.CONF, _said(), _sysfs()
    conf([], project="nova", default_config_files=[], default_config_dirs=[])

    def answer(case):
        sysfs(case["devices"])
        conf.set_override("alias", case["alias"], "pci")
        conf.set_override("device_spec", case["device_spec"], "pci")
        request.get_alias_from_config.cache_clear()
        flavor = objects.Flavor(vcpus=12, memory_mb=1200, extra_specs=case["extra_specs"])
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        policy = hardware.get_pci_numa_policy_constraint(flavor, image)
        requests = request.get_pci_requests_from_flavor(flavor, affinity_policy=policy)
        guest = hardware.numa_get_constraints(flavor, image)
        counted, known = _pools(case)
        host = host_manager.HostState("host", "node", uuidutils.generate_uuid())
        host.numa_topology = objects.NUMATopology(cells=[_cell(one) for one in case["cells"]])
        host.pci_stats = stats.PciDeviceStats(host.numa_topology, stats=counted)
        host.ram_allocation_ratio, host.cpu_allocation_ratio = 1.0, 16.0
        host.allocation_candidates = [{"mappings": {}}]
        spec = objects.RequestSpec(flavor=flavor, image=image, numa_topology=guest, pci_requests=requests)
        spec.instance_uuid = uuidutils.generate_uuid()
        if not pci_passthrough_filter.PciPassthroughFilter().host_passes(host, spec):
            return dict(fits=False, stage=_stage(counted, requests.requests, known, said))
        if not numa_topology_filter.NUMATopologyFilter().host_passes(host, spec):
            return dict(fits=False, stage="numa")
        return dict(fits=True, stage=None)

    for case in cases:
        try:
            yield answer(case)
        except (exception.NovaException, ValueError) as error:
            yield dict(error=type(error).__name__)


def accepts(cases):
    """Whether Nova starts with these lines, or takes this flavor property: {option, texts} → true or false."""
    from nova import monkey_patch

    monkey_patch.patch(backend="threading")
    import nova.conf
    from nova import exception, objects
    from nova.api.validation.extra_specs import validators
    from nova.pci import request, whitelist

    objects.register_all()
    for case in cases:
        request.get_alias_from_config.cache_clear()
        aliases = case["texts"] if case["option"] == "alias" else case.get("aliases", [])
        nova.conf.CONF.set_override("alias", aliases, "pci")
        try:
            if case["option"] == "alias":
                request.get_alias_from_config()
            elif case["option"] == "device_spec":
                whitelist.Whitelist(case["texts"])
            else:
                (text,) = case["texts"]
                validators.validate("pci_passthrough:alias", text)
                request.get_pci_requests_from_flavor(objects.Flavor(extra_specs={"pci_passthrough:alias": text}))
        except (exception.NovaException, ValueError, TypeError, AttributeError):
            yield False
        else:
            yield True


def _said():
    """The list that what stats.py logs goes into."""
    said, handler = [], logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("nova.pci.stats")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    return said


def _sysfs():
    """A function that lays out which devices are physical functions, where Nova looks for that."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    devices_folder = pathlib.Path(folder.name)
    _mount(folder.name, "/sys/bus/pci/devices")

    def lay(devices):
        for path in devices_folder.glob("*/sriov_totalvfs"):
            path.unlink()
            path.parent.rmdir()
        for device in devices:
            if device["dev_type"] == "type-PF":
                (devices_folder / device["address"]).mkdir()
                (devices_folder / device["address"] / "sriov_totalvfs").write_text("8")

    return lay


def _pools(case):
    """(what the scheduler gets of the host, how many devices Nova knows there)"""
    from nova import exception
    from oslo_utils import uuidutils

    first = _tracker([])
    first.update_devices_from_hypervisor_resources(json.dumps(case["devices"]))
    for device in first.pci_devs:
        # as its database has it
        device.instance_uuid = None
    for device in first.pci_devs:
        if device.address in case["in_use"]:
            # not where its card, or a function of it, was taken before
            with contextlib.suppress(exception.PciDeviceInvalidStatus):
                device.claim(uuidutils.generate_uuid())
    second = _tracker(list(first.pci_devs))
    return second.stats.to_device_pools_obj(), len(second.pci_devs)


def _tracker(known):
    """A compute node's tracker that finds these devices in its database."""
    from nova import context, objects
    from nova.pci import manager

    listed = objects.PciDeviceList(objects=known)
    with mock.patch.object(objects.PciDeviceList, "get_by_compute_node", return_value=listed):
        return manager.PciDevTracker(context.RequestContext(), objects.ComputeNode(id=1, numa_topology=None))


def _stage(counted, requests, known, said):
    """Where the first request that is not met loses its last device."""
    from nova.pci import stats

    left = stats.PciDeviceStats(None, stats=counted)
    for one in requests:
        if left._apply_request(left.pools, one, []):
            continue
        alone, count = stats.PciDeviceStats(None, stats=counted), sum(pool.count for pool in counted)
        said.clear()
        if alone.support_requests([one], {}):
            return "count"
        emptied = "count" if count else "free" if known else "device_spec"
        for line in said:
            for words, name in DROPPED.items():
                if line.startswith("Dropped") and words in line:
                    count -= int(line.split()[1])
                    emptied = name if count == 0 else emptied
        return emptied
    raise SystemExit("the filter refuses what its stages let pass")


def _cell(case):
    """A NUMA node with more of everything than any guest wants, but PCI devices."""
    from nova import objects

    cpus = range(case["id"] * 100, case["id"] * 100 + 100)
    cell = objects.NUMACell(id=case["id"], socket=case["socket"], memory=2**20, memory_usage=0, cpu_usage=0)
    cell.cpuset, cell.pcpuset, cell.pinned_cpus = set(cpus[:50]), set(cpus[50:]), set()
    cell.siblings = [{number} for number in cpus]
    cell.mempages = [objects.NUMAPagesTopology(size_kb=4, total=2**20, used=0, reserved=0)]
    return cell


QUESTIONS = {"operators": operators, "effective": effective, "schedule": schedule, "accepts": accepts}


def main(question):
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answers = list(QUESTIONS[question](cases))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
