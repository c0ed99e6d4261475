# shellcheck shell=sh
# Reads and sets tunable values of this host. The form of a key says what it is:
#   net.core.somaxconn           a kernel parameter, by its sysctl name
#   /sys/kernel/mm/...           a file below /sys; with a * all matching files, set to the same value
#   swap                         off, or each area in use: PATH, or PATH:PRIORITY if one was given
#   unit.cron.service            active or inactive
#   snap.refresh.hold            until when snapd updates no snap: forever, a time, or none
#   limit.systemd.nofile         open-file limit of a new service; limit.pam.nofile of a new session
#   nic.ring.rx                  of each card below the interface $NIC, by its ethtool name; also nic.channels.,
#                                nic.coalesce. and nic.feature.
#   boot.mitigations             a parameter of the kernel's command line, "default" if absent; a new
#                                value takes effect at the next boot
# Variables: NIC (interface), KEYS (keys of the profile), WANTED (hash of the profile), FILES (the lab's files).
# Limits come from FILES. They apply to processes that start later, so $SERVICES are restarted. A value that cannot
# be set is skipped; reading it back shows that.
set -f
PATH=$PATH:/usr/sbin:/sbin
SYS=/sys
# Directory of the original values, until they are restored.
KEPT=/var/lib/loadlab-tuning
# Units to restart, if they run, for a new limit.
SERVICES='nginx loadlab-app'
# Service that gives a host back what was stopped. Its timer ends with the host's boot; the service then runs at once.
HAND_BACK=/etc/systemd/system/loadlab-hand-back.service
# Directory of additions to Debian's GRUB configuration.
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
        # If the file lists several choices, brackets mark the current one.
        if [ -f "$file" ]; then
            words="$words $(sed 's/.*\[\(.*\)\].*/\1/' "$file")"
            # A single read-only file makes the key read-only.
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
    # A boot takes them in any order: the same areas are in the order in which they were found.
    original=$(sed -n 's/^swap = //p' "$KEPT/found" 2>/dev/null)
    [ "$(printf '%s\n' $areas | sort)" != "$(printf '%s\n' $original | sort)" ] || areas=$original
    may=w
    # An area outside of this host's file system cannot be switched from here.
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

read_snap() {
    command -v snap >/dev/null || return 0
    value=$(snap get system "${1#snap.}" 2>/dev/null)
    echo "w 644 $1 ${value:-none}"
}

read_limit() {
    case $1 in
    limit.systemd.nofile) value=$(systemd-run --quiet --pipe --wait --collect sh -c 'ulimit -Sn' </dev/null) ;;
    limit.pam.nofile) value=$(su -s /bin/sh nobody -c 'ulimit -Sn' </dev/null) ;;
    *) value='' ;;
    esac
    if [ -n "$value" ]; then echo "w 644 $1 $value"; fi
}

# Prints "card value maximum w|r" for each card below $NIC that has the key; the maximum is - where there is none.
nic_cards() {
    name=${1#nic.*.} limited=''
    for card in $(cards "$NIC"); do
        case $1 in
        nic.ring.*) limited=yes && said=$(ethtool --show-ring "$card" 2>/dev/null) ;;
        nic.channels.*) limited=yes && said=$(ethtool --show-channels "$card" 2>/dev/null) ;;
        nic.coalesce.*) said=$(ethtool --show-coalesce "$card" 2>/dev/null) ;;
        nic.feature.*) said=$(ethtool --show-features "$card" 2>/dev/null) ;;
        *) said='' ;;
        esac
        # ethtool prints the maximum first and the current value last. A card without such a ring has 0 or n/a. A group
        # of features is fixed where each of its members, which are indented below it, is marked so.
        echo "$said" | awk -v name="$name" -v card="$card" -v limited="$limited" '
            tolower($1) == name ":" {
                if (most == "") most = $2
                value = $2; own = $3 != "[fixed]"; members = free = 0; group = !/^[ \t]/
                next
            }
            group && /^[ \t]/ { members++; free += $3 != "[fixed]"; next }
            { group = 0 }
            END {
                may = own && (!members || free) ? "w" : "r"
                if (limited == "") most = "-"
                if (value != "" && value != "n/a" && most != "0" && most != "n/a") print card, value, most, may
            }'
    done
}

