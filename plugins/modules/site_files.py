#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards file, wiring and inventory from what a site has. Runs on the controller, and writes to one folder there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: site_files
short_description: Write boards file, wiring and inventory from what a site has
version_added: 0.1.0
description:
  - Reads a table, a configuration of labgrid's exporter, device dictionaries of LAVA, NetBox, or exports of Ironic or
    MAAS, and writes what a set-up of a proxy node needs - C(files/boards), C(host_vars/NAME.yml) and C(inventory.yml)
    below O(folder).
  - What the source does not tell is asked, in C(answers.yml) beside them and in RV(questions). Nothing is guessed - a
    board of which something needed is not known is not written down.
  - Secrets are written nowhere. RV(vault) names the variables under which a vault is to have them.
  - The readers that a set-up uses look at everything before it is written.
  - With O(file) it writes the wiring of a proxy node that was learned there, into a new file. A C(console_command) that
    may hold a password is left out, and that is said.
  - Runs on the controller, with Ansible's own Python. Used by playbooks C(hetero.compute.move_in) and
    C(hetero.compute.cabling).
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  source:
    description:
      - What is read.
      - V(csv) is a table with a line of names of columns; V(labgrid) an exporter's configuration; V(lava) device
        dictionaries (C(*.jinja2)), or the YAML that LAVA makes of them; V(netbox) a NetBox server.
      - V(ironic) is JSON of C(openstack baremetal node list --long) and C(port list --long); V(maas) JSON of
        C(machines read), and of C(machines power-parameters).
    type: str
    choices: [csv, ironic, labgrid, lava, maas, netbox]
  src:
    description: Files of the source, and folders of such. Not with O(source=netbox).
    type: list
    elements: path
    default: []
  url:
    description:
      - With O(source=netbox), the address of a list of devices as the browser shows it, with its filters.
      - Pages are followed on this server only, and the token is sent to no other one.
    type: str
    default: ""
  token:
    description: A token of NetBox that may read.
    type: str
  validate_certs:
    description: Whether the certificate of O(url) is checked.
    type: bool
    default: true
  ca_path:
    description: A file with the authorities that may have signed the certificate of O(url), beside those of the system.
    type: path
  timeout:
    description: Seconds that one answer of O(url) may take.
    type: float
    default: 30
  folder:
    description: Folder in which files are written. It is made if it is not there.
    type: path
    default: "."
  replace:
    description:
      - Whether files that are there and differ are written anew. Otherwise nothing at all is written.
      - An C(inventory.yml) that is there is never changed.
    type: bool
    default: false
  file:
    description:
      - New file for O(boards) with O(wiring), as variable C(tftp_proxy_boards). One that is there stays, and the module
        fails.
      - Without O(wiring) it is only looked whether the file can be written.
    type: path
  boards:
    description:
      - Wiring of all boards of O(host), by board id, as the inventory has it; where it has none, as module
        M(hetero.compute.board_cabling) returns it (C(tftp_proxy_boards)).
    type: dict
  wiring:
    description:
      - The wiring that was learned, by board id, as module M(hetero.compute.board_cabling) returns it (C(wiring)). PDU
        and outlet count more than those of O(boards); of a board that is there, other words do not.
    type: dict
  host:
    description: The proxy node, as the inventory calls it.
    type: str
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Boards of a table
  hetero.compute.site_files:
    source: csv
    src: [boards.csv]
    folder: site

- name: Boards of NetBox
  hetero.compute.site_files:
    source: netbox
    url: https://netbox.example.org/dcim/devices/?site=lab&role=board
    token: "{{ vaulted_netbox_token }}"
    folder: site
    replace: true

- name: The wiring that was learned
  hetero.compute.site_files:
    file: wiring.yml
    host: proxy1
    boards: "{{ learned.tftp_proxy_boards }}"
    wiring: "{{ learned.wiring }}"
