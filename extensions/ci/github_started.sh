#!/bin/sh
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# ACTIONS_RUNNER_HOOK_JOB_STARTED of a self-hosted runner names this file (guide_ci).
folder=$(dirname -- "$(readlink -f -- "$0")")
exec "${HETERO_PYTHON:-python3}" "$folder/heteroci" github started
