# shellcheck shell=sh
# Makes this host serve somebody: a database with rows, a site of nginx, a node_exporter with its own flags, and a service on a
# port of the lab's.
set -e
cd /
systemctl --quiet enable --now postgresql
runuser -u postgres -- createdb shop
runuser -u postgres -- psql -q -d shop -c 'CREATE TABLE orders AS SELECT generate_series(1, 1000) AS id'
echo 'server { listen 127.0.0.1:80; location / { return 200 "the shop\n"; } }' >/etc/nginx/sites-enabled/shop
systemctl --quiet enable --now nginx
echo 'ARGS="--web.listen-address=127.0.0.1:9100 --collector.disable-defaults --collector.uname"' >/etc/default/prometheus-node-exporter
systemctl --quiet enable --now prometheus-node-exporter
systemd-run --quiet --unit=shop-files python3 -m http.server 5201
