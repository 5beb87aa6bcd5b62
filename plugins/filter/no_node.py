# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.no_node`: why no owner can serve a request, summed up over all of them, boards and hosts.

Why a single node cannot is known to the modules that refused, and for those not asked to flavors/.
"""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ..module_utils.flavors import fit, hosts

DOCUMENTATION = r"""
name: no_node
short_description: Say why nobody can serve a request
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Puts together what several owners answered to a claim that none of them could serve, and what the owners that were
    not asked would say to its flavor; equal reasons of a kind of nodes are one line.
positional: _input, flavor, proxies, hosts
options:
  _input:
    description: C(failure) of each claim that was refused, by M(hetero.compute.board_claim),
      M(hetero.compute.lxc_instance) or M(hetero.compute.kvm_instance).
    type: list
    elements: dict
    required: true
  flavor:
    description: The flavor that was asked for.
    type: dict
    required: true
  proxies:
    description: Results of M(hetero.compute.board_info) from proxy nodes that were not asked.
    type: list
    elements: dict
    default: []
  hosts:
    description: Results of M(hetero.compute.host_info) from GPU and KVM hosts that were not asked.
    type: list
    elements: dict
    default: []
seealso:
  - plugin: hetero.compute.fits
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Say why not
  ansible.builtin.fail:
    msg: "{{ [claim.failure] | hetero.compute.no_node(hetero_instance_types['tgx.8x8'], [], [gpu1, gpu2]) }}"
# => bob wants tgx.8x8 (tile-gx64, 8x8, 16384 MB, 500 GB): no node.
#      10 boards: cpu_arch TILEPro64 is not tile-gx64
#       2 GPU hosts: cpu_arch x86_64 is not tile-gx64
"""

RETURN = r"""
_value:
  description: The answer in words, the first line of it about the request.
  type: str
"""

BOARDS = "boards"
#: What a host's own claims call it, by what it runs.
HOSTS = {"LXC": "GPU hosts", "KVM": "KVM hosts"}
#: Whatever ends the first line of a refusal: the one that says that some were found says more.
NOBODY = ": no node."


def refused(failures):
    """[(kind, node, its reasons)] of claims that were refused."""
    found = []
    for failure in failures:
        kind = failure.get("kind") or BOARDS
        found += [(kind, node, reasons) for node, reasons in failure["rejected"].items()]
    return found


def not_asked(flavor, proxies, gpu_hosts):
    """The same for nodes that nobody asked, as their totals say it."""
    found = [(BOARDS, one["name"], fit.rejections(flavor, one)) for result in proxies for one in result["boards"]]
    return found + [(HOSTS[host["hypervisor"]], host["name"], hosts.rejections(flavor, host)) for host in gpu_hosts]


def lines(reasons):
    """A line for each reason of a kind of nodes, the most nodes first; up to three are named if others differ."""
    groups, kinds = {}, {}
    for kind, node, why in reasons:
        if why:
            groups.setdefault((kind, ", ".join(why)), []).append(node)
            kinds[kind] = kinds.get(kind, 0) + 1
    largest_first = sorted(groups.items(), key=lambda group: -len(group[1]))
    width = max((len(str(len(nodes))) for _key, nodes in largest_first), default=0)
    said = []
    for (kind, why), nodes in largest_first:
        counted = len(nodes) > 3 or len(nodes) == kinds[kind] > 1
        said.append(f"{len(nodes):>{width}} {kind}: {why}" if counted else f"{', '.join(nodes)}: {why}")
    return said


def no_node(failures, flavor, proxies=(), gpu_hosts=()):
    if isinstance(failures, (str, dict)) or not all(isinstance(one, dict) and "rejected" in one for one in failures):
        raise AnsibleFilterError("hetero.compute.no_node needs a list of failures of claims before the bar")
    heads = [failure["what"].splitlines()[0] for failure in failures]
    head = min(heads, key=lambda text: text.endswith(NOBODY), default="no node")
    why = lines(refused(failures) + not_asked(flavor, proxies, gpu_hosts)) or ["there are no boards and no hosts"]
    return "\n".join([head, *(f"  {line}" for line in why)])


class FilterModule:
    def filters(self):
        return {"no_node": no_node}
