# shellcheck shell=sh disable=SC2154 # tab is set before it
# For what a task in state D waits, as far as the kernel tells. Never traces it. Reading the path
# may have to wait for the lock on its memory: only SIGKILL ends that, so timeout(1) sends it.
#
# Prints `blocked PID THREAD WCHAN KERNEL-STACK` and `waits PID DOING PATH`, tabs between.

# A range and not [:print:], which busybox's tr does not know.
plain() { tr -c '\040-\176' ' ' | cut -c "1-$1"; }
told() { printf '%s' "$1" && shift && printf '\t%s' "$@" && echo; }

blocked() {
    told blocked "$1" "$2" "$(plain 60 <"/proc/$1/task/$2/wchan" 2>/dev/null)" "$(kernel "$1" "$2")"
    call "$1" "$2"
}

# The system call that the thread is in, where it is one on a file.
call() {
    read -r number first second _ 2>/dev/null <"/proc/$1/task/$2/syscall" || return 0
    case $(uname -m):$number in # syscall_64.tbl and asm-generic/unistd.h of Linux
    x86_64:0 | x86_64:17 | x86_64:19 | aarch64:63 | aarch64:67 | aarch64:65) on_file "$1" reading "$first" ;;
    x86_64:1 | x86_64:18 | x86_64:20 | aarch64:64 | aarch64:68 | aarch64:66) on_file "$1" writing "$first" ;;
    x86_64:74 | x86_64:75 | aarch64:82 | aarch64:83) on_file "$1" syncing "$first" ;;
    x86_64:3 | aarch64:57) on_file "$1" closing "$first" ;;
    x86_64:217 | aarch64:61) on_file "$1" listing "$first" ;;
    x86_64:72 | x86_64:73 | aarch64:25 | aarch64:32) on_file "$1" locking "$first" ;;
    x86_64:5 | x86_64:8 | x86_64:77 | aarch64:80 | aarch64:62 | aarch64:46) on_file "$1" "waiting for" "$first" ;;
    x86_64:16 | aarch64:29) on_file "$1" "in an ioctl of" "$first" ;;
    x86_64:2) on_path "$1" opening "$first" ;;
    x86_64:257 | x86_64:437 | aarch64:56 | aarch64:437) on_path "$1" opening "$second" ;;
    x86_64:4 | x86_64:6 | x86_64:21 | x86_64:137 | aarch64:43) on_path "$1" "looking at" "$first" ;;
    x86_64:262 | x86_64:269 | x86_64:332 | x86_64:439 | aarch64:79 | aarch64:48 | aarch64:291 | aarch64:439)
        on_path "$1" "looking at" "$second" ;;
    x86_64:87 | x86_64:82) on_path "$1" changing "$first" ;;
    x86_64:263 | x86_64:258 | aarch64:35 | aarch64:34) on_path "$1" changing "$second" ;;
    *:-1) told waits "$1" "in a page fault" "" ;;
    esac
}

kernel() { # only root may read it
    sed -n 's/^\[<0>\] \([A-Za-z0-9_]*\).*/\1/p' "/proc/$1/task/$2/stack" 2>/dev/null | head -n 8 | tr '\n' ' '
}

on_file() { told waits "$1" "$2" "$(readlink "/proc/$1/fd/$(($3))" 2>/dev/null | plain 300)"; }

on_path() {
    path=$(timeout -s KILL 1 dd if="/proc/$1/mem" bs=300 count=1 iflag=skip_bytes skip="$(($3))" 2>/dev/null |
        tr '\000' '\n' | head -n 1 | plain 300)
    case $path in '' | /*) ;; *) path=$(readlink "/proc/$1/cwd")/$path ;; esac
    told waits "$1" "$2" "$path"
}
