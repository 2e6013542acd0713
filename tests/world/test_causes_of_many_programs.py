"""Causes in logs of threads about many programs; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, FRAME, GITHUB

ENGINE = "(EngineCore_DP0 pid=185173) "
SERVER = "server-on-arc  | ERROR 11-08 11:01:30 [core.py:502] "

# Seed 4252, from 61 threads: the first fifteen that no test has and whose excerpt is not cut before its end.
DRAWN_23 = (
    Case("a-stack-that-was-smashed", GITHUB + "JuliaLang/julia/issues/10085",
         "*** stack smashing detected ***: /usr/lib64/R/bin/exec/R terminated\n======= Backtrace: =========\n" + "".join(
             f"/usr/lib64/R/lib/libR.so(Rf_eval+0x5{n})[0x7f8802b3ec{n}]\n" for n in range(10, 30)) + "/usr/lib/libc.so.6(__libc_start_main+0xf0)[0x7f88024d0040]\n======= Memory map: ========\n"
         "00400000-00401000 r-xp 00000000 08:01 13240744                           /usr/lib/R/bin/exec/R\n", "stack smashing", COST),
    Case("a-loop-of-lammps", GITHUB + "omoultosEthTuDelft/OCTP/issues/2",
         "Total # of neighbors = 3289152\nAve neighs/atom = 272.281\nNeighbor list builds = 26346\nDangerous builds = 0\n\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 2124 RUNNING AT q16copt057.crc.nd.edu\n"
         "=   EXIT CODE: 11\n=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n"
         "This typically refers to a problem with your application.\nPlease see the FAQ page for debugging suggestions\n", "segmentation fault", COST),
    Case("a-worker-of-an-engine-dies", GITHUB + "intel/llm-scaler/issues/154",
         'server-on-arc  | INFO:     127.0.0.1:48802 - "GET /health HTTP/1.1" 200 OK\nserver-on-arc  | ERROR 11-08 11:01:29 [multiproc_executor.py:135] Worker proc VllmWorker-3 died unexpectedly, shutting down executor.\n'
         + SERVER + "EngineCore encountered a fatal error.\n" + SERVER + "Traceback (most recent call last):\n" + SERVER + '  File "/e/vllm/v1/engine/core.py", line 493, in run_engine_core\n' + SERVER
         + "    engine_core.run_busy_loop()\n" + SERVER + '  File "/e/vllm/v1/engine/core.py", line 518, in run_busy_loop\n' + SERVER + "    self._process_input_queue()\n", "VllmWorker-3 died", COST),
    Case("a-network-of-neurons-aborts", GITHUB + "Hjorthmedh/Snudda/issues/174",
         "Rank 0 [Thu Aug  5 14:07:06 2021] [c0-0c0s3n0] application called MPI_Abort(MPI_COMM_WORLD, 0) - process 0\nsrun: error: nid00012: task 0: Aborted (core dumped)\n"
         "srun: launch/slurm: _step_signal: Terminating StepId=32994319.0\nslurmstepd: error: *** STEP 32994319.0 ON nid00012 CANCELLED AT 2021-08-05T14:07:47 ***\nsrun: error: nid00369: tasks 460-464: Terminated\n"
         "srun: error: nid00314: tasks 210-214: Terminated\n", "MPI_Abort", COST),
    Case("a-first-observed-failure-alone", GITHUB + "instructlab/instructlab/issues/2666",
         'Traceback (most recent call last):\n  File "/e/torch/distributed/launcher/api.py", line 264, in launch_agent\n    raise ChildFailedError(\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n'
         + "=" * 60 + "\n/e/instructlab/training/main_ds.py FAILED\n" + "-" * 60 + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2024-12-08_14:10:43\n"
         "  host      : gpu-l40-vpc\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 2134572)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n" + "=" * 60
         + "\nTraining subprocess has not exited yet. Sending SIGTERM.\nWaiting for process to exit, 60s...\n", "rank 0", COST),
    Case("one-line-of-an-import", GITHUB + "mesunhlf/UPC-tf/issues/7", "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n", "libcudart.so.11.0", COST),
    Case("a-program-within-a-program-does-not-start", GITHUB + "FXIhub/condor/issues/3",
         "INFO:simulate:Simulation with spsim started. (PROGSTAT)\n/home/www/bin/spsim: error while loading shared libraries: libcudart.so.6.5: cannot open shared object file: No such file or directory\n"
         'Traceback (most recent call last):\n  File "/w/simulate.py", line 119, in <module>\n    conf = read_configuration_spsim("./spsim.confout")\n  File "/w/simulate.py", line 19, in read_configuration_spsim\n'
         "    c = open(filename,\"r\")\nIOError: [Errno 2] No such file or directory: './spsim.confout'\n", "libcudart.so.6.5", COST),
    Case("a-table-of-an-epoch-is-the-last", GITHUB + "rstrudel/nmprepr/issues/1",
         "time/epoch (s)                 32.501863999999486\ntime/total (s)                 101.7254610999997\nEpoch                          2\n-----------------------------  --------------------\n", "", COST),
    Case("a-process-that-nobody-knows-about", GITHUB + "PacificBiosciences/HiFi-16S-workflow/issues/88",
         "executor >  slurm (14)\n[5f/02fc3c] pb16S:dada2_denoise (1) [  0%] 0 of 1\nERROR ~ Error executing process > 'pb16S:dada2_denoise (1)'\n\nCaused by:\n  Process `pb16S:dada2_denoise (1)` terminated for an unknown"
         " reason -- Likely it has been terminated by the external system\n\n\nTip: view the complete command output by changing to the process work dir and entering the command `cat .command.out`\n\n"
         " -- Check '.nextflow.log' file for details\n", "Error executing process", COST),
    Case("an-import-within-ray-and-hydra", GITHUB + "vllm-project/vllm/issues/52300",
         FRAME + '  File "/e/vllm/platforms/cuda.py", line 21, in <module>\n    import vllm._C  # noqa\n    ^^^^^^^^^^^^^^\nImportError: libcudart.so.13: cannot open shared object file: No such file or directory\n\n'
         "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n(TaskRunnerV1 pid=3904868) Unhandled error\n", "libcudart.so.13", COST),
    Case("a-process-that-is-tried-again", GITHUB + "nextflow-io/nextflow/issues/361",
         "May-31 19:18:12.073 [Actor Thread 9] INFO  nextflow.Session - [c2/2abdaf] Submitted process > order_by_gc (1)\nMay-31 19:23:16.031 [Thread-3] DEBUG n.processor.TaskPollingMonitor - !! executor slurm > tasks to be"
         " completed: 2 -- first: TaskHandler[jobId: 2; id: 4; name: order_by_gc (1); status: RUNNING; exit: -; exited: -; ]\nMay-31 19:23:26.058 [Thread-3] WARN  nextflow.processor.TaskProcessor - Process `order_by_gc (1)`"
         " terminated with an error exit status (125) -- Execution is retried (1)\nMay-31 19:23:26.077 [pool-2-thread-1] DEBUG nextflow.executor.GridTaskHandler - Launching process > order_by_gc (1) -- work folder: /mnt/w\n",
         "", COST),
    Case("a-library-of-one-partition", GITHUB + "jade-hpc-gpu/jade-hpc-gpu.github.io/issues/91",
         FRAME + "ImportError: libcudnn.so.7: cannot open shared object file: No such file or directory\n\n\nFailed to load the native TensorFlow runtime.\n\nSee https://www.tensorflow.org/install/install_sources#common_installation_problems\n\n"
         "for some common reasons and solutions.  Include the entire stack trace\nabove this error message when asking for help.\n", "libcudnn.so.7", COST),
    Case("a-launcher-that-only-says-which-command", GITHUB + "Haochen-Wang409/U2PL/issues/62",
         "set random seed to 2\n" + FRAME + '  File "/e/torch/distributed/launch.py", line 301, in sigkill_handler\n    raise subprocess.CalledProcessError(returncode=last_return_code, cmd=cmd)\n'
         "subprocess.CalledProcessError: Command '['/e/bin/python', '-u', '../../../../train_semi.py', '--local_rank=1', '--config=config.yaml', '--seed', '2', '--port', '21350']' returned non-zero exit status 1.\n",
         "CalledProcessError", COST),
    Case("a-worker-s-error-through-an-engine", GITHUB + "vllm-project/vllm/issues/29636",
         ENGINE + "Traceback (most recent call last):\n" + ENGINE + '  File "/e/vllm/v1/executor/multiproc_executor.py", line 361, in collective_rpc\n' + ENGINE + "    return aggregate(get_response())\n" + ENGINE
         + '  File "/e/vllm/v1/executor/multiproc_executor.py", line 344, in get_response\n' + ENGINE + "    raise RuntimeError(\n" + ENGINE
         + "RuntimeError: Worker failed with error 'no kernel for this head size', please check the stack trace above for the root cause\n", "Worker failed with error", COST),
    Case("a-docking-dies-below-sbatch", GITHUB + "DeltaGroupNJUPT/Vina-GPU/issues/31",
         "Reading input ... done.\nSetting up the scoring function ... done.\nAnalyzing the binding site ... done.\nUsing random seed: 319215121\n/var/spool/slurm/d/job75896/slurm_script: line 10: 1763903 Segmentation fault"
         "      (core dumped) Vina-GPU --receptor receptor/4no7_prot.pdbqt --out output/PV-0000_1_T1.pdbqt_out.pdbqt --center_x -8.654 --thread 100\n", "segmentation fault", COST),
)  # fmt: skip

# Twelve that the 83 of causes_files.txt had left, and the next three of the 61.
DRAWN_24 = (
    Case("memory-in-a-replica", GITHUB + "gtseligas/lcn-llama",
         "INFO:liger_kernel.transformers.monkey_patch:Applying Liger kernels for model type: llama with kwargs: {}\n" + FRAME + '  File "/e/torch/_utils.py", line 715, in reraise\n    raise exception\n'
         "torch.OutOfMemoryError: Caught OutOfMemoryError in replica 0 on device 0.\nOriginal Traceback (most recent call last):\n  File \"/e/torch/nn/modules/linear.py\", line 125, in forward\n"
         "    return F.linear(input, self.weight, self.bias)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of"
         " 63.42 GiB of which 1.20 GiB is free.\n\n\n\r  0%|          | 0/1000 [00:29<?, ?it/s]\n", "CUDA out of memory", COST),
    Case("a-link-that-is-there-already", GITHUB + "xwa9860/new_beau", "ln: creating symbolic link `TAPE10.INP': File exists\n" + 40 * "ORIGEN2 V2.2 (5-4-2002) Execution Completed\n", "", COST),
    Case("jobs-that-are-submitted", GITHUB + "GraphFramEx/graphframex", "".join(f"Submitted batch job 237650{n}\n" for n in range(50, 87)), "", COST),
    Case("a-python-that-is-not-there", GITHUB + "bi-altgg/AFAI_vs_Haldane", "[prun] Error: Unable to access executable -> python3\n", "Unable to access executable", COST),
    Case("a-workflow-says-bye", GITHUB + "mckfarm/snakemake_16S",
         "\nNEW SNAKEMAKE EXECUTION :)\nJob Details\nJob ID: 9960064\n\n[Tue May  9 11:05:04 2023]\nrule tree:\n    input: qiime_outputs/merged/rep_seqs_dada2.qza\n    jobid: 7\n\n[Tue May  9 11:28:24 2023]\nFinished job 0.\n"
         "6 of 6 steps (100%) done\nComplete log: .snakemake/log/2023-05-09T101635.664558.snakemake.log\n\nENDING SNAKEMAKE EXECUTION\nBye-bye :)\n\n", "", COST),
    Case("a-run-was-terminated-and-the-job-is-done", GITHUB + "ebkera/Run_files",
         "     Program PWSCF v.5.4.0 starts on 28Feb2020 at  6:47:21 \n\n     occupation numbers \n     1.0000   1.0000   1.0000   0.9951   0.0000\n \n     PWSCF        :    25.86s CPU        27.48s WALL\n\n \n"
         "   This run was terminated on:   6:47:49  28Feb2020            \n\n=" + "-" * 78 + "=\n   JOB DONE.\n=" + "-" * 78 + "=\n", "", COST),
    Case("a-bar-without-a-total-is-cancelled", GITHUB + "NigelLu/Deformable-DETR",
         "\n" + "".join(f"\r{n}it [35:{n % 60:02d},  4.31s/it]" for n in range(29900, 29949)) + "slurmstepd: error: *** JOB 25883692 ON gr015 CANCELLED AT 2022-10-13T04:10:12 ***\n", "cancelled", COST),
    Case("a-script-says-done-below-its-memory", GITHUB + "dvsth/ie-nlp-cluster",
         "gpu-compute3\nenv\nSome weights of the model checkpoint at sentence-transformers/bert-base-nli-mean-tokens were not used when initializing BertModel: ['classifier.bias', 'classifier.weight']\n" + FRAME
         + "RuntimeError: CUDA out of memory. Tried to allocate 2.93 GiB (GPU 0; 11.17 GiB total capacity; 5.54 GiB already allocated)\n\nreal\t0m56.895s\nuser\t0m11.272s\nsys\t0m6.233s\ndone\n", "CUDA out of memory", COST),
    Case("a-library-of-types", GITHUB + "jshe2304/prop-pred", FRAME + '  File "/e/torch/serialization.py", line 18, in <module>\n    from typing_extensions import TypeAlias\nModuleNotFoundError: No module named \'typing_extensions\'\n',
         "No module named 'typing_extensions'", COST),
    Case("simulations-that-are-done", GITHUB + "gyftdresaw/simulation_framework", "submitting l2d_const.py\nsubmitting l2d_init.py\nstarting simulation\nsimulation done\nstarting simulation\nsimulation done\n", "", COST),
    Case("errors-of-a-validation-in-percent", GITHUB + "diegoroman17/SCAE_methodology",
         "load data\n... loading data\n... building the model\n" + "".join(f"epoch {n}, minibatch 120/120, validation error 5.716667 %\n" for n in range(300, 332))
         + "Optimization complete with best validation score of 5.666667 %, on iteration 36960, with test performance 5.666667 %\nThe training code for file  ran for 330.08m\n", "", COST),
    Case("a-pool-that-grows", GITHUB + "YuJiang01/n2nnmn",
         "I tensorflow/stream_executor/dso_loader.cc:135] successfully opened CUDA library libcuda.so.1 locally\n" + "".join(
             f"I tensorflow/core/common_runtime/gpu/pool_allocator.cc:247] PoolAllocator: After 3818498{n} get requests, put_count=381849785 evicted_count=764000 eviction_rate=0.00200079 and unsatisfied allocation rate=0.002\n"
             for n in range(10, 40)) + "I tensorflow/core/common_runtime/gpu/pool_allocator.cc:259] Raising pool_size_limit_ from 4385 to 4823\n", "", COST),
    Case("a-compiler-whose-stack-is-corrupt", GITHUB + "lfortran/lfortran/issues/1711",
         "Internal Compiler Error: Unhandled exception\n" + 9 * "The stack address was not found in any shared library or the main program, the stack is probably corrupted. Aborting.\n", "Internal Compiler Error", COST),
    Case("a-sleep-is-killed", GITHUB + "PaddlePaddle/Paddle/issues/7515", "upload model to hdfs\nupload_model.sh: line 51:  2226 Killed                  sleep 30\n", "host out of memory", COST),
    Case("assertions-of-a-device-and-nothing-else", GITHUB + "WENGSYX/CMIVQA_Baseline/issues/16",
         "".join(f"/opt/conda/conda-bld/pytorch_1695392067780/work/aten/src/ATen/native/cuda/Loss.cu:94: operator(): block: [1,0,0], thread: [{n},0,0] Assertion `input_val >= zero && input_val <= one` failed.\n"
                 for n in range(53, 70)), "input_val >= zero", COST),
)  # fmt: skip

# The next fifteen of the 61.
DRAWN_25 = (
    Case("a-limit-of-memory-at-some-point", GITHUB + "nextflow-io/nextflow/issues/1285", "combining 40 files\nslurmstepd: error: Exceeded step memory limit at some point.\n",
         # Written down was the memory limit, and counts as wrong: Slurm says the same where only the page cache was full.
         "", COST),
    Case("an-alignment-that-nobody-knows-about", GITHUB + "nf-core/atacseq/issues/339",
         "ERROR ~ Error executing process > 'NFCORE_ATACSEQ:ATACSEQ:FASTQ_FASTQC (OSMOTIC_REP1)'\n\nCaused by:\n  Process `NFCORE_ATACSEQ:ATACSEQ:FASTQ_FASTQC (OSMOTIC_REP1)` terminated for an unknown reason -- Likely it has been"
         " terminated by the external system\n\nCommand executed:\n\n  fastqc --quiet --threads 6 OSMOTIC_REP1.gz\n\nCommand exit status:\n  -\n\nCommand output:\n  (empty)\n\nWork dir:\n  /w/4f/1\n\n"
         "Tip: you can replicate the issue by changing to the process work dir and entering the command `bash .command.run`\n", "Error executing process", COST),
    Case("a-module-of-an-old-python", GITHUB + "yungyuc/scimport/issues/20",
         'Traceback (most recent call last):\n  File "./go", line 29, in <module>\n    import cueuler\n  File "/w/cueuler.py", line 23, in <module>\n    from solvcon.gendata import AttributeDict\n'
         "ImportError: No module named solvcon.gendata\n", "No module named solvcon.gendata", COST),
    Case("an-assertion-on-a-gpu-that-stops-nothing", GITHUB + "rwth-i6/returnn/issues/1809",
         "".join(f"ep 13 train, step {n}, collapse_ctc 1.999, duration_pred 0.040, ce 1.269, fer 0.258, num_seqs 28, mem_usage:cuda 20.1GB, 0.206 sec/step, elapsed 0:00:41, exp. remaining 1:38:38, complete 0.70%\n" for n in range(130, 140))
         + "\n[GPU ASSERT FAILED]: target_spatial_dim size does not match number of labels in path\n\n" + "".join(
             f"ep 13 train, step {n}, collapse_ctc 1.937, duration_pred 0.052, ce 1.150, fer 0.226, num_seqs 28, mem_usage:cuda 20.1GB, 0.206 sec/step, elapsed 0:00:42, exp. remaining 1:38:38, complete 0.70%\n" for n in range(140, 150)),
         "", COST),
    Case("assertions-of-a-loss", GITHUB + "fcjian/TOOD/issues/11",
         "".join(f"/opt/conda/conda-bld/pytorch_1614378098133/work/aten/src/ATen/native/cuda/Loss.cu:102: operator(): block: [328,0,0], thread: [{n},0,0] Assertion `input_val >= zero && input_val <= one` failed.\n" for n in range(22, 29)),
         "input_val >= zero", COST),
    Case("assertions-on-a-drive-c", GITHUB + "HypoX64/DeepMosaics/issues/64",
         "".join(f"C:/cb/pytorch_1000000000000/work/aten/src/ATen/native/cuda/Loss.cu:111: block: [31,0,0], thread: [{n},0,0] Assertion `input_val >= zero && input_val <= one` failed.\n" for n in range(6, 14)), "input_val >= zero", COST),
    Case("a-vasp-on-one-core", GITHUB + "kftsehk/phy-clusters/issues/32",
         " running on    1 total cores\n distrk:  each k-point on     distrk:  each k-poin distr:  one band on    1 cor distr:  one ban using from now: INCAR\n vasp.5.4.4.18Apr17-6-g9f103f2a35 (build Jan 07 2018 01:03:01) complex\n\n"
         " POSCAR found type information on POSCAR  Si\n POSCAR found :  1 types and       2 ions\n", "", COST),
    Case("srun-without-pmi", GITHUB + "pyiron/pyiron_atomistics/issues/1553",
         "couldn't read file \"/w/Modules/5.0.1/libexec/modulecmd.tcl\": no such file or directory\n[cmti093:37763] OPAL ERROR: Unreachable in file pmix3x_client.c at line 111\n\n"
         'The application appears to have been direct launched using "srun",\nbut OMPI was not built with SLURM\'s PMI support and therefore cannot\nexecute. There are several options for building PMI support under\n'
         "SLURM, depending upon the SLURM version you are using:\n\n  version 16.05 or later: you can use SLURM's PMIx support. This\n  requires that you configure and build SLURM --with-pmix.\n\n"
         "  Versions earlier than 16.05: you must use either SLURM's PMI-1 or\n  PMI-2 support. SLURM builds PMI-1 by default, or you can manually\n  install PMI-2. You must then build Open MPI using --with-pmi pointing\n"
         "  to the SLURM PMI library location.\n", "OPAL ERROR", COST),
    Case("a-step-with-a-failed-task", GITHUB + "desihub/desispec/issues/2744",
         "[2026-04-29T23:36:37.809] error: *** STEP 52222788.0 ON nid002888 CANCELLED AT 2026-04-29T23:36:37 DUE TO TASK FAILURE ***\nsrun: error: nid002888: tasks 0-57,59-63: Terminated\n"
         "srun: Force Terminated StepId=52222788.0\nFAILED: done at Wed Apr 29 04:36:42 PM PDT 2026\n", "nid002888", COST),
    Case("a-flow-aborts", GITHUB + "UCL/hemelb/issues/4",
         "-" * 74 + "\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD \nwith errorcode -1.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or may not see output from other processes,"
         " depending on\nexactly when Open MPI kills them.\n" + "-" * 74 + "\n", "rank 0", COST),
    Case("an-assertion-of-romio", GITHUB + "hemelb-codes/hemelb/issues/144",
         "Assertion failed in file /ptmp/tmp/ulib/mpt/mpich2/src/mpi/romio/adio/common/ad_aggregate.c at line 1092: max_nprocs_recv > 0\nRank 0 [Fri Jan 13 11:20:25 2012] [c1-1c0s7n3] internal ABORT - process 0\n"
         "_pmii_daemon(SIGCHLD): [NID 02863] [c1-1c0s7n3] [Fri Jan 13 11:20:25 2012] PE 0 exit signal Aborted\n", "max_nprocs_recv", COST),
    Case("an-assertion-of-a-socket", GITHUB + "SeisSol/SeisSol/issues/215",
         "rank = 0, revents = 8, state = 8\nAssertion failed in file ../../src/mpid/ch3/channels/nemesis/netmod/tcp/socksm.c at line 2988: (it_plfd->revents & POLLERR) == 0\ninternal ABORT - process 0\n", "Assertion failed in file", COST),
    Case("a-segmentation-is-killed", GITHUB + "spine-generic/spine-generic/issues/108",
         "/home/a/processing/process_data.sh: line 76:  4663 Killed                  sct_deepseg_sc -i ${file}.nii.gz -c $contrast -qc ${PATH_QC} -qc-subject ${SUBJECT}\n", "host out of memory", COST),
    Case("a-worker-of-r-begins", GITHUB + "mschubert/clustermq/issues/202",
         'R version 4.0.0 (2020-04-24) -- "Arbor Day"\nR is free software and comes with ABSOLUTELY NO WARRANTY.\n> clustermq:::worker("tcp://rick:7060")\n2020-06-22 19:47:42.428020 | Master: tcp://rick:7060\n'
         "2020-06-22 19:47:42.452442 | WORKER_UP to: tcp://rick:7060\n\nAttaching package: ‘dplyr’\n\nThe following objects are masked from ‘package:plyr’:\n\n    arrange, count, desc, failwith, id, mutate, rename, summarise,\n"
         "    summarize\n\n", "", COST),
    Case("force-constants-that-stop-without-a-word", GITHUB + "tdep-developers/tdep/issues/44",
         "extract_forceconstants -rc2 4.5 -rc3 3.21\n READ STRUCTURE AND SETUP CUTOFFS\n ... reading unitcell\n ... min cutoff:       2.22522\n DETERMINING SYMMETRY OF INTERACTION TENSORS\n ... expanded symmetry operations (24.01027s)\n"
         "  ... reducing pairs                     100.0% |========================================|  0.00210s\n N singlet shells:           2\n          shell:  1  32\n N pair shells:           6\n"
         "    shell:           6         512   3.8503490311353\n", "", COST),
)  # fmt: skip


@each(*DRAWN_23, *DRAWN_24, *DRAWN_25)
def test_the_cause_in_a_log_of_many_programs(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
