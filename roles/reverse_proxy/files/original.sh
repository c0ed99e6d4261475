# shellcheck shell=sh
# Stores a reverse proxy as it was before the lab's first change, and restores it: its configuration, which files/aside.sh
# puts aside, and in $KEPT/state the systemctl verbs that make it run, and start at boot, as before.
# Variables: KEPT (directory); UNIT; CONF, its configuration; MARK, a text that only the lab's has; CHECK, a command that
# refuses the configuration whose path is appended; LOG, a file of the lab's or empty.
PATH=$PATH:/usr/sbin:/sbin
ADDED=/etc/systemd/system/$UNIT.service.d/loadlab.conf
CERTIFICATES=${CONF%/*}/loadlab

labs() { grep -qsF "$MARK" "$CONF"; }

# Whether there is nothing to store: it is stored already, or the lab's own file is in its place.
is_kept() { is_aside "$CONF" || labs; }

# Stores each once: what a crashed or earlier run stored is older and stays.
keep() {
    mkdir -p "$KEPT" || return
    if [ ! -e "$KEPT/state" ]; then
        run=stop boot=disable
        ! systemctl --quiet is-active "$UNIT" || run=restart
        ! systemctl --quiet is-enabled "$UNIT" 2>/dev/null || boot=enable
        { echo "$run $boot" >"$KEPT/part" && sync "$KEPT/part" && mv "$KEPT/part" "$KEPT/state" && sync "$KEPT"; } || return
    fi
    # There is no file before the package is installed; afterwards it is the package's. The service starts with the copy until
    # the lab's is written.
    if [ -e "$CONF" ] && ! is_kept; then put_aside "$CONF" && cp -p "$CONF$ASIDE" "$CONF"; fi
}

put_back() {
    [ -e "$KEPT" ] || [ -e "$ADDED" ] || [ -e "$CERTIFICATES" ] || is_kept || return 0
    echo "put back"
    # As an earlier version of the lab stored it.
    if [ -e "$KEPT/conf.tar" ] && [ -d "${CONF%/*}" ]; then tar -C "${CONF%/*}" -xf "$KEPT/conf.tar" || return; fi
    if is_aside "$CONF"; then
        take_back "$CONF" || return
    elif labs; then
        echo "what $CONF was before the lab's is not kept; the distribution's comes by rm $CONF &&" \
            "apt-get install --reinstall -o Dpkg::Options::=--force-confmiss $(dpkg -S "$CONF" 2>/dev/null | cut -d : -f 1)" >&2
        return 1
    fi
    rm -rf "$CERTIFICATES" "$ADDED"
    [ ! -d "${ADDED%/*}" ] || rmdir --ignore-fail-on-non-empty "${ADDED%/*}"
    systemctl daemon-reload
    # The package may have been removed in the meantime.
    if [ -e "$KEPT/state" ] && systemctl cat "$UNIT" >/dev/null 2>&1; then
        read -r run boot <"$KEPT/state"
        if [ "$run" = restart ] && ! said=$($CHECK "$CONF" 2>&1); then
            echo "$CONF is as it was found, and $UNIT does not take it, so it runs on with the lab's: $said" >&2
            return 1
        fi
        systemctl "$run" "$UNIT" || return
        systemctl --quiet "$boot" "$UNIT" || return
    fi
    rm -rf "$KEPT" ${LOG:+"$LOG"}
    rmdir --ignore-fail-on-non-empty "${KEPT%/*}" 2>/dev/null || :
}
