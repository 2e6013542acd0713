# Runs as the first process of new namespaces: boots a Debian of its own, that is thrown away.
# $1: the system, $2: an empty folder, $3: a folder with packages, seen as /packages;
# $4...: pairs of a file or folder here and its place in there.
set -eu
system=$1
mounted=$2
packages=$3
shift 3
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$mounted"
mkdir "$mounted/upper" "$mounted/work" "$mounted/root"
mount -t overlay -o "lowerdir=$system,upperdir=$mounted/upper,workdir=$mounted/work" overlay "$mounted/root"
root=$mounted/root
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/packages"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount --bind "$packages" "$root/packages"
while [ $# -ge 2 ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else touch "$root$2"; fi
    mount --bind "$1" "$root$2"
    shift 2
done
cd "$root"
mkdir old
pivot_root . old
umount -l /old
rmdir /old
# As container managers have it: nothing in here sets this machine's sysctls.
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --make-rshared /
: >/etc/machine-id
exec env -i container=test PATH=/usr/bin:/usr/sbin /lib/systemd/systemd --system --unit=multi-user.target
