# shellcheck shell=sh disable=SC2154 # cgroups.sh stands before it
# What a node knows of a job besides its log: $1 the names (id, SLUID) under which the kernel counts
# its processes, $2 the ids that they may have inherited, with commas between; $3 seconds between
# two looks at their processor time, $4 the job's user (a name or a number). Runs under POSIX sh; GPUs
# last, since their driver may hang.
LC_ALL=C
export LC_ALL

# The user's number; empty where the node does not know the name.
number_of() {
  case $1 in
  '' | *[!0-9]*) id -u -- "$1" 2>/dev/null ;;
  *) echo "$1" ;;
  esac
}

# Tasks by their cgroup: beside them stand slurmstepd (step_N/slurm), and in step_extern a sleep and
# whoever came by ssh (pam_slurm_adopt), long after the last task has died. An id that was inherited
# counts where the kernel names no other job (components of a heterogeneous job carry the first
# one's), and for processes of the job's user alone, since anybody may export any. `unmapped`: the
# kernel counts processes to jobs whose names nobody here can tell, or the user is not known here.
# `whole` comes last, where both searches have reached their end.
found() {
  {
    processes_by_cgroup /proc
    printf 'SLURM_JOB_ID=%s' "${2%%,*}" |
      timeout -k 1 5 grep -lsz -E "^SLURM_JOB_ID=($(printf %s "$2" | tr , '|'))\$" /proc/[0-9]*/environ - |
      sed -e 's|^/proc/\([0-9]*\)/.*|inherited \1|' -e 's|^(standard input)$|saw environments|'
  } | awk -v names="$1" -v self="$$" -v user="$(number_of "$3")" '
    function real_uid(pid,   file, line, field) {
      file = "/proc/" pid "/status"
      while ((getline line < file) > 0) if (line ~ /^Uid:/) { split(line, field, "\t"); break }
      close(file)
      return field[2]
    }
    BEGIN {
      count = split(names, list, ",")
      for (i = 1; i <= count; i++) { own[list[i]] = 1; if (list[i] ~ /^s/) sluid = 1 }
    }
    $1 == "saw" { saw[$2] = 1; next }
    $1 == "cgroup" && $3 in own { if ($4 ~ /^\/step_[^\/]+\/(user\/)?task_[0-9]+(\/|$)/) of[$2] = 1; next }
    $1 == "cgroup" && ($3 == "?" || ($3 ~ /^s/ && !sluid)) { unmapped = 1; next }
    $1 == "cgroup" { other[$2] = 1 }
    $1 == "inherited" && !($2 in other) && !($2 in of) && $2 != self {
      if (user == "") unmapped = 1
      else if (real_uid($2) == user) of[$2] = 1
    }
    END {
      for (pid in of) if (pid != self) print pid
      if (unmapped) print "unmapped"
      if (("cgroups" in saw) && ("environments" in saw)) print "whole"
    }'
}

# Processes, those in state D, clock ticks of processor time. A name in stat may hold anything, even
# a newline; awk reads the files, since a cat that dies would leave processes out.
ticks() {
  # shellcheck disable=SC2086 # numbers
  printf '%s\n' $1 | awk '
    $1 == "" { next }
    {
      file = "/proc/" $1 "/stat"; text = ""
      while ((getline line < file) > 0) text = text line " "
      close(file)
      if (text == "") next
      sub(/^.*\) /, "", text); split(text, field, " ")
      n++; if (field[1] == "D") d++; t += field[12] + field[13]
    }
    END { print n + 0, d + 0, t + 0 }'
}

found=$(found "$1" "$2" "${4:-}")
pids='' whole=''
for word in $found; do
  case $word in
  unmapped) echo unmapped ;;
  whole) whole=1 ;;
  *) pids="$pids $word" ;;
  esac
done
[ -n "$whole" ] || echo cut
before=$(ticks "$pids")
[ -n "$pids" ] && sleep "$3"
echo "tasks $(id -u) $(id -un) $before $(ticks "$pids") $3 $(getconf CLK_TCK)"
timeout -k 1 10 nvidia-smi --query-gpu=utilization.gpu,power.draw,power.limit \
  --format=csv,noheader,nounits 2>/dev/null | sed 's/^/gpu /'
exit 0
