# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx's settings for `make docs`. What the pages say comes from docsite/, the plugins and the roles."""

import zlib
from pathlib import Path

project = "hetero.compute"
copyright = "hetero.compute contributors"
extensions = ["sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "sidebar_width": "280px"}
html_show_sourcelink = False
pygments_style = "ansible"
nitpicky = True

# antsibull-docs links to these places of Ansible's own documentation. Their inventory is written here, so that
# a build needs no network.
ANSIBLE = """\
action_plugins std:label -1 plugins/action.html#action-plugins Action plugins
ansible_collections.ansible.builtin.default_callback std:label -1 plugins/callback.html Callback plugins
ansible_configuration_settings std:label -1 reference_appendices/config.html Ansible Configuration Settings
callback_plugins std:label -1 plugins/callback.html#callback-plugins Callback plugins
common_return_values std:label -1 reference_appendices/common_return_values.html Return Values
""" + "".join(
    f"{name} std:envvar -1 reference_appendices/config.html#envvar-{name} -\n"
    for name in (
        "ANSIBLE_CACHE_PLUGIN",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION",
        "ANSIBLE_CACHE_PLUGIN_PREFIX",
        "ANSIBLE_CACHE_PLUGIN_TIMEOUT",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS",
        "ANSIBLE_SHOW_CUSTOM_STATS",
    )
)
inventory = Path(__file__).resolve().parent / "ansible.inv"
inventory.write_bytes(
    b"# Sphinx inventory version 2\n# Project: ansible\n# Version: 0\n"
    b"# The remainder of this file is compressed using zlib.\n" + zlib.compress(ANSIBLE.encode())
)
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/ansible/latest/", str(inventory))}
