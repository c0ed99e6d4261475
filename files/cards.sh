# shellcheck shell=sh
# Prints the cards below an interface, one a line: those of a bond or a VLAN; the interface itself where there are none.
# Reads SYS, the mount point of sysfs.
cards() {
    lowers=$(find "$SYS/class/net/$1/" -maxdepth 1 -name 'lower_*' 2>/dev/null | sed 's/.*\/lower_//')
    if [ -z "$lowers" ]; then
        echo "$1"
    else
        for lower in $lowers; do cards "$lower"; done | sort -u
    fi
}
