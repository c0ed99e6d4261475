# shellcheck shell=sh
# Prints what this host serves and which names of the lab's it has, one "name<tab>value" per line. Runs as root and
# changes nothing.
# Reads MARK (file that lists what the lab makes here), PATHS (of the lab's, separated by spaces) and PROXIES (the reverse
# proxies, one "name<tab>text of the lab's configuration<tab>files" per line: its configuration and patterns of further ones).
# loadlab/hosts/host_in_use.py parses the output.
PATH=$PATH:/usr/sbin:/sbin
cd /
say() { printf '%s\t%s\n' "$1" "$2"; }

[ ! -e "$MARK" ] || sed 's/^/owned\t/' "$MARK"
# Local hosts begin with the folder deps, which holds packages of earlier hosts.
for path in $PATHS; do
    ! ls -A "$path" 2>/dev/null | grep -qvx deps || say path "$path"
done
user=$(getent passwd loadlab | cut -d : -f 6,7)
[ -z "$user" ] || say user "$user"
systemctl list-units --plain --no-legend --state=active '*node?exporter*.service' | awk '{ print "exporter\t" $1 }'

# The run whose load or calibration this host records; the unit is gone where it does not.
run=$(systemctl show --property=Environment --value loadlab-record | sed -n 's,.*DIR=/var/lib/loadlab-runs/\([^/ ]*\).*,\1,p')
[ -z "$run" ] || say run "$run"

ss -Hltnp | sed -n 's/^[^ ]* *[^ ]* *[^ ]* *\([^ ]*\) .*(("\([^"]*\)",pid=\([0-9]*\),.*/\1 \3 \2/p' |
    while read -r local pid process; do
        unit=$(sed -n 's,.*/\([^/]*\.\(service\|scope\)\)$,\1,p' "/proc/$pid/cgroup" 2>/dev/null | head -n 1)
        say listener "$local ${unit:--} $process"
    done

# What a package brought is in its list, with its MD5.
echo "$PROXIES" | while IFS=$(printf '\t') read -r name mark files; do
    brought=$(dpkg-query -W -f '${Conffiles}\n' "$name*" 2>/dev/null)
    for file in $files; do
        [ -f "$file" ] || continue
        case $brought in *" $(readlink -f "$file") $(md5sum <"$file" | cut -d ' ' -f 1)"*) continue ;; esac
        { [ "$file" = "${files%% *}" ] && grep -qF "$mark" "$file"; } || say site "$name $file"
    done
done

clusters=$(! command -v pg_lsclusters >/dev/null || pg_lsclusters --no-header)
echo "$clusters" | while read -r version name port status _ data _; do
    # PostgreSQL numbers the databases that it does not make itself from 16384 on.
    [ -z "$version" ] || say cluster "$version/$name $port $status $(ls "$data/base" 2>/dev/null | awk '$1 >= 16384' | wc -l)"
done
# A database is the lab's if its role owns it, which the role fixtures marks by a comment.
databases() {
    runuser -u postgres -- psql -X -q -A -t -v ON_ERROR_STOP=1 -p 5432 -d postgres 2>&1 <<'SQL'
\set comment 'made by the load-testing lab'
SELECT format(E'database\t%s %s', CASE WHEN shobj_description(datdba, 'pg_authid') = :'comment' THEN 'lab' ELSE 'foreign' END,
              datname)
FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1') ORDER BY datname;
SELECT E'role\tloadlab' FROM pg_roles
WHERE rolname = 'loadlab' AND shobj_description(oid, 'pg_authid') IS DISTINCT FROM :'comment';
SELECT E'preloads\t' || setting FROM pg_file_settings
WHERE name = 'shared_preload_libraries' AND sourcefile NOT LIKE '%/conf.d/loadlab%.conf' ORDER BY seqno DESC LIMIT 1;
SQL
}
if echo "$clusters" | awk '$3 == 5432 && $4 ~ /^online/ { online = 1 } END { exit !online }'; then
    if said=$(databases); then echo "$said"; else say unreadable "$(echo "$said" | tail -n 1)"; fi
fi
# Fingerprints that the role deployment_stamp stored, of each part whose files are all unchanged and whose services
# are all up. Checks one service at a time, because systemctl is-active succeeds if any of several is active.
# As root, since keys are among the files. Prints none during an unfinished set-up, which may have left services with an old
# configuration.
deployed() {
    cd "$1" 2>/dev/null && sha256sum --quiet --strict --check sums >/dev/null 2>&1 &&
        xargs -n 1 systemctl --quiet is-active <services && cat fingerprint 2>/dev/null
}
say deployed "$([ -e /run/loadlab-setup ] || for part in /var/lib/loadlab-deployed/*; do (deployed "$part"); done | paste -sd ' ')"
say looked yes