# One word where all cards have the same, else the word of each. With a maximum also "m key maximum".
read_nic() {
    # Without ethtool the value is unknown; that is different from the card lacking the feature.
    command -v ethtool >/dev/null || { echo "r 444 $1 unknown" && return; }
    nic_cards "$1" | awk -v key="$1" '
        {
            values = values " " $2; maxima = maxima " " $3
            if (NR == 1) { value = $2; most = $3 }
            if ($2 != value) several = 1
            if ($3 != most) unlike = 1
            if ($4 == "r") fixed = 1
        }
        END {
            if (NR) print fixed ? "r 444" : "w 644", key (several ? values : " " value)
            if (NR && most != "-") print "m", key (unlike ? maxima : " " most)
        }'
}

read_boot() {
    # A container has no boot loader of its own, and boot loaders other than GRUB are not supported.
    may='w 644'
    if systemd-detect-virt --quiet --container; then may='r 644'
    elif ! [ -d "$GRUB" ] || ! command -v update-grub >/dev/null; then may='r 444'; fi
    value=$(tr ' ' '\n' </proc/cmdline | sed -n "s/^${1#boot.}=//p" | tail -n 1)
    echo "$may $1 ${value:-default}"
}

# Prints "w|r mode key value" for each existing key: whether it is writable here, and its octal mode; and for a key
# of a card "m key maximum".
tunables() {
    units=''
    for key in "$@"; do
        case $key in
        /sys/*) read_sys "$key" ;;
        swap) read_swap ;;
        unit.*) units="$units ${key#unit.}" ;;
        snap.*) read_snap "$key" ;;
        limit.*) read_limit "$key" ;;
        nic.*) read_nic "$key" ;;
        boot.*) read_boot "$key" ;;
        *) read_sysctl "$key" ;;
        esac
    done
    [ -z "$units" ] || read_units $units
}

# Whether the available memory takes what is swapped out, and a tenth of all memory stays available.
swap_fits() {
    awk '{ kib[$1] = $2 }
         END { exit kib["MemAvailable:"] - kib["MemTotal:"] / 10 <= kib["SwapTotal:"] - kib["SwapFree:"] }' /proc/meminfo
}

put() { # key, value
    key=$1
    # Several words if each file, area or card has its own value.
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
            off) swap_fits && swapoff -a ;;
            *:*) swapon -p "${area##*:}" "${area%:*}" ;;
            *) swapon "$area" ;;
            esac
        done
        ;;
    unit.*) if [ "$1" = active ]; then systemctl start "${key#unit.}"; else systemctl stop "${key#unit.}"; fi ;;
    snap.*) if [ "$1" = none ]; then snap unset system "${key#snap.}"; else snap set system "${key#snap.}=$1"; fi ;;
    limit.systemd.*)
        # Skip if the limit is in force already, even if the kernel granted less than requested.
        asked=$(sed -n 's/^DefaultLimitNOFILE=\([0-9]*\).*/\1/p' $FILES 2>/dev/null)
        if [ "$(systemctl show --property=DefaultLimitNOFILESoft --value)" != "$asked" ]; then
            systemctl daemon-reload
            systemctl try-restart $SERVICES
        fi
        ;;
    limit.*) ;;
    nic.*)
        for card in $(nic_cards "$key" | cut -d ' ' -f 1); do
            case $key in
            nic.ring.*) ethtool --set-ring "$card" "${key#nic.*.}" "$1" ;;
            nic.channels.*) ethtool --set-channels "$card" "${key#nic.*.}" "$1" ;;
            nic.coalesce.*) ethtool --coalesce "$card" "${key#nic.*.}" "$1" ;;
            nic.feature.*) ethtool --features "$card" "${key#nic.*.}" "$1" ;;
            esac
            [ $# = 1 ] || shift
        done
        ;;
    boot.*)
        # The owner's own is where it was, and counts again without the lab's.
        if [ "$1" = default ] || grep -qsxF "$key = $1" "$KEPT/found"; then
            rm -f "$GRUB/90-loadlab-$key.cfg"
        else
            # The last occurrence on the command line takes effect.
            echo "GRUB_CMDLINE_LINUX=\"\$GRUB_CMDLINE_LINUX ${key#boot.}=$1\"" >"$GRUB/90-loadlab-$key.cfg"
        fi
        update-grub
        ;;
    *) echo "$*" >"/proc/sys/$(echo "$key" | tr . /)" ;;
    esac || true
}

place() { # PATH CONTENT, or nothing to remove it
    if [ -n "$2" ]; then
        # Whole or not at all, as the disk may be full.
        mkdir -p "${1%/*}" && printf %s "$2" >"$1.part" && mv "$1.part" "$1" || { rm -f "$1.part"; return 1; }
    else
        rm -f "$1"
        # A directory of no package is the lab's.
        dpkg-query --search "${1%/*}" >/dev/null 2>&1 || rmdir --ignore-fail-on-non-empty "${1%/*}"
    fi
}

