# shellcheck shell=sh
# Reads and sets what can be tuned on this host, each by a key that says what it is:
#   net.core.somaxconn           a kernel parameter, as sysctl names it
#   /sys/kernel/mm/...           a file below /sys; with a * all that there are, set alike
#   swap                         off, or each area in use: PATH, or PATH:PRIORITY where one was given
#   unit.cron.service            active or inactive
#   limit.systemd.nofile         open files of a service that starts now; limit.pam.nofile of a session
#   nic.ring.rx                  of the interface $NIC, as ethtool names it; also nic.channels.,
#                                nic.coalesce. and nic.feature.
#   boot.mitigations             a word of the kernel's command line, "default" where it has none; what
#                                is put is in force once the host was booted again
# The limits are in files that the role writes. They are in force for what starts after them, so
# that $SERVICES are started again. A value that cannot be set is left; the reading tells.
set -f
PATH=$PATH:/usr/sbin:/sbin
# Where Debian's GRUB has what is added to its own settings.
GRUB=/etc/default/grub.d

may() { # w or r: may this process write the file; and its mode in octal
    find "$1" -maxdepth 0 '(' -writable -printf w -o -printf r ')' -printf ' %m' 2>/dev/null
}

read_sysctl() {
    file=/proc/sys/$(echo "$1" | tr . /)
    if [ -f "$file" ]; then echo "$(may "$file") $1 $(cat "$file")"; fi
}

read_sys() { # one word where all files have the same, else the word of each
    words='' may=''
    set +f
    for file in $1; do
        # Several choices in a row have the one in force in brackets.
        if [ -f "$file" ]; then
            words="$words $(sed 's/.*\[\(.*\)\].*/\1/' "$file")"
            # One that may not be written keeps the others from being set alike.
            case $may in r*) ;; *) may=$(may "$file") ;; esac
        fi
    done
    set -f
    same=$(printf '%s\n' $words | sort -u)
    case $same in *[[:space:]]*) ;; *) words=$same ;; esac
    if [ -n "$words" ]; then echo "$may $1" $words; fi
}

read_swap() {
    areas=$(awk 'NR > 1 { print $1 ($5 < 0 ? "" : ":" $5) }' /proc/swaps)
    may=w
    # What is of another system than this host, it cannot switch.
    for area in $areas; do [ -e "${area%:*}" ] || may=r; done
    echo "$may 644 swap" ${areas:-off}
}

read_units() {
    systemctl show --property=LoadState,ActiveState -- "$@" | awk -v names="$*" '
        function tell() {
            if (load != "not-found") print "w 644 unit." name[++n], on
            else n++
        }
        BEGIN { split(names, name, " ") }
        sub(/^LoadState=/, "") { load = $0 }
        sub(/^ActiveState=/, "") { on = ($0 ~ /^(active|activating|reloading)$/) ? "active" : "inactive" }
        /^$/ { tell() }
        END { tell() }'
}

read_limit() {
    case $1 in
    limit.systemd.nofile) value=$(systemd-run --quiet --pipe --wait --collect sh -c 'ulimit -Sn' </dev/null) ;;
    limit.pam.nofile) value=$(su -s /bin/sh nobody -c 'ulimit -Sn' </dev/null) ;;
    *) value='' ;;
    esac
    if [ -n "$value" ]; then echo "w 644 $1 $value"; fi
}

read_nic() {
    name=${1#nic.*.}
    # Nobody can tell, which is not that the card has no such thing.
    command -v ethtool >/dev/null || { echo "r 444 $1 unknown" && return; }
    case $1 in
    nic.ring.*) said=$(ethtool --show-ring "$NIC" 2>/dev/null) ;;
    nic.channels.*) said=$(ethtool --show-channels "$NIC" 2>/dev/null) ;;
    nic.coalesce.*) said=$(ethtool --show-coalesce "$NIC" 2>/dev/null) ;;
    nic.feature.*) said=$(ethtool --show-features "$NIC" 2>/dev/null) ;;
    *) said='' ;;
    esac
    # What the card could have comes first, what it has last.
    echo "$said" | awk -v name="$name" -v key="$1" '
        tolower($1) == name ":" { value = $2; mode = $3 == "[fixed]" ? "r 444" : "w 644" }
        END { if (value != "" && value != "n/a") print mode, key, value }'
}

