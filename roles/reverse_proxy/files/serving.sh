# shellcheck shell=sh
# Reads the settings, accept queues and open-file limits of a reverse proxy and the application.
# Variables: PROXY (its name), PORT (where it listens), READ (shell commands that print "name value" of each setting).
PATH=$PATH:/usr/sbin:/sbin

open_files() { # the reverse proxy or application, PID
    [ "${2:-0}" = 0 ] || awk -v name="$1" '/^Max open files/ { print name ".open_files", $4 }' "/proc/$2/limits"
}

values() {
    eval "$READ" | sed "s/^/$PROXY./"
    ss -Hltn "sport = :$PORT" | awk -v name="$PROXY" '{ print name ".backlog", $3; exit }'
    # The first of its processes that serves: the main one often only starts them.
    main=$(systemctl show --property=MainPID --value "$PROXY")
    [ "${main:-0}" = 0 ] || open_files "$PROXY" "$(pgrep -o -P "$main" || echo "$main")"
    listens=$(sed -n 's/^Environment=LAB_LISTEN=//p' /etc/systemd/system/loadlab-app.service 2>/dev/null)
    case $listens in
    unix:*) ss -Hlx src "${listens#unix:}" | awk '{ print "application.backlog", $4; exit }' ;;
    ?*) ss -Hltn src "$listens" | awk '{ print "application.backlog", $3; exit }' ;;
    esac
    open_files application "$(systemctl show --property=MainPID --value loadlab-app)"
}

# Prints "w 644 key value" for each.
look() { values | sed 's/^/w 644 /'; }
