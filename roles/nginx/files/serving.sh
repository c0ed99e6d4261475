# shellcheck shell=sh
# Reads the settings, accept queues and open-file limits of nginx and the application.
# Variable: KEYS (nginx.NAME of each directive to read).
PATH=$PATH:/usr/sbin:/sbin

open_files() { # nginx or application, PID
    [ "${2:-0}" = 0 ] || awk -v name="$1" '/^Max open files/ { print name ".open_files", $4 }' "/proc/$2/limits"
}

values() {
    # The first occurrence of a directive counts, which for http is outside the upstream block.
    nginx -T 2>/dev/null | awk -v keys="$KEYS" '
        BEGIN { split(keys, list, " "); for (i in list) wanted[list[i]] }
        { sub(/;.*/, ""); key = "nginx." ($1 == "keepalive" ? "upstream_keepalive" : $1) }
        key in wanted && !seen[key]++ { sub(/^[ \t]*[^ \t]+[ \t]+/, ""); print key, $0 }'
    ss -Hltn 'sport = :80' | awk '{ print "nginx.backlog", $3; exit }'
    open_files nginx "$(pgrep -o -P "$(cat /run/nginx.pid 2>/dev/null)" 2>/dev/null)"
    listens=$(sed -n 's/^Environment=LAB_LISTEN=//p' /etc/systemd/system/loadlab-app.service 2>/dev/null)
    case $listens in
    unix:*) ss -Hlx src "${listens#unix:}" | awk '{ print "application.backlog", $4; exit }' ;;
    ?*) ss -Hltn src "$listens" | awk '{ print "application.backlog", $3; exit }' ;;
    esac
    open_files application "$(systemctl show --property=MainPID --value loadlab-app)"
}

# Prints "w 644 key value" for each.
look() { values | sed 's/^/w 644 /'; }
