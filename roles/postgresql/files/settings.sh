# shellcheck shell=sh
# Reads PostgreSQL's settings, and brings the lab's own into force. Asks as the superuser, by peer
# authentication.
PATH=$PATH:/usr/sbin:/sbin
cd / || exit 1

ask() { runuser -u postgres -- psql -X -A -t -c "$1"; }

answers() { # waits for a server that starts
    for try in $(seq 50); do
        runuser -u postgres -- pg_isready -q && return
        sleep 0.2
    done
    return 1
}

# Every setting as name|value|pending_restart; how many are the lab's; the checksum of its file.
settings() {
    answers
    ask "SELECT name, current_setting(name), pending_restart FROM pg_settings" || return
    ask "SELECT count(*), 'of the lab' FROM pg_settings WHERE sourcefile LIKE '%/loadlab.conf'"
    sha256sum /etc/postgresql/*/*/conf.d/loadlab.conf 2>/dev/null || true
}

# Has statements counted and timed, under every profile alike: a file of its own, which untune leaves.
# Beside what else is loaded; a restart only where it is not yet so.
count_statements() {
    answers
    loaded=$(ask "SHOW shared_preload_libraries") || return
    case ",$loaded," in *[,\ ]pg_stat_statements,*) return ;; esac
    file=$(ask "SHOW config_file")
    file=${file%/*}/conf.d/loadlab-statements.conf
    cat >"$file" <<END
# Written by the load-testing lab for its telemetry; no part of a tuning profile.
shared_preload_libraries = '${loaded:+$loaded, }pg_stat_statements'
END
    chmod 644 "$file"
    systemctl restart postgresql && answers || return
    case ",$(ask "SHOW shared_preload_libraries")," in
    *[,\ ]pg_stat_statements,*) echo "counted from now on" ;;
    *)
        echo "$file is not in force: another file sets shared_preload_libraries" >&2
        return 1
        ;;
    esac
}

# Brings what is in FILE into force, or that it is not there any more. Where PostgreSQL refuses it,
# puts back what was there before, FORMER or nothing, and says why: exit status 3.
apply() { # FILE FORMER
    cluster=${1%/conf.d/*}
    name=${cluster#/etc/postgresql/}
    version=${name%/*}
    name=$version-${name#*/}
    if ! said=$(runuser -u postgres -- "/usr/lib/postgresql/$version/bin/postgres" -D "$cluster" -C config_file 2>&1); then
        put_back "$1" "$2"
        echo "$said" >&2
        return 3
    fi
    loaded=$(ask "SELECT pg_conf_load_time()")
    ask "SELECT pg_reload_conf()" >/dev/null
    for try in $(seq 50); do
        [ "$(ask "SELECT pg_conf_load_time()")" = "$loaded" ] || break
        sleep 0.1
    done
    # The server itself knows which settings take a start.
    if [ "$(ask "SELECT count(*) FROM pg_settings WHERE pending_restart")" != 0 ]; then
        if ! { systemctl restart "postgresql@$name" && answers; } 2>/dev/null; then
            grep -E ' (FATAL|PANIC):' "/var/log/postgresql/postgresql-$name.log" | tail -n 1 >&2
            put_back "$1" "$2"
            systemctl restart "postgresql@$name"
            return 3
        fi
    fi
    rm -f "$2"
}

put_back() { # FILE FORMER
    if [ -e "$2" ]; then mv -f "$2" "$1"; else rm -f "$1"; fi
}
