# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the status page looks, in light and in dark. Nothing is loaded from elsewhere."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark;
  --back: #f4f6f8; --card: #ffffff; --ink: #17202b; --soft: #596675; --line: #dbe1e7; --hole: #edf0f3;
  --free: #6c7a89; --running: #16794a; --booting: #1d63d8; --leaving: #a86100; --error: #c4262e; --away: #7446b8;
  --free-t: #ffffff; --running-t: #e6f4ec; --booting-t: #e6effc; --leaving-t: #fbf0df; --error-t: #fce9e9;
  --away-t: #f1ebfa;
  --power: #c77700; --tftp: #1d63d8; --nfs: #7446b8; --login: #16794a; --other: #5d6b7a; --on: #ffffff }
@media (prefers-color-scheme: dark) { :root {
  --back: #0f141a; --card: #171e26; --ink: #e4e9ef; --soft: #97a4b3; --line: #2b3540; --hole: #11171e;
  --free: #8795a5; --running: #48bd82; --booting: #6aa5ff; --leaving: #e2a548; --error: #ff7b78; --away: #b693f0;
  --free-t: #171e26; --running-t: #14302a; --booting-t: #172a47; --leaving-t: #33280f; --error-t: #3b1b1f;
  --away-t: #291f3d;
  --power: #e2a548; --tftp: #6aa5ff; --nfs: #b693f0; --login: #48bd82; --other: #8d9baa; --on: #0f141a } }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif }
main { max-width: 1320px; margin: 0 auto; padding: 22px 24px 48px }
header { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 4px 24px }
h1 { font-size: 23px; margin: 0; letter-spacing: -.01em }
h2 { font-size: 16px; margin: 30px 0 10px }
h3 { font-size: 14px; margin: 0 }
.soft, time { color: var(--soft); font-weight: normal }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 9px; overflow-wrap: anywhere }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; list-style: none; margin: 16px 0 0; padding: 0 }
.tiles li { flex: 1 1 112px; padding: 9px 14px; border-top: 3px solid var(--c) }
.tiles b { display: block; font-size: 25px; line-height: 1.2; font-variant-numeric: tabular-nums }
.tiles .none { opacity: .55 }
.free { --c: var(--free); --t: var(--free-t) } .running { --c: var(--running); --t: var(--running-t) }
.booting { --c: var(--booting); --t: var(--booting-t) } .leaving { --c: var(--leaving); --t: var(--leaving-t) }
.error { --c: var(--error); --t: var(--error-t) } .away { --c: var(--away); --t: var(--away-t) }
.all { --c: var(--ink) }
.rack { margin-top: 12px; padding: 12px 14px 14px }
.rack > .head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 20px }
.pdu { display: grid; grid-template-columns: 84px 1fr; gap: 10px; margin-top: 10px; align-items: start }
.pdu > div { padding-top: 6px; font-weight: 600 } .pdu > div small { display: block; font-weight: normal }
.outlets { display: grid; grid-template-columns: repeat(auto-fill, minmax(128px, 1fr)); gap: 5px; list-style: none;
  margin: 0; padding: 6px; background: var(--hole); border-radius: 7px }
.outlets li { position: relative; padding: 4px 8px 5px 11px; border-radius: 5px; background: var(--t);
  box-shadow: inset 4px 0 var(--c), inset 0 0 0 1px var(--line); min-width: 0 }
.outlets li > * { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.outlets .no { position: absolute; right: 7px; top: 5px; color: var(--soft); font-size: 11px }
.outlets b { font-size: 12.5px; padding-right: 22px } .outlets .who { font-size: 12.5px }
.outlets small, .state { color: var(--c); font-size: 11.5px } .outlets .free .who { color: var(--soft) }
.state { font-weight: 600; white-space: nowrap; font-size: 13px }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th { text-align: left; font-size: 12px; color: var(--soft); font-weight: 600; vertical-align: bottom }
th, td { padding: 7px 12px; border-bottom: 1px solid var(--line) } td { vertical-align: top }
tbody tr:last-child > * { border-bottom: 0 } tbody th { color: var(--ink); font-size: 14px;
  vertical-align: top; min-width: 120px } td { min-width: 100px }
td.text { min-width: 260px } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap }
td small, th small { display: block; color: var(--soft); font-weight: normal; font-size: 12px }
td.when, td.name { white-space: nowrap; font-variant-numeric: tabular-nums }
svg { display: block; max-width: none } svg text { font: 11px system-ui, "DejaVu Sans", sans-serif }
.boot { border-radius: 4px; background: var(--hole); margin-bottom: 3px }
.boot text { fill: var(--on); font-weight: 600 }
.boot line { stroke: var(--card); stroke-opacity: .45 } .axis { overflow: visible; margin-top: 4px }
.axis text { fill: var(--soft) }
.p-power { fill: var(--power) } .p-tftp { fill: var(--tftp) } .p-nfs { fill: var(--nfs) }
.p-running { fill: var(--login) }
.p-other { fill: var(--other) }
pre { margin: 6px 0 2px; padding: 8px 10px; background: var(--hole); border-radius: 6px; white-space: pre-wrap;
  font: 12px/1.4 ui-monospace, "DejaVu Sans Mono", monospace }
summary { cursor: pointer; color: var(--soft) }
.late { color: var(--error); font-weight: 600 }
@media (max-width: 700px) { .pdu { grid-template-columns: 1fr } main { padding: 14px 12px } }
@media print { body { background: none } .card { break-inside: avoid-page } }
"""