# Reads $KEYS and the keys that were changed before, whose original values are in $KEPT/found.
observe() { tunables $(printf '%s\n' $KEYS $(sed -n 's/ = .*//p' "$KEPT/found" 2>/dev/null) | sort -u); }

# Prints one checksum of the wanted profile ($WANTED), the values read ($1), the original values and the
# files.
outcome() { { echo "$WANTED" && echo "$1" && cat "$KEPT/found" && sha256sum $FILES; } 2>/dev/null | sha256sum; }

# Prints the original values, "o key = value"; for swap only the areas that still exist.
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

# Replaces the original values with standard input, atomically. A name is on the disk once its directory is, so a later power
# cut does not lose them.
keep() (
    set -e
    umask 022
    mkdir -p "$KEPT"
    cat >"$KEPT/found.part"
    sync "$KEPT/found.part"
    mv "$KEPT/found.part" "$KEPT/found"
    sync "$KEPT"
)

# Keeps only the original values of standard input, if there were any; prints "forgotten" then.
forget() (
    set -e
    [ -e "$KEPT" ] || return 0
    keep
    rm -f "$KEPT/settled"
    if ! [ -s "$KEPT/found" ]; then
        disarm
        rm -f "$KEPT/found" "$KEPT/hand-back.sh"
        rmdir --ignore-fail-on-non-empty "$KEPT"
    fi
    echo forgotten
)

# Prints the values, the maxima of cards, the original values, the checksums of the files, and "settled" if the same
# profile was applied before with the same result.
look() {
    seen=$(observe)
    echo "$seen"
    originals
    sha256sum $FILES 2>/dev/null
    [ "$(outcome "$seen")" != "$(cat "$KEPT/settled" 2>/dev/null)" ] || echo settled
}

# Prints the values that came of a profile, and remembers its result.
settle() {
    seen=$(observe)
    echo "$seen"
    mkdir -p "$KEPT"
    outcome "$seen" >"$KEPT/settled"
}

# Whether the lab stopped units, swap or snapd.
stopped() { grep -qE '^(unit|snap)[.]|^swap ' "$KEPT/found" 2>/dev/null; }

# Has the script that is standard input, which ends with hand_back, run in $1 seconds, and then each hour until it has acted.
# Prints when. Does nothing where nothing is stopped. Fails where the disk has no room for it.
arm() {
    stopped || return 0
    cat >"$KEPT/hand-back.part" && sync "$KEPT/hand-back.part" && mv "$KEPT/hand-back.part" "$KEPT/hand-back.sh" || return
    wind "$1"
}

# Has it run $1 seconds from now on. Prints "over" where it has acted already.
renew() {
    stopped || return 0
    if systemctl --quiet is-active loadlab-hand-back.timer; then wind "$1"; else echo over; fi
}

wind() {
    systemctl --quiet stop loadlab-hand-back.timer 2>/dev/null
    cat >"$HAND_BACK" <<UNIT || return
[Unit]
Description=Start what the load-testing lab stopped
[Service]
Type=oneshot
ExecStart=/bin/sh $KEPT/hand-back.sh
[Install]
WantedBy=multi-user.target
UNIT
    systemctl --quiet enable loadlab-hand-back.service &&
        systemd-run --quiet --unit=loadlab-hand-back --on-active="$1" --on-unit-inactive=3600 --timer-property=AccuracySec=1 &&
        date -u -d "+$1 seconds" '+%F %H:%M UTC'
}

disarm() {
    systemctl --quiet stop loadlab-hand-back.timer 2>/dev/null || true
    [ -e "$HAND_BACK" ] || return 0
    systemctl --quiet disable loadlab-hand-back.service
    rm "$HAND_BACK"
    systemctl daemon-reload
}

# Gives the host its units, swap and snaps back, unless its timer runs and it measured in the last hour.
hand_back() {
    ! systemctl --quiet is-active loadlab-hand-back.timer ||
        [ -z "$(find /var/lib/loadlab-runs -mmin -60 -print -quit 2>/dev/null)" ] || return 0
    originals | while read -r _ key _ value; do
        case "$key $value" in
        'unit.'*' active' | 'swap /'* | 'snap.'*) put "$key" "$value" ;;
        esac
    done
    disarm
}