"""

RETURN = r"""
boards:
  description: The boards that are written down.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: The board's number.
      type: int
    name:
      description: What the source calls it.
      type: str
  sample: [{"id": 0, "name": "jackie"}]
questions:
  description: What is not known.
  returned: success
  type: list
  elements: dict
  contains:
    about:
      description: The board or PDU, as the source calls it, or C(the proxy node).
      type: str
    key:
      description: What is asked.
      type: str
    why:
      description: What is to be given, and in parentheses what the source says.
      type: str
    where:
      description: Where in C(answers.yml) the answer is written.
      type: str
    needed:
      description: Whether the board or PDU is not written down without it.
      type: bool
  sample: [{"about": "jackie", "key": "ip", "why": "its address", "where": "boards: jackie: ip", "needed": true}]
vault:
  description: Names of variables that are used and that a vault is to have.
  returned: success
  type: list
  elements: str
  sample: [vaulted_pdu_a_password]
notes:
  description: What the source has and what is not taken, and what else is to be known.
  returned: success
  type: list
  elements: str
lines:
  description: All of these in lines for people.
  returned: success
  type: list
  elements: str
seconds:
  description: Seconds of each step; there is none.
  returned: success
  type: dict
failure:
  description: The error in parts.
  returned: failure
  type: dict
  contains:
    what:
      description: What is wrong.
      type: str
    thing:
      description: The file or server.
      type: str
    remedy:
      description: What to do next.
      type: str
"""

import http.client
import ssl
import urllib.error

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import SSLValidationError, open_url

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.errors import HeteroError
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.moving.documents import MOST, Asked
from ..module_utils._hetero.moving.learned_wiring import write_wiring
from ..module_utils._hetero.moving.move_in import move_in
from ..module_utils._hetero.moving.sources.registry import SOURCES

SPEC = ArgumentSpec(
    dict(
        source=dict(type="str", choices=sorted(SOURCES)),
        src=dict(type="list", elements="path", default=[]),
        url=dict(type="str", default=""),
        token=dict(type="str", no_log=True),
        validate_certs=dict(type="bool", default=True),
        ca_path=dict(type="path"),
        timeout=dict(type="float", default=30),
        folder=dict(type="path", default="."),
        replace=dict(type="bool", default=False),
        file=dict(type="path"),
        boards=dict(type="dict"),
        wiring=dict(type="dict"),
        host=dict(type="str"),
    ),
    required_one_of=[("source", "file")],
    mutually_exclusive=[("source", "file")],
    required_by={"boards": ("file",), "wiring": ("file", "host")},
)


def asker(params):
    """Return a function that gets the text at an address. Redirections are not followed, for a token goes along."""

    def get(url, headers):
        ways = dict(validate_certs=params["validate_certs"], ca_path=params["ca_path"], timeout=params["timeout"])
        try:
            with open_url(url, headers=headers, follow_redirects="none", use_netrc=False, **ways) as answer:
                text = answer.read(MOST + 1)
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                remedy = "give a token that may read, by NETBOX_TOKEN or hetero_netbox_token"
                raise HeteroError(f"refuses the token ({error.code})", url, remedy) from error
            raise HeteroError(f"answers {error.code}", url, "check the address, and its filters") from error
        except (SSLValidationError, ssl.SSLError) as error:
            remedy = "give the authority that signed its certificate (ca_path)"
            raise HeteroError("its certificate is not trusted", url, remedy) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise HeteroError(
                f"does not answer as a whole ({error})", url, "check the address, and the server"
            ) from error
        if len(text) > MOST:
            raise HeteroError(f"answers with more than {MOST >> 20} MiB", url, "give more filters")
        return text.decode("utf-8", "replace")

    return get


def work(params, check):
    if params["file"]:
        return write_wiring(params, check)
    asked = Asked(params["src"], params["url"], params["token"] or "", asker(params))
    return move_in(params, asked, check)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
