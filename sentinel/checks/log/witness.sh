# shellcheck shell=sh disable=SC2154 # cgroups.sh stands before it
# What a node knows of a job besides its log: $1 the names (id, SLUID) under which the kernel counts
# its processes, $2 the id under which slurmd knows it; $3 seconds between two looks at their processor
# time, $4 the job's user (a name or a number), $5 a slurm.conf that is tried first, or empty. Runs under
# POSIX sh; GPUs last, since their driver may hang.
LC_ALL=C
export LC_ALL

# The user's number; empty where the node does not know the name. A name may be digits, too.
number_of() {
  id -u -- "$1" 2>/dev/null || case $1 in *[!0-9]*) ;; *) echo "$1" ;; esac
}

# Tasks by their cgroup: beside them stand slurmstepd (step_N/slurm), and in step_extern a sleep and
# whoever came by ssh (pam_slurm_adopt), long after the last task has died. `unmapped`: the kernel counts
# processes to jobs whose names nobody here can tell. `untracked`: it counts none to this job.
by_kernel() {
  processes_by_cgroup /proc | awk -v names="$1" '
    BEGIN {
      count = split(names, list, ",")
      for (i = 1; i <= count; i++) { own[list[i]] = 1; if (list[i] ~ /^s/) sluid = 1 }
    }
    $1 == "saw" { saw = 1; next }
    $3 == "?" || (!($3 in own) && $3 ~ /^s/ && !sluid) { unmapped = 1 }
    $3 in own { ours = 1; if ($4 ~ /^\/step_[^\/]+\/(user\/)?task_[0-9]+(\/|$)/ && !told[$2]++) print "task", $2, substr($4, 7) }
    END {
      if (unmapped) print "unmapped"
      if (!ours) print "untracked"
      if (saw) print "saw kernel"
    }'
}

# The same where Slurm uses no cgroups: slurmstepd knows its tasks and what they started. Where no
# slurmstepd of the job is left, there is none; who may not see the first process sees no slurmstepd.
by_slurmd() {
  [ -r /proc/1/comm ] || return
  case $(daemons /proc) in
  *" $1".*) ;;
  *"saw daemons") echo "saw slurmd" && return ;;
  esac
  # A login over ssh has no SLURM_CONF of a module.
  if [ -n "$2" ] && [ -r "$2" ]; then export SLURM_CONF="$2"; fi
  # shellcheck disable=SC2086 # none, or one word
  listed=$(timeout -k 1 5 scontrol listpids "$1" ${SLURMD_NODENAME:-} 2>/dev/null) || return
  printf '%s\n' "$listed" | awk -v job="$1" '
    $1 ~ /^[0-9]+$/ && $1 > 0 && $2 == job && $3 != "extern" { print "task", $1, $3 }
    END { print "saw slurmd" }'
}

# The tasks that are of the job's user, where the node knows that one; those of others make it
# `unmapped`. `stepped`: one of them is of a step that srun began, and not of the batch script, which runs
# on one node alone. An id that a process inherited proves nothing: anybody may export any. `whole` comes last,
# where all searches have reached their end.
found() {
  tasks=$(by_kernel "$1")
  case $tasks in *untracked*) tasks="$tasks
$(by_slurmd "$2" "$4")" ;; esac
  printf '%s\n' "$tasks" | awk -v user="$(number_of "$3")" '
    function real_uid(pid,   file, line, field) {
      file = "/proc/" pid "/status"
      while ((getline line < file) > 0) if (line ~ /^Uid:/) { split(line, field, "\t"); break }
      close(file)
      return field[2]
    }
    $1 == "untracked" || $1 == "unmapped" { is[$1] = 1 }
    $1 == "saw" { saw[$2] = 1 }
    $1 == "task" {
      uid = user == "" ? "" : real_uid($2)
      if (uid == user) { print $2; if ($3 ~ /^[0-9]/) stepped = 1 }
      else if (uid != "") is["unmapped"] = 1
    }
    END {
      if ("unmapped" in is) print "unmapped"
      if (stepped) print "stepped"
      if (("kernel" in saw) && (("slurmd" in saw) || !("untracked" in is))) print "whole"
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

found=$(found "$1" "$2" "${4:-}" "${5:-}")
pids='' whole=''
for word in $found; do
  case $word in
  unmapped | stepped) echo "$word" ;;
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
