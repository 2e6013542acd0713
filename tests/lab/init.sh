# Runs as the first process of new namespaces: a machine of its own, whose init is systemd.
# $1: folder with etc/ (units, configuration) and bin/ (programs); $2...: folders to be readable.
set -eu
made=$1
shift
# First of all: systemd-tmpfiles empties /tmp, which would be the machine's own.
mkdir -p "$made/keep" "$made/upper"
n=0
for path in "$@"; do
    mkdir -p "$made/keep/$n"
    mount --bind "$path" "$made/keep/$n"
    n=$((n + 1))
done
mount -t tmpfs tmpfs /mnt
mkdir -p /mnt/made
mount --rbind "$made" /mnt/made
for dir in /run /tmp /var/tmp /var/lib /var/log; do mount -t tmpfs tmpfs "$dir"; done
mount -t tmpfs tmpfs /mnt/made/upper
mkdir /mnt/made/upper/etc /mnt/made/upper/etcwork /mnt/made/upper/usr /mnt/made/upper/usrwork
mount -t overlay -o "lowerdir=/etc,upperdir=/mnt/made/upper/etc,workdir=/mnt/made/upper/etcwork" overlay /etc
mount -t overlay -o "lowerdir=/usr,upperdir=/mnt/made/upper/usr,workdir=/mnt/made/upper/usrwork" overlay /usr
# As a container manager has it: nothing in here sets this machine's sysctls, triggers its udev or
# writes into its kernel log (https://systemd.io/CONTAINER_INTERFACE).
for path in /proc/sys /sys; do
    mount --bind "$path" "$path"
    mount -o remount,bind,ro "$path"
done
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
[ ! -e /dev/kmsg ] || mount --bind /dev/null /dev/kmsg
# Folders below a home that others may not enter, at their own places.
case " $* " in *" /root/"*) mount -t tmpfs -o mode=755 tmpfs /root ;; esac
n=0
for path in "$@"; do
    mkdir -p "$path"
    mount --bind "/mnt/made/keep/$n" "$path"
    n=$((n + 1))
done
cp -r /mnt/made/etc/. /etc/
cp -r /mnt/made/bin/. /usr/local/bin/
mkdir -p /run/systemd/system
for unit in systemd-modules-load systemd-tmpfiles-setup mariadb slurmctld slurmd slurmdbd munge ssh networking cron \
    postgresql prometheus-alertmanager systemd-timesyncd systemd-resolved systemd-logind; do
    ln -s /dev/null "/run/systemd/system/$unit.service"
done
: >/etc/machine-id
systemd-sysusers /etc/sentinel/sysusers.conf
chown -R root:sentinel /etc/sentinel
# As a container manager does: credentials are mounted by one process for another. The peers of
# these mounts are in this namespace only.
mount --make-rshared /
export container=test
exec /lib/systemd/systemd --system --unit=basic.target
