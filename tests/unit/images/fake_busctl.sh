# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh disable=SC2154
#
# What only looks at the exports is answered here, in the words of fake_busctl.pl: a verb looks dozens of times, and a
# shell is there in a third of the time that Perl takes. Everything else is that file's, and so is a table that does not
# read as it writes it. That is replaced as a whole, so to look at it takes no turn.
exports=$FAKE_GANESHA manager='org.ganesha.nfsd /org/ganesha/nfsd/ExportMgr org.ganesha.nfsd.exportmgr'

# All exports, each as $id, $path, $pseudo and $client, to what is called with them.
each() {
    {
        IFS= read -r table || [ "$table" ] || return
        ! IFS= read -r more && [ ! "$more" ] || return
    } < "$exports"
    rest=${table#?}
    rest=${rest%?}
    while [ "$rest" ]; do
        id=${rest#\"} path=${rest#*\": \{\"path\": \"} pseudo=${rest#*\", \"pseudo\": \"}
        client=${rest#*\", \"clients\": [}
        id=${id%%\"*} path=${path%%\"*} pseudo=${pseudo%%\"*} client=${client%%]*}
        one="\"$id\": {\"path\": \"$path\", \"pseudo\": \"$pseudo\", \"clients\": [$client]}"
        case $rest in
            "$one") rest= ;;
            "$one, "?*) rest=${rest#"$one, "} ;;
            *) return 1 ;;
        esac
        case $client in
            '') ;;
            *[,\\]* | \"*\"*\"*) return 1 ;;
            \"*\") client=${client#\"} client=${client%\"} ;;
            *) return 1 ;;
        esac
        case $id$path$pseudo in
            *\\*) return 1 ;;
        esac
        case $id in
            '' | *[!0-9]*) return 1 ;;
        esac
        "$@"
    done
    [ "$table" = "{${table#?}" ] && [ "$table" = "${table%?}}" ]
}

row() {
    rows="$rows,[$id,\"$pseudo\",$protocols,[0,0]]"
}

named() {
    [ "$id" != "$number" ] || found="\"$path\",\"$pseudo\",\"\",[${client:+[\"$client/32\"$its]}]"
}

case $* in
    "--system --json=short --timeout="*" call $manager ShowExports")
        protocols='[["NFSv3",false],["MNT",false],["NMLv4",false],["RQUOTA",false],["NFSv40",false],["NFSv41",false]'
        protocols="$protocols,[\"NFSv42\",false],[\"9P\",false]]" rows="[0,\"/\",$protocols,[0,0]]"
        if [ -f "$exports" ] && each row; then
            kind='(tt)a(qs((sb)(sb)(sb)(sb)(sb)(sb)(sb)(sb))(tt))'
            printf '{"type":"%s","data":[[1795162415,133115314],[%s]]}\n' "$kind" "$rows"
            exit
        fi
        ;;
    "--system --json=short --timeout="*" call $manager DisplayExport q "*)
        for number; do :; done
        found= its=,0,0,255,1,4294967294,4294967294,0,53490146,480
        if [ -f "$exports" ] && each named; then
            if [ "$found" ]; then
                printf '{"type":"qsssa(siyyiuuuuu)","data":[%s,%s]}\n' "$number" "$found"
                exit
            fi
            echo 'Call failed: lookup_export failed with Export id not found' >&2
            exit 1
        fi
        ;;
esac
