# shellcheck shell=sh
# Prints what the owner of this host would miss: files, units, settings, rows, and what answers.
cd /
# Users stay, which docs/bare-metal.md says.
find /etc /usr/local/bin '(' -type f -o -type l ')' -not -name '*passwd*' -not -name '*shadow*' -not -name '*group*' \
    -not -name 'sub?id*' -printf '%p %l %m %u\n' -exec md5sum {} + 2>/dev/null | sort
systemctl list-unit-files --plain --no-legend
systemctl list-units --plain --no-legend --state=active --type=service,timer,socket | awk '!/^(run-|user)/ { print $1 }'
sysctl -a 2>/dev/null | grep -E '^(net\.core|net\.ipv4\.(tcp|ip_local)|vm\.)' | grep -v nr_
systemctl show --property=DefaultLimitNOFILE,DefaultLimitNOFILESoft
systemd-run --quiet --pipe --wait --collect sh -c 'ulimit -Sa; ulimit -Ha' </dev/null
cat /sys/kernel/mm/transparent_hugepage/enabled
awk '{ print $1 }' /proc/swaps
ethtool -k test0
runuser -u postgres -- psql -X -A -t -c 'SELECT name, setting, pending_restart FROM pg_settings' -c '\l' -c '\du' -c '\dx'
runuser -u postgres -- psql -X -A -t -d shop -c 'SELECT count(*), sum(id) FROM orders'
curl -s http://127.0.0.1/
curl -s http://127.0.0.1:9100/metrics | grep -c '^node_uname_info'
ss -Hltn | awk '{ print $4 }' | sort
