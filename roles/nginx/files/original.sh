# shellcheck shell=sh
# Stores nginx in $KEPT as it was before the lab's first change, and restores it: nginx.conf with its owner, mode
# and time (conf.tar), and the systemctl verbs that make it run, and start at boot, as before (state).
# Variable: KEPT (directory).
PATH=$PATH:/usr/sbin:/sbin
CONF=/etc/nginx/nginx.conf
ADDED=/etc/systemd/system/nginx.service.d/loadlab.conf
CERTIFICATES=/etc/nginx/loadlab

labs() { grep -qs 'location = /lab/status' "$CONF"; }

# Whether there is nothing to store: it is stored already, or the lab's own file is in its place.
is_kept() { [ -e "$KEPT/conf.tar" ] || labs; }

settle() { sync "$KEPT/part" && mv "$KEPT/part" "$KEPT/$1"; }

# Stores each file atomically and only once: what a crashed or earlier run stored is older and stays.
keep() {
    mkdir -p "$KEPT" || return
    if [ ! -e "$KEPT/state" ]; then
        run=stop boot=disable
        ! systemctl --quiet is-active nginx || run=restart
        ! systemctl --quiet is-enabled nginx 2>/dev/null || boot=enable
        { echo "$run $boot" >"$KEPT/part" && settle state; } || return
    fi
    # There is no file before the package is installed; afterwards it is the package's.
    if [ -e "$CONF" ] && ! is_kept; then
        tar -C "${CONF%/*}" -cf "$KEPT/part" nginx.conf && settle conf.tar
    fi
}

put_back() {
    [ -e "$KEPT" ] || [ -e "$ADDED" ] || [ -e "$CERTIFICATES" ] || labs || return 0
    echo "put back"
    if [ -e "$KEPT/conf.tar" ] && [ -d "${CONF%/*}" ]; then
        tar -C "${CONF%/*}" -xf "$KEPT/conf.tar" || return
        # Compare the file and its stored attributes with the archive.
        tar -C "${CONF%/*}" -df "$KEPT/conf.tar" >&2 || return
    elif labs; then
        echo "what $CONF was before the lab's is not kept; the distribution's comes by rm $CONF &&" \
            "apt-get install --reinstall -o Dpkg::Options::=--force-confmiss nginx-common" >&2
        return 1
    fi
    rm -rf "$CERTIFICATES" "$ADDED"
    [ ! -d "${ADDED%/*}" ] || rmdir --ignore-fail-on-non-empty "${ADDED%/*}"
    systemctl daemon-reload
    # The package may have been removed in the meantime.
    if [ -e "$KEPT/state" ] && systemctl cat nginx >/dev/null 2>&1; then
        read -r run boot <"$KEPT/state"
        if [ "$run" = restart ] && ! said=$(nginx -t 2>&1); then
            echo "$CONF is as it was found, and nginx does not take it, so it runs on with the lab's: $said" >&2
            return 1
        fi
        systemctl "$run" nginx || return
        systemctl --quiet "$boot" nginx || return
    fi
    rm -rf "$KEPT" /var/log/nginx/loadlab.log
}
