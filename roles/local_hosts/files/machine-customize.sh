#!/bin/sh
# Last touches to the base file system in $1 of virtual machines: kernel, boot loader and network.
set -eu
root=$1

# Drivers of its devices only: what is emulated reads and unpacks slowly.
echo MODULES=list >"$root/etc/initramfs-tools/conf.d/loadlab"
printf '%s\n' virtio_pci virtio_blk ext4 >>"$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -u >/dev/null

# QEMU loads GRUB as a kernel, since the disk has no boot sector. update-grub works as on any machine.
grub=/usr/lib/grub/i386-pc
mkdir -p "$root/boot/grub/i386-pc" "$root/etc/default/grub.d"
cp "$root$grub"/*.mod "$root$grub"/*.lst "$root/boot/grub/i386-pc"
chroot "$root" grub-mkimage --format=i386-pc --output=/boot/core.img --prefix='(hd0)/boot/grub' \
    biosdisk ext2 normal linux gzio search search_fs_uuid echo serial
cat "$root$grub/lnxboot.img" "$root/boot/core.img" >"$root/boot/grub-loadlab"
rm "$root/boot/core.img"
cat >"$root/etc/default/grub" <<'END'
GRUB_TIMEOUT=0
GRUB_TERMINAL=serial
GRUB_DISABLE_LINUX_UUID=true
GRUB_DISABLE_OS_PROBER=true
GRUB_CMDLINE_LINUX="console=ttyS0"
END
# Until the first update-grub, which needs the disk. The links to the kernel are in / on Debian, in /boot on Ubuntu.
kernel=$(echo "$root"/boot/vmlinuz-*)
cat >"$root/boot/grub/grub.cfg" <<END
serial
terminal_output serial
linux /boot/${kernel##*/} root=/dev/vda ro console=ttyS0
initrd /boot/initrd.img-${kernel##*/vmlinuz-}
boot
END
echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"

# sshd has the address of one card alone, so the network comes first.
systemctl --root="$root" enable systemd-networkd systemd-networkd-wait-online >/dev/null 2>&1
mkdir -p "$root/etc/systemd/system/ssh.service.d"
printf '[Unit]\nWants=network-online.target\nAfter=network-online.target\n' \
    >"$root/etc/systemd/system/ssh.service.d/loadlab-network.conf"
