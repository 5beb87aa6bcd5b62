# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup `hetero.compute.driver_files`: files of a site's own drivers on the controller, as a node gets them.
drivers/outside of module_utils reads them there.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: driver_files
short_description: Read files of a site's own drivers on the controller
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks for each file where tasks look for files, beside the inventory, and where the play was begun.
  - A table in YAML becomes JSON, as nodes have no library for YAML.
  - A file that is not there, or cannot be read, is no error but is left out, for role P(hetero.compute.tftp_proxy#role)
    says all mistakes at once.
options:
  _terms:
    description: >-
      Mappings of drivers' names to paths, by the folder that they get on the node, C(power_drivers) or
      C(boot_drivers).
    required: true
    type: dict
  mistakes:
    description: Return what is wrong with the files in place of them.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show what a node gets
  ansible.builtin.debug:
    msg: "{{ query('hetero.compute.driver_files', {'power_drivers': {'acme': 'files/acme.py'}}) }}"
"""

RETURN = r"""
_raw:
  description: >-
    Of each file C(path), where it lies on the node below C(/etc/hetero), and C(text); with O(mistakes), for each
    mistake its C(thing), C(what) and C(remedy).
  type: list
  elements: dict
"""

import json
import os

import yaml
from ansible.plugins.lookup import LookupBase

from ansible_collections.hetero.compute.plugins.plugin_utils.controller_files import look_for

#: Suffixes of tables, and the one that they have on a node.
TABLES = (".yml", ".yaml", ".json")
TABLE = ".json"


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        read = [
            self._one(folder, str(name), str(path), variables or {})
            for term in terms
            for folder, files in term.items()
            for name, path in files.items()
        ]
        return [one for one in read if ("what" in one) == self.get_option("mistakes")]

    def _one(self, folder, name, path, variables):
        def wrong(what):
            return {"thing": f"tftp_proxy_{folder}, {path}", "what": what, "remedy": f"correct tftp_proxy_{folder}"}

        found, missing = look_for(self, variables, path)
        if not found:
            return wrong(missing)
        suffix = os.path.splitext(path)[1]
        try:
            with open(self._loader.get_real_file(found), "rb") as file:
                text = file.read().decode("utf-8-sig")
            if suffix not in TABLES:
                return {"path": f"{folder}/{name}.py", "text": text}
            return {"path": f"{folder}/{name}{TABLE}", "text": json.dumps(yaml.safe_load(text), indent=4) + "\n"}
        except OSError as error:
            return wrong(f"cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            return wrong("is not UTF-8")
        except (yaml.YAMLError, TypeError) as error:
            return wrong(f"is no table in YAML: {' '.join(str(error).split())}")
