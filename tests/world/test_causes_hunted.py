"""Causes in logs that somebody looked for who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, FRAME, STEPS

SCRIPT = "/var/spool/slurmd/job4711/slurm_script"
GLIBC = "glibc, malloc/malloc.c and debug/fortify_fail.c"
HUNTED_1 = (
    Case("no-such-program", "bash 5, execute_cmd.c", f"{SCRIPT}: line 12: torchrun: command not found\n", "command not found", COST),
    Case("no-such-python-file", "CPython, Modules/main.c",
         "python: can't open file '/home/ann/trian.py': [Errno 2] No such file or directory\n", "can't open file", COST),
    Case("a-library-that-is-not-there", "glibc, elf/dl-load.c",
         "python3: error while loading shared libraries: libpython3.11.so.1.0: cannot open shared object file: No such file or directory\n",
         "shared librar", COST),
    Case("an-argument-that-is-not-known", "CPython, Lib/argparse.py",
         "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rte 0.1\n", "unrecognized arguments", COST),
    Case("an-instruction-of-another-cpu", "bash 5, jobs.c",
         STEPS + f"{SCRIPT}: line 8: 99231 Illegal instruction     (core dumped) python train.py\n", "llegal instruction", COST),
    Case("memory-freed-twice", GLIBC, STEPS + "double free or corruption (!prev)\nAborted (core dumped)\n", "double free", COST),
    Case("a-smashed-stack", GLIBC, STEPS + "*** stack smashing detected ***: terminated\nAborted (core dumped)\n", "stack smashing", COST),
    Case("a-container-that-was-not-made", "Apptainer 1.3, internal/pkg/runtime/engine",
         "FATAL:   container creation failed: mount hook function failure: mount /scratch->/scratch error: while mounting /scratch: no such file\n",
         "container", COST),
    Case("no-driver-for-docker", "Docker 27, daemon",
         'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n', "device driver", COST),
    Case("a-host-that-ssh-does-not-reach", "DeepSpeed, launcher/multinode_runner.py with pdsh",
         "worker-2: ssh: connect to host worker-2 port 22: Connection refused\npdsh@worker-0: worker-2: ssh exited with exit code 255\n",
         "worker-2", COST),
    Case("uploads-that-are-tried-again", "wandb 0.19, sdk/internal/file_pusher.py",
         STEPS + "wandb: ERROR Error while calling W&B API: internal database error (<Response [500]>)\nwandb: Network error (HTTPError), entering"
         " retry loop.\n" + STEPS.replace("step 1", "step 2"), "", COST),
    Case("a-download-that-is-tried-again", "huggingface_hub 0.30, file_download.py",
         "Error while downloading from https://cdn/model.safetensors: HTTPSConnectionPool(host='cdn', port=443): Read timed out.\nTrying to resume"
         " download...\n" + STEPS, "", COST),
    Case("loguru-catches-it", "loguru 0.7, _logger.py, catch()",
         STEPS + "2026-01-02 03:04:05.678 | ERROR    | __main__:<module>:31 - An error has been caught in function '<module>', process 'MainProcess'"
         " (77), thread 'MainThread' (139):\nTraceback (most recent call last):\n\n> File \"/w/train.py\", line 31, in <module>\n    main()\n    └"
         " <function main at 0x7f>\n\n  File \"/w/train.py\", line 12, in main\n    x = batch['labels']\n        └ {'input_ids': tensor([1])}\n\n"
         "KeyError: 'labels'\n", "KeyError: 'labels'", COST),
    Case("a-command-of-accelerate-echoes", "accelerate 1.2, commands/launch.py",
         FRAME + "ValueError: num_samples should be a positive integer value, but got num_samples=0\nTraceback (most recent call last):\n  File"
         ' "/e/bin/accelerate", line 8, in <module>\n    sys.exit(main())\nsubprocess.CalledProcessError: Command \'[\'python\', \'train.py\']\''
         " returned non-zero exit status 1.\n", "num_samples=0", COST),
    Case("an-import-of-half-a-module", "CPython, Python/ceval.c",
         'Traceback (most recent call last):\n  File "/w/train.py", line 3, in <module>\n    import flash_attn_2_cuda\nImportError: /v/flash_attn_2_cuda.so:'
         " undefined symbol: _ZN3c104cuda9SetDeviceEi\n", "undefined symbol", COST),
)  # fmt: skip

HUNTED_2 = (
    Case("dash-finds-no-program", "dash 0.5, exec.c", f"{SCRIPT}: 12: torchrun: not found\n", "torchrun: not found", COST),
    Case("env-finds-no-program", "GNU coreutils 9, env.c", "/usr/bin/env: ‘python3.12’: No such file or directory\n", "python3.12", COST),
    Case("a-script-that-may-not-run", "bash 5, execute_cmd.c", f"{SCRIPT}: line 9: ./train.sh: Permission denied\n", "Permission denied", COST),
    Case("a-folder-that-is-not-there", "Slurm, src/slurmd/slurmstepd/mgr.c",
         "slurmstepd: error: couldn't chdir to `/root/burst': No such file or directory: going to /tmp instead\n" + STEPS, "", COST),
    Case("a-module-that-is-not-there", "Lmod 8, src/Master.lua",
         'Lmod has detected the following error:  The following module(s) are unknown: "cuda/12.9"\n', "module(s) are unknown", COST),
    Case("an-environment-that-is-not-there", "conda 24, conda/exceptions.py",
         "EnvironmentNameNotFound: Could not find conda environment: llm\nYou can list all discoverable environments with `conda info --envs`.\n",
         "Could not find conda environment", COST),
    Case("python-without-that-module", "CPython, Lib/runpy.py", "/usr/bin/python3: No module named torch.distributed.run\n", "No module named", COST),
    Case("a-quota-in-a-traceback", GLIBC, STEPS + FRAME + "OSError: [Errno 122] Disk quota exceeded: '/home/ann/x.pt'\n", "disk", COST),
    Case("too-few-slots", "Open MPI 4, orte/mca/rmaps/base/help-orte-rmaps-base.txt",
         "There are not enough slots available in the system to satisfy the 16\nslots that were requested by the application:\n\n  python\n",
         "not enough slots", COST),
    Case("srun-gets-no-nodes", "Slurm, src/srun/libsrun/allocate.c",
         "srun: error: Unable to allocate resources: Requested node configuration is not available\n", "Unable to allocate", COST),
    Case("the-next-link-is-refused", "Slurm, src/sbatch/sbatch.c",
         STEPS + "Training done, submitting the next part\nsbatch: error: Batch job submission failed: Invalid account or account/partition"
         " combination specified\n", "Batch job submission failed", COST),
    Case("a-script-with-a-slip", "CPython, Python/pythonrun.c",
         '  File "/w/train.py", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n', "SyntaxError: invalid syntax", COST),
    Case("r-halts", "R 4, src/main/errors.c", "Error in eval(expr, p) : object 'x' not found\nCalls: fit -> eval\nExecution halted\n", "object 'x' not found", COST),
    Case("errors-that-are-numbers", "Kaldi and ESPnet", "".join(f"step {n} loss 1.9 error_rate: 0.12 0 errors, 0 warnings\n" for n in range(10, 20)), "", COST),
    Case("an-image-that-is-not-there", "NVIDIA/pyxis, pyxis_slurmstepd.c",
         "slurmstepd: error: pyxis: child 99 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis:"
         " [ERROR] URL https://registry/v2/llm/manifests/latest returned error code: 401 Unauthorized\n", "import docker image", COST),
)  # fmt: skip
CONTROLS = (
    Case("a-profile-without-modules", "bash 5, /etc/profile.d", "/etc/profile.d/x.sh: line 3: module: command not found\n" + STEPS, "", COST),
    Case("a-profile-and-then-an-exception", "bash 5, /etc/profile.d", "x.sh: line 3: module: command not found\n" + FRAME + "KeyError: 'a'\n",
         "KeyError: 'a'", COST),
    Case("words-about-arguments", "a training's own log", "INFO error: argument parsing took 3 s\nFound corrupted sample 7, skipped\n" + STEPS, "", COST),
    Case("a-slip-in-a-module", "CPython, Lib/traceback.py", FRAME + '  File "/w/data.py", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n',
         "Python exception (SyntaxError: invalid syntax)", COST),
    Case("a-place-that-may-not-be-read", "find(1)", "find: ‘/proc/1/cwd’: Permission denied\n" + STEPS, "", COST),
    Case("a-file-that-was-not-found", "a training's own log", "checkpoint: not found\n" + STEPS, "", COST),
    Case("a-package-that-is-optional", "apex", "apex not found, using torch.optim\n" + STEPS, "", COST),
)  # fmt: skip


@each(*HUNTED_1, *HUNTED_2, *CONTROLS)
def test_the_cause_in_a_log_that_was_hunted(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
