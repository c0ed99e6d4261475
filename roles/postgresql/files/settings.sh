# shellcheck shell=sh
# Functions that read PostgreSQL's settings and apply the lab's. Connect as the superuser, by peer authentication.
# Variable: KEYS (postgresql.NAME of each setting to read). They write below /etc/postgresql/*/*/conf.d/.
PATH=$PATH:/usr/sbin:/sbin
# Whether PostgreSQL starts at boot, and its units that run, as before the lab's first change.
STATE=/var/lib/loadlab-tuning/postgresql
# Directory of the clusters' configurations, <version>/<name>.
CLUSTERS=/etc/postgresql
cd / || exit 1

ask() { runuser -u postgres -- psql -X -A -t -c "$1"; }

answers() { # waits until the server answers
    for try in $(seq 50); do
        runuser -u postgres -- pg_isready -q && return
        sleep 0.2
    done
    return 1
}

# An application keeps connections that the restart has closed, and would answer its next requests with errors. If it
# does not start any more, its deployment or measurement says why.
connect_again() {
    ! systemctl --quiet is-active loadlab-app || systemctl restart loadlab-app || :
}

running() {
    systemctl list-units --plain --no-legend --state=active postgresql.service 'postgresql@*.service' | awk '{ print $1 }'
}

# Stores the state once: what a crashed or earlier run stored is older and stays.
keep_state() {
    [ ! -e $STATE ] || return 0
    boot=disable
    ! systemctl --quiet is-enabled postgresql 2>/dev/null || boot=enable
    mkdir -p ${STATE%/*} && echo $boot $(running) >$STATE.part && sync $STATE.part && mv $STATE.part $STATE &&
        sync ${STATE%/*} && echo stored
}

# Starts what the lab used and somebody stopped since: the lab's databases are in it.
start_used() {
    [ -e $STATE ] && systemctl cat postgresql >/dev/null 2>&1 || return 0
    [ -z "$(pgrep -u postgres -x postgres)" ] || return 0
    systemctl start postgresql && answers && echo started
}

put_state_back() {
    [ -e $STATE ] || return 0
    read -r boot units <$STATE
    # The package may have been removed in the meantime.
    if systemctl cat postgresql >/dev/null 2>&1; then
        for unit in $(running); do
            case " $units " in *" $unit "*) ;; *) systemctl stop "$unit" || return ;; esac
        done
        # The unit of all clusters stops these units, too. A dropped cluster has no unit to start.
        left=''
        for unit in $units; do
            cluster=${unit#postgresql@} cluster=${cluster%.service}
            [ "$unit" = postgresql.service ] || [ -e "$CLUSTERS/${cluster%%-*}/${cluster#*-}" ] || continue
            left="$left $unit"
        done
        [ -z "$left" ] || systemctl start $left || return
        systemctl --quiet "$boot" postgresql || return
    fi
    rm $STATE && echo "as before"
    rmdir --ignore-fail-on-non-empty ${STATE%/*}
}

# Prints the settings in $KEYS as "w 644 postgresql.NAME VALUE", "p postgresql.NAME" for each of all that waits for a
# restart, the path of the configuration ("c "), the number of the lab's settings in force ("n ") and the checksum of
# their file.
look() {
    command -v psql >/dev/null || return
    answers
    ask "SELECT 'w 644 postgresql.' || name || ' ' || current_setting(name) FROM pg_settings
             WHERE 'postgresql.' || name = ANY (string_to_array('$KEYS', ' '))
         UNION ALL SELECT 'p postgresql.' || name FROM pg_settings WHERE pending_restart
         UNION ALL SELECT 'c ' || current_setting('config_file')
         UNION ALL SELECT 'n ' || count(*) FROM pg_settings WHERE sourcefile LIKE '%/loadlab.conf'" || return
    sha256sum /etc/postgresql/*/*/conf.d/loadlab.conf 2>/dev/null || true
}

# Prints the name of the unit of a cluster, whose folder of configuration is given. Other clusters are not restarted.
unit_of() {
    name=${1#/etc/postgresql/}
    echo "postgresql@${name%/*}-${name#*/}"
}

# Enables counting and timing of statements, under every profile, in a separate file.
# Keeps other preloaded libraries, and restarts only if needed.
count_statements() {
    answers
    loaded=$(ask "SHOW shared_preload_libraries") || return
    case ",$loaded," in *[,\ ]pg_stat_statements,*) return ;; esac
    file=$(ask "SHOW config_file")
    cluster=${file%/*}
    file=$cluster/conf.d/loadlab-statements.conf
    cat >"$file" <<END
# Written by the load-testing lab for its telemetry; no part of a tuning profile.
shared_preload_libraries = '${loaded:+$loaded, }pg_stat_statements'
END
    chmod 644 "$file"
    systemctl restart "$(unit_of "$cluster")" && answers && connect_again || return
    case ",$(ask "SHOW shared_preload_libraries")," in
    *[,\ ]pg_stat_statements,*) echo "counted from now on" ;;
    *)
        echo "$file is not in force: another file sets shared_preload_libraries" >&2
        return 1
        ;;
    esac
}

# Gives FILE this content, or removes it, and loads the settings, with a restart only if one needs it. If PostgreSQL rejects
# them, restores the former file and prints "rejected" with the reason.
configure() { # FILE CONTENT
    if [ -e "$1" ]; then cp -p "$1" "$1.former"; else rm -f "$1.former"; fi
    if [ -n "$2" ]; then
        printf %s "$2" >"$1.part" && chmod 644 "$1.part" && mv "$1.part" "$1" || return
    else
        rm -f "$1"
    fi
    cluster=${1%/conf.d/*}
    name=${cluster#/etc/postgresql/}
    version=${name%/*}
    if ! said=$(runuser -u postgres -- "/usr/lib/postgresql/$version/bin/postgres" -D "$cluster" -C config_file 2>&1); then
        put_back "$1"
        echo "rejected $said"
        return
    fi
    loaded=$(ask "SELECT pg_conf_load_time()")
    ask "SELECT pg_reload_conf()" >/dev/null
    for try in $(seq 50); do
        [ "$(ask "SELECT pg_conf_load_time()")" = "$loaded" ] || break
        sleep 0.1
    done
    # The server reports which settings need a restart.
    if [ "$(ask "SELECT count(*) FROM pg_settings WHERE pending_restart")" != 0 ]; then
        if ! { systemctl restart "$(unit_of "$cluster")" && answers; } 2>/dev/null; then
            said=$(grep -E ' (FATAL|PANIC):' "/var/log/postgresql/postgresql-$version-${name#*/}.log" | tail -n 1)
            put_back "$1"
            systemctl restart "$(unit_of "$cluster")"
            echo "rejected $said"
            return
        fi
        connect_again || return
    fi
    rm -f "$1.former"
}

put_back() { # FILE
    if [ -e "$1.former" ]; then mv -f "$1.former" "$1"; else rm -f "$1"; fi
}

# Drops the lab's databases and role, and counts statements no more unless the owner's settings do.
hand_back() {
    answers
    runuser -u postgres -- psql -X -q -A -t -v ON_ERROR_STOP=1 <<'SQL' || return
\set ours 'made by the load-testing lab'
SELECT format('DROP DATABASE %I WITH (FORCE)', datname)
FROM pg_database WHERE shobj_description(datdba, 'pg_authid') = :'ours' \gexec
SELECT 'DROP ROLE loadlab' FROM pg_roles WHERE rolname = 'loadlab' AND shobj_description(oid, 'pg_authid') = :'ours' \gexec
SQL
    file=$(ask "SHOW config_file")
    cluster=${file%/*}
    file=$cluster/conf.d/loadlab-statements.conf
    [ -e "$file" ] || [ -e "$file.former" ] || return 0
    ask "DROP EXTENSION IF EXISTS pg_stat_statements" >/dev/null || return
    # Without the ending .conf nobody reads it; it stays until the restart.
    [ ! -e "$file" ] || mv "$file" "$file.former"
    systemctl restart "$(unit_of "$cluster")" && answers || return
    rm "$file.former"
    echo "counts no more"
}
