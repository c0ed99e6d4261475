# shellcheck shell=sh
# Functions that read PostgreSQL's settings and apply the lab's. Connect as the superuser, by peer authentication.
# Read no variables; write below /etc/postgresql/*/*/conf.d/.
PATH=$PATH:/usr/sbin:/sbin
cd / || exit 1

ask() { runuser -u postgres -- psql -X -A -t -c "$1"; }

answers() { # waits until the server answers
    for try in $(seq 50); do
        runuser -u postgres -- pg_isready -q && return
        sleep 0.2
    done
    return 1
}

# An application keeps connections that the restart has closed, and would answer its next requests with errors. Who
# measures or deploys it waits for its start.
connect_again() {
    ! systemctl --quiet is-active loadlab-app || systemctl --no-block restart loadlab-app
}

# Prints every setting as name|value|pending_restart, the number of the lab's settings, and the checksum of
# their file.
settings() {
    answers
    ask "SELECT name, current_setting(name), pending_restart FROM pg_settings" || return
    ask "SELECT count(*), 'of the lab' FROM pg_settings WHERE sourcefile LIKE '%/loadlab.conf'"
    sha256sum /etc/postgresql/*/*/conf.d/loadlab.conf 2>/dev/null || true
}

# Enables counting and timing of statements, under every profile, in a separate file that untune.yml keeps.
# Keeps other preloaded libraries, and restarts only if needed.
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
    systemctl restart postgresql && answers && connect_again || return
    case ",$(ask "SHOW shared_preload_libraries")," in
    *[,\ ]pg_stat_statements,*) echo "counted from now on" ;;
    *)
        echo "$file is not in force: another file sets shared_preload_libraries" >&2
        return 1
        ;;
    esac
}

# Applies FILE, or its removal. If PostgreSQL rejects it, restores FORMER (or nothing), prints the reason and
# returns 3.
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
    # The server reports which settings need a restart.
    if [ "$(ask "SELECT count(*) FROM pg_settings WHERE pending_restart")" != 0 ]; then
        if ! { systemctl restart "postgresql@$name" && answers; } 2>/dev/null; then
            grep -E ' (FATAL|PANIC):' "/var/log/postgresql/postgresql-$name.log" | tail -n 1 >&2
            put_back "$1" "$2"
            systemctl restart "postgresql@$name"
            return 3
        fi
        connect_again || return
    fi
    rm -f "$2"
}

put_back() { # FILE FORMER
    if [ -e "$2" ]; then mv -f "$2" "$1"; else rm -f "$1"; fi
}
