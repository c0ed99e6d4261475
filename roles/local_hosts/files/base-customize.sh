#!/bin/sh
# Last touches to the base file system in $1: it trusts and reaches what this machine does.
set -eu
root=$1

cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\ndisable-pip-version-check = true\n' \
    >"$root/etc/pip.conf"
# A proxy's address may have a password. PAM reads the file as root for every user.
touch "$root/etc/environment"
chmod 600 "$root/etc/environment"
for name in http_proxy https_proxy no_proxy; do
    eval "value=\${$name:-}"
    [ -z "$value" ] || echo "$name=$value" >>"$root/etc/environment"
done

# The hosts are thrown away: dpkg need not wait for the disk.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/loadlab"
# What is only installed must not run: the roles switch it on where it belongs.
for service in nginx postgresql prometheus-node-exporter; do
    [ ! -e "$root/usr/lib/systemd/system/$service.service" ] ||
        systemctl --root="$root" disable "$service" >/dev/null 2>&1
done
# Its package takes another port where this machine runs a PostgreSQL of its own.
for conf in "$root"/etc/postgresql/*/main/postgresql.conf; do
    [ ! -e "$conf" ] || sed -i 's/^port = .*/port = 5432/' "$conf"
done
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/machine-id"