read_boot() {
    # A container is booted by another system; another loader than GRUB is left alone.
    may='w 644'
    if systemd-detect-virt --quiet --container; then may='r 644'
    elif ! [ -d "$GRUB" ] || ! command -v update-grub >/dev/null; then may='r 444'; fi
    value=$(tr ' ' '\n' </proc/cmdline | sed -n "s/^${1#boot.}=//p" | tail -n 1)
    echo "$may $1 ${value:-default}"
}

# A line for each key that there is: w or r (may it be set here), octal mode, key, value.
tunables() {
    units=''
    for key in "$@"; do
        case $key in
        /sys/*) read_sys "$key" ;;
        swap) read_swap ;;
        unit.*) units="$units ${key#unit.}" ;;
        limit.*) read_limit "$key" ;;
        nic.*) read_nic "$key" ;;
        boot.*) read_boot "$key" ;;
        *) read_sysctl "$key" ;;
        esac
    done
    [ -z "$units" ] || read_units $units
}

put() { # key, value
    key=$1
    # Its words, which are several where each file or area has its own.
    set -- $2
    case $key in
    /sys/*)
        set +f
        for file in $key; do
            echo "$1" >"$file"
            [ $# = 1 ] || shift
        done
        set -f
        ;;
    swap)
        for area in "$@"; do
            case $area in
            off) swapoff -a ;;
            *:*) swapon -p "${area##*:}" "${area%:*}" ;;
            *) swapon "$area" ;;
            esac
        done
        ;;
    unit.*) if [ "$1" = active ]; then systemctl start "${key#unit.}"; else systemctl stop "${key#unit.}"; fi ;;
    limit.systemd.*)
        # Not where it is in force already, and less is granted than was asked.
        asked=$(sed -n 's/^DefaultLimitNOFILE=\([0-9]*\).*/\1/p' $FILES 2>/dev/null)
        if [ "$(systemctl show --property=DefaultLimitNOFILESoft --value)" != "$asked" ]; then
            systemctl daemon-reload
            systemctl try-restart $SERVICES
        fi
        ;;
    limit.*) ;;
    nic.ring.*) ethtool --set-ring "$NIC" "${key#nic.*.}" "$1" ;;
    nic.channels.*) ethtool --set-channels "$NIC" "${key#nic.*.}" "$1" ;;
    nic.coalesce.*) ethtool --coalesce "$NIC" "${key#nic.*.}" "$1" ;;
    nic.feature.*) ethtool --features "$NIC" "${key#nic.*.}" "$1" ;;
    boot.*)
        if [ "$1" = default ]; then
            rm -f "$GRUB/90-loadlab-$key.cfg"
        else
            # The last on the line is the one in force.
            echo "GRUB_CMDLINE_LINUX=\"\$GRUB_CMDLINE_LINUX ${key#boot.}=$1\"" >"$GRUB/90-loadlab-$key.cfg"
        fi
        update-grub
        ;;
    *) echo "$*" >"/proc/sys/$(echo "$key" | tr . /)" ;;
    esac || true
}

# All that is of interest here: $KEYS, and what was changed before, whose first values are in $KEPT/found.
observe() { tunables $(printf '%s\n' $KEYS $(sed -n 's/ = .*//p' "$KEPT/found" 2>/dev/null) | sort -u); }

# What was asked ($WANTED) and what came of it, in one checksum.
outcome() { { echo "$WANTED" && echo "$1" && cat "$KEPT/found" && sha256sum $FILES; } 2>/dev/null | sha256sum; }

# What was found before the first change; of swap the areas that there still are.
originals() {
    [ -e "$KEPT/found" ] || return 0
    while read -r key _ value; do
        if [ "$key" = swap ]; then
            there=''
            for area in $value; do
                if [ "$area" = off ] || [ -e "${area%:*}" ]; then there="$there $area"; fi
            done
            there=${there# }
            value=${there:-gone}
        fi
        printf 'o %s = %s\n' "$key" "$value"
    done <"$KEPT/found"
}

look() {
    seen=$(observe)
    echo "$seen"
    originals
    sha256sum $FILES 2>/dev/null
    [ "$(outcome "$seen")" != "$(cat "$KEPT/settled" 2>/dev/null)" ] || echo settled
}

settle() {
    seen=$(observe)
    echo "$seen"
    mkdir -p "$KEPT"
    outcome "$seen" >"$KEPT/settled"
}
