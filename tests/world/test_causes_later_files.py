"""Causes in whole files of the list of errors, of which other batches had drawn the rest; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.checks.job.output import find_error_line
from tests.world.case import Case, each
from tests.world.logs import assert_cause, bar
from tests.world.test_causes_drawn import COST, GITHUB

FEATURES = "2017-10-11 14:45:30.510{n}: W tensorflow/core/platform/cpu_feature_guard.cc:45] The TensorFlow library wasn't compiled to use SSE4.{n} instructions, but these are available on your machine and could speed up CPU computations.\n"
FOAM = "In file included from /usr/lib/openfoam/openfoam2012/src/OpenFOAM/lnInclude/UList.H:652,\n                 from icoFoam.C:66:\n/usr/lib/openfoam/openfoam2012/src/OpenFOAM/lnInclude/UListI.H:{n}:1: note: candidate: ‘T& Foam::UList<T>::operator[](Foam::label)’\n"
PARKED = "pthread_cond_wait at /lib64/libpthread.so.0 (unknown line)\nuv_cond_wait at /workspace/srcdir/libuv/src/unix/thread.c:822\nclone at /lib64/libc.so.6 (unknown line)\nunknown function (ip: (nil))\n"

# Seed 4281, the first fifteen of the 79 of causes_more_errors.txt that no batch had, that are there and hold anything.
DRAWN_28 = (
    Case("a-byte-that-is-no-text", GITHUB + "mirand863/cami2_rhizosphere",
         "Extracting sequence lengths... The following command failed to execute:\ncat data/RefSeq_genomic.tar  | gawk 'BEGIN{FS=\" \"} /^>/ {if (seqlen){print seqlen}; next;}END{print seqlen}''utf-8' codec can't decode byte 0xf6"
         " in position 886: invalid start byte\nError code: 0\nOut: \nError: \n", "codec can't decode byte", COST),
    Case("two-lines-of-a-start", GITHUB + "Y-Sui/FiDeLiS", "Starting job on 2 A100 GPUs in the Conda environment\nSave results to:  results/gen_rule_path/RoG-webqsp/RoG/test\n", "", COST),
    Case("a-usage-and-an-exit-that-was-trapped", GITHUB + "mdislam/spark-streaming-twitter-hashtag",
         "Usage: sbt 'run <master> [filter1] [filter2] ... [filter n]'\n\nException: sbt.TrapExitSecurityException thrown from the UncaughtExceptionHandler in thread \"run-main-0\"\n", "TrapExitSecurityException", COST),
    Case("an-evaluation-within-a-training", GITHUB + "JustinSQiu/DeepSeekRL-Extended-Efficient",
         "cpu-bind=MASK - gpu04, task  0  0 [36564]: mask 0x300000003000000 set\n" + bar("Training Progress: ", 1000, *range(290, 301), rate="137.93s/it") + "\n\n" + bar("Evaluating on test set: ", 74, *range(75), rate="5.93s/it").replace("\r", "\x1b[A\r")
         + "\n" + bar("Training Progress: ", 1000, *range(301, 308), rate="23.97s/it"), "", COST),
    Case("a-choice-of-files", GITHUB + "3neko22/viper", "SELECTED CONFIG FILES: config_codellama_q\n", "", COST),
    Case("a-done-too-many", GITHUB + "matthewdelorenzo/csce689",
         "/var/spool/slurmdspool/job01929/slurm_script: line 16: syntax error near unexpected token `done'\n/var/spool/slurmdspool/job01929/slurm_script: line 16: `done'\n", "syntax error near", COST),
    Case("an-interrupt-while-a-module-is-read", GITHUB + "IBM/aihwkit-lightning",
         'Traceback (most recent call last):\n  File "/e/bin/pytest", line 5, in <module>\n    from pytest import console_main\n  File "<frozen importlib._bootstrap>", line 1027, in _find_and_load\n  File "<frozen importlib._bootstrap_external>", line'
         " 1074, in get_data\nKeyboardInterrupt\nmake: *** [Makefile:25: pytest] Interrupt\n", "KeyboardInterrupt", COST),
    Case("what-a-processor-could-do", GITHUB + "CMWENLIU/sptrte-CNN-text-multi-class-classification", "nohup: ignoring input\n" + FEATURES.format(n=1) + FEATURES.format(n=2), "", COST),
    Case("an-error-told-as-information", GITHUB + "etweisberg/latchproteinengineering", "2022-06-23 14:56:26,989 [MainThread  ] [INFO ]  ERROR: fetching/parsing structure from input/4rc7.pdb\n\n", "fetching/parsing structure", COST),
    Case("advice-of-a-module", GITHUB + "NilsBochow/image_reconstruction",
         87 * "#" + "\n### conda added to PATH. Use 'source activate' rather than 'conda activate'.        ###\n### Run 'conda init' if prompted *only* after reading the guides:                   ###\n"
         "###   https://docs.anaconda.com/anaconda/user-guide/faq/#installing-anaconda        ###\n" + 87 * "#" + "\n", "", COST),
    Case("devices-of-xla", GITHUB + "Jong-Min-Moon/private_conti_test",
         "To enable them in other operations, rebuild TensorFlow with the appropriate compiler flags.\n2022-10-05 03:25:09.214400: I tensorflow/core/platform/profile_utils/cpu_utils.cc:104] CPU Frequency: 2194870000 Hz\n"
         "2022-10-05 03:25:09.219170: I tensorflow/compiler/xla/service/service.cc:176]   StreamExecutor device (0): Host, Default Version\n", "", COST),
    Case("a-notebook-that-is-served", GITHUB + "hyang0129/rit_rc_scripts",
         "[I 14:10:52.882 NotebookApp] Serving notebooks from local directory: /home/a/scripts\n[I 14:10:52.883 NotebookApp] Use Control-C to stop this server and shut down all kernels (twice to skip confirmation).\n"
         "[C 14:10:52.886 NotebookApp] \n    \n    To access the notebook, open this file in a browser:\n        file:///home/a/.local/share/jupyter/runtime/nbserver-1-open.html\n", "", COST),
    Case("an-operator-that-a-field-lacks", GITHUB + "divyaprakash-iitd/ciliaparticlefoam",
         "In file included from icoFoam.C:116:\ninterpolateForces.H: In function ‘int main(int, char**)’:\ninterpolateForces.H:64:6: error: no match for ‘operator[]’ (operand types are ‘Foam::volVectorField’ and ‘std::set<int>::const_iterator’)\n"
         "   64 |     F[icell][0] = F[*icell][0] + pf[0]*diracdelta(ddpoint,hh);\n      |      ^\n" + "".join(FOAM.format(n=n) for n in range(240, 260))
         + "make: *** [/usr/lib/openfoam/openfoam2012/wmake/rules/General/transform:35: Make/linux64GccDPInt32Opt/icoFoam.o] Error 1\n", "no match for", COST),
    Case("a-cancelled-job-below-a-prologue-that-failed", GITHUB + "felipelewyee/DoNOF.jl",
         'Traceback (most recent call last):\n  File "/software/eb2024/easybuild/extra/bin/software_subdir.py", line 55, in <module>\n    distro = platform.linux_distribution()[0].replace(" ", "").lower()\n             ^^^^^^^^^\nAttributeError: module \'platform\' has no'
         " attribute 'linux_distribution'\ncp: cannot stat 'test.jld2': No such file or directory\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** STEP 159741.0 ON na18 CANCELLED AT 2025-05-23T16:31:41 ***\n"
         "slurmstepd: error: *** JOB 159741 ON na18 CANCELLED AT 2025-05-23T16:31:41 ***\n\n[1010324] signal 15: Terminated\nin expression starting at /scratch/a/159741/test.jl:73\n" + 40 * PARKED + "task_done_hook at ./task.jl:694\n",
         # Written down was "cancelled", and counts as wrong: nothing in between tells a program that went on.
         "linux_distribution", COST),
    Case("a-step-that-never-began", GITHUB + "GiuliaLanzillotta/mammoth",
         "srun: Job 47309298 step creation temporarily disabled, retrying (Requested nodes are busy)\nslurmstepd: error: *** JOB 47309298 ON eu-g3-052 CANCELLED AT 2024-02-05T19:24:51 ***\n", "cancelled", COST),
)  # fmt: skip

LIBRARY = "gamemodeauto: dlopen failed - libgamemode.so: cannot open shared object file: No such file or directory\n"
DUMP = '[src/handlers/pipelines.rs:124] &my_data = MyDumper {{\n    ctr: {n},\n    create_infos: [\n        (\n            ShaderData {{\n                name: "main",\n                bool: false,\n            }},\n            0x7f5930189f90,\n        ),\n    ],\n}}\n'
RATIO = "/w/copac/membAssignment.py:133: RuntimeWarning: invalid value encountered in double_scalars\n  ratio = (Ngals+Nbkg)/( np.sum(Ngals*Pgals) + np.sum(Nbkg*Pbkg) )\n/w/astropy/table/column.py:954: RuntimeWarning: invalid value encountered in less\n  return getattr(self.data, op)(other)\n"

# The next fifteen of the 79.
DRAWN_29 = (
    Case("a-field-that-has-no-effect", GITHUB + "Wenxuan52/SafeScoreMatching",
         "/e/pydantic/_internal/_generate_schema.py:2249: UnsupportedFieldAttributeWarning: The 'repr' attribute with value False was provided to the `Field()` function, which has no effect in the context it was used.\n  warnings.warn(\n"
         + bar("", 1000, 0, 157, 316, 475, 952, 1000) + "\n", "", COST),
    Case("a-validation-of-faces", GITHUB + "NiclasDev63/Project-Lab-MAI",
         "Lmod: loading gcc 8.5.0 \nLmod: loading python 3.10.10 \nwandb: Using wandb-core as the SDK backend.\n/w/adaface_eval.py:29: FutureWarning: You are using `torch.load` with `weights_only=False` (the current default value), which uses the default"
         " pickle module implicitly. It is possible to construct malicious pickle data which will execute arbitrary code during unpickling.\n  criterion_state_dict = torch.load(\"./checkpoint_epoch_1.pth\")[\"criterion_state_dict\"]\n"
         + bar("Validation: ", 14, *range(15), rate="19.72s/it, val_loss=0.878"), "", COST),
    Case("an-overlay-that-is-not-there", GITHUB + "Shark-NLP/DiffuSeq",
         "FATAL:   while loading overlay images: failed to open overlay image /scratch/a/overlay_img2: failed to retrieve path for /scratch/a/overlay_img2: lstat /scratch/a/overlay_img2: no such file or directory\n", "overlay image", COST),
    Case("a-library-that-a-game-goes-on-without", GITHUB + "cheako/vk-compute-shader-testing",
         12 * LIBRARY + "fsync: up and running.\nwine: RLIMIT_NICE is <= 20, unable to use setpriority safely\n" + 12 * LIBRARY + "".join(DUMP.format(n=n) for n in (150, 151, 152)) + LIBRARY
         + "pid 3095603 != 3095602, skipping destruction (fork without exec?)\n", "", COST),
    Case("a-script-that-greets", GITHUB + "aishikchakraborty/LexSub", "++ date +%Y_%m_%d_%H_%M\n++ hostname\n+ echo 2019_03_11_11_22 - launcher_basic.sh - 12485074 - gra826 - /tmp/\n+ echo Hello World\n", "", COST),
    Case("a-cgroup-that-has-no-path", GITHUB + "benfinkelshtein/CoGNN",
         "/e/torch_geometric/graphgym/config.py:19: UserWarning: Could not define global config object. Please install 'yacs' via 'pip install yacs' in order to use GraphGym\n  warnings.warn(\"Could not define global config object. Please install \"\n"
         "slurmstepd: error: _cgroup_procs_check: failed on path (null)/cgroup.procs: No such file or directory\nslurmstepd: error: Cannot write to cgroup.procs for (null)\nslurmstepd: error: Unable to move pid 47694 to init root cgroup (null)\n",
         "", COST),
    Case("a-stack-trace-without-a-reason", GITHUB + "sam1016yu/janus",
         4 * "  Attemptting to print stack trace\n  *** begin stack trace ***\n" + "".join(f"{n:<5d}./build/deptran_server(+0x2269{n}d) [0x55d2d12669{n}d]\n" for n in range(10, 27))
         + "17   /lib/x86_64-linux-gnu/libpthread.so.0(+0x76db) [0x7f6997b2a6db]\n  ***  end stack trace  ***\n", "stack trace", COST),
    Case("where-packages-are", GITHUB + "UMMSMcCarthy/Kidney_Grant_Cluster_Code",
         "python3 3.5.0 is located under /share/pkg/python3/3.5.0\npython3/3.5.0_packages/numpy 1.18.5 is located under /share/pkg/python3/3.5.0_packages/numpy/1.18.5\n", "", COST),
    Case("one-line-of-a-processor", GITHUB + "CMWENLIU/self-taught-text-embeding",
         "2018-03-12 22:58:37.019208: I tensorflow/core/platform/cpu_feature_guard.cc:137] Your CPU supports instructions that this TensorFlow binary was not compiled to use: SSE4.1 SSE4.2 AVX\n", "", COST),
    Case("a-backend-that-is-defined-twice", GITHUB + "marcobarrasso1/Speech-To-Text",
         "/w/train.py:40: FutureWarning: You are using `torch.load` with `weights_only=False` (the current default value), which uses the default pickle module implicitly.\n  state_dict = torch.load('weights/model_weights_iter_100.pth', map_location=device)\n"
         "/e/networkx/utils/backends.py:135: RuntimeWarning: networkx backend defined more than once: nx-loopback\n  backends.update(_get_backends(\"networkx.backends\"))\n", "", COST),
    Case("an-environment-that-is-not-activated", GITHUB + "Steven-cpp/AI6121_Image_Translation",
         "/var/spool/slurmd/job64385/slurm_script: line 12: activate: No such file or directory\n/e/torch/nn/functional.py:3734: UserWarning: nn.functional.upsample is deprecated. Use nn.functional.interpolate instead.\n"
         '  warnings.warn("nn.functional.upsample is deprecated. Use nn.functional.interpolate instead.")\n', "activate: No such file", COST),
    Case("a-command-with-a-capital-letter", GITHUB + "rmorsomme/use-RDSIR", "/var/spool/slurmd/job18256063/slurm_script: line 8: Export: command not found\n", "Export: command not found", COST),
    Case("a-script-that-ends-too-early", GITHUB + "Roy-Kid/ADMP", '  File "/home/a/test_jax.py", line 4\n    \n    ^\nSyntaxError: unexpected EOF while parsing\n', "SyntaxError", COST),
    Case("values-that-are-no-numbers-in-warnings", GITHUB + "estevesjh/ccopa", "nohup: ignoring input\n" + 9 * RATIO, "", COST),
    Case("a-template-that-was-not-compiled", GITHUB + "FelicityE/BBNN",
         "build/main.o: In function `main':\nmain.cpp:(.text.startup+0x1267): undefined reference to `void print<unsigned int>(std::vector<unsigned int>)'\nbuild/ann.o: In function `testSNN(std::vector<double> const&)':\n"
         "ann.cpp:(.text+0x4ec5): undefined reference to `bool match<double>(std::vector<double>, std::vector<double>)'\ncollect2: error: ld returned 1 exit status\nmake: *** [makefile:8: build/main] Error 1\n", "undefined reference", COST),
)  # fmt: skip


@each(*DRAWN_28, *DRAWN_29)
def test_the_cause_in_a_later_file(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)


@each(*DRAWN_28, *DRAWN_29)
def test_the_line_that_is_told_of_a_job(case: Case) -> None:
    line = find_error_line(case.form)
    assert case.right.lower() in line.lower()
    assert bool(case.right) == bool(line)
