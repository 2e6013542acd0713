"""More causes in logs that somebody looked for who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, FRAME, GITHUB, STEPS
from tests.world.test_causes_drawn_later import CLOSING, HANGUP

HUNTED_3 = (
    Case("paddle-s-external-error", "Paddle 2.6, paddle/phi/core/enforce.h",
         STEPS + FRAME + "OSError: (External) CUDA error(719), unspecified launch failure. \n  [Hint: Please search for the error code(719) on website] (at"
         " /paddle/paddle/fluid/platform/device/gpu/gpu_info.cc:289)\n", "CUDA error", COST),
    Case("mindspore-is-critical", "MindSpore 2.3, mindspore/core/utils/log_adapter.cc",
         STEPS + "[CRITICAL] DEVICE(12345,7f1,python):2026-01-02-03:04:05.678.901 [mindspore/ccsrc/runtime/device.cc:77] LaunchKernel] Launch kernel failed,"
         " name:Default/Conv2D-op7\n", "Launch kernel failed", COST),
    Case("intel-mpi-aborts", "Intel MPI 2021, as MPICH prints it",
         "Abort(1091215) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Init_thread: Other MPI error, error stack:\nMPIR_Init_thread(176)........:\n"
         "MPID_Init(1548)..............:\nMPIDI_OFI_mpi_init_hook(1554): OFI addrinfo() failed\n", "Fatal error in PMPI_Init_thread", COST),
    Case("a-rank-of-cray-is-killed", "Cray PALS and ALPS",
         STEPS + "_pmiu_daemon(SIGCHLD): [NID 00031] [c0-0c0s7n3] [Fri Jan  2 03:04:05 2026] PE RANK 3 exit signal Killed\n", "PE RANK 3 exit signal Killed", COST),
    Case("lsf-s-run-limit", "IBM LSF 10.1, the report of a job",
         STEPS + "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n\nResource usage summary:\n\n    CPU time :   3610.00"
         " sec.\n", "run time limit", COST),
    Case("pbs-s-walltime", "OpenPBS 23, src/resmom/mom_main.c", STEPS + "=>> PBS: job killed: walltime 3610 exceeded limit 3600\n", "walltime", COST),
    Case("flux-tells-the-code", "flux-core 0.66, src/cmd/flux-job.c", STEPS + "flux-job: task(s) exited with exit code 1\n", "exited with exit code 1", COST),
    Case("a-tracker-that-does-not-start", "wandb 0.19, sdk/wandb_init.py",
         "wandb: ERROR Run initialization has timed out after 90.0 sec.\n" + FRAME
         + "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.\n", "Run initialization has timed out", COST),
    Case("a-container-without-a-driver", "libnvidia-container 1.17, src/cli/main.c",
         "nvidia-container-cli: initialization error: nvml error: driver not loaded\n", "driver not loaded", COST),
    Case("a-pipeline-of-dali", "NVIDIA DALI 1.44, dali/pipeline/executor",
         STEPS + FRAME + "RuntimeError: Critical error in pipeline:\nError in MIXED operator `nvidia.dali.fn.decoders.image`,\nencountered:\n\nError when"
         " processing input 7: unrecognized image format\n", "Critical error in pipeline", COST),
    Case("the-spawner-s-trace-is-above-the-child-s", "PyTorch 2.6, torch/multiprocessing/spawn.py",
         STEPS + 'Traceback (most recent call last):\n  File "/w/main.py", line 9, in <module>\n    mp.spawn(f, nprocs=8)\n'
         "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 3 terminated with the following error:\n" + FRAME
         + "ValueError: shard 7 is empty\n", "ValueError: shard 7 is empty", COST),
    Case("kaldi-has-no-gpu", "Kaldi 5.5, src/cudamatrix/cu-device.cc",
         "ERROR (nnet3-chain-train[5.5.1~1-f6f4]:SelectGpuId():cu-device.cc:135) No CUDA GPU detected!, diagnostics: cudaError_t 100 : \"no CUDA-capable device is"
         ' detected", in cu-device.cc:135\n\n[ Stack-Trace: ]\nnnet3-chain-train(kaldi::MessageLogger::LogMessage() const+0xb42) [0x55d]\n', "CUDA error", COST),
    Case("samples-that-failed", "a training's own log", STEPS + "Training finished.\nFailed samples: 3\nErrors: 0\n", "", COST),
    Case("nothing-to-resume-from", "Megatron-LM 0.11, megatron/training/checkpointing.py",
         "WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt\n    will not load any checkpoints and will start from random\n", "", COST),
    Case("a-best-model-and-a-path", "a training's own log",
         STEPS + "Error bars: /out/error_bars.png\nMissing keys: []\nUnexpected keys: []\nInvalid tokens: 0\n", "", COST),
)  # fmt: skip

IFORT = (
    "Image              PC                Routine            Line        Source             \n"
    + "".join(
        f"vasp.std           00000000017913{n}9  Unknown               Unknown  Unknown\n"
        for n in range(9)
    )
)
LAUNCH = (
    'Traceback (most recent call last):\n  File "/e/bin/accelerate", line 8, in <module>\n    sys.exit(main())\n  File "/e/accelerate/commands/launch.py", line 567, in'
    " simple_launcher\n    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)\nsubprocess.CalledProcessError: Command '['/usr/bin/python3',"
    " 'train_network.py']' returned non-zero exit status "
)

# Seed 4218, the second fifteen of the 80.
DRAWN_13 = (
    Case("a-terminal-that-hangs-up-in-the-fourth-epoch", GITHUB + "kohya-ss/musubi-tuner/issues/733",
         "INFO:musubi_tuner.dataset.image_video_dataset:epoch is incremented. current_epoch: 3, epoch: 4\n" * 4 + "steps:   2%|▏         | 77/5000 [57:02<60:46:54, 44.45s/it,"
         " avr_loss=0.0462]W1120 12:45:06.328250 642371 site-packages/torch/distributed/elastic/agent/server/api.py:719] Received 1 death signal, shutting down workers\n"
         + HANGUP, "signal to the launcher", COST),
    Case("a-terminal-that-hangs-up-below-runpy", GITHUB + "modelscope/ms-swift/issues/5884",
         STEPS + "W0920 09:10:41.194000 84933 site-packages/torch/distributed/elastic/agent/server/api.py:719] Received 1 death signal, shutting down workers\n"
         "W0920 09:10:41.195000 84933 site-packages/torch/distributed/elastic/multiprocessing/api.py:900] Sending process 85005 closing signal SIGHUP\n"
         + HANGUP.replace('"/e/bin/torchrun", line 8, in <module>', '"<frozen runpy>", line 198, in _run_module_as_main'), "signal to the launcher", COST),
    Case("julia-below-open-mpi", GITHUB + "JuliaParallel/MPI.jl/issues/684",
         "".join(f"f{n} at /cache/build/julialang/julia-master/src/gf.c:{n} [inlined]\n" for n in range(9)) + "_start at /lustre/julia/bin/julia (unknown line)\nAllocations: 1287421"
         " (Pool: 1286553; Big: 868); GC: 2\n" + "-" * 74 + "\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been"
         " aborted.\n" + "-" * 74 + "\n" + "-" * 74 + "\nmpiexec noticed that process rank 1 with PID 3925494 on node fj001 exited on signal 11 (Segmentation fault).\n" + "-" * 74
         + "\n", "segmentation fault", COST),
    Case("fortran-is-ended-in-a-broadcast", GITHUB + "COSIMA/access-om3/issues/31", " wave model starts\nforrtl: error (78): process killed (SIGTERM)\n" + IFORT,
         "process killed (SIGTERM)", COST),
    Case("a-rank-of-accelerate-aborts", GITHUB + "SWivid/F5-TTS/issues/728",
         "".join(f"W0125 00:51:52.27{n}000 129926476711744 torch/distributed/elastic/multiprocessing/api.py:851] Sending process 2877{n} closing signal SIGTERM\n" for n in range(3))
         + "E0125 00:51:54.603000 129926476711744 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -6) local_rank: 1 (pid: 28773) of binary: /e/bin/python\n"
         + "\n".join(LAUNCH.splitlines()[:4]) + "\n", "of local rank 1", COST),
    Case("somebody-interrupts-mmdetection", GITHUB + "open-mmlab/mmdetection/issues/6534",
         "2021-11-21 09:34:37,477 - mmdet - INFO - load checkpoint from http path: https://cdn/faster_rcnn.pth\n^CWARNING:torch.distributed.elastic.agent.server.api:Received 2"
         " death signal, shutting down workers          \n" + CLOSING.replace("SIGHUP", "SIGINT") + "^C" + HANGUP.replace("signal: 1", "signal: 2"), "signal to the launcher", COST),
    Case("an-amd-gpu-is-full", GITHUB + "BLAST-WarpX/warpx/issues/3398",
         "amrex::Abort::1::HIP error in file /w/amrex/Src/Base/AMReX_GpuDevice.cpp line 402 hipErrorOutOfMemory !!!\nSIGABRT\n", "ut of memory", COST),
    Case("slingshot-does-not-deliver", GITHUB + "BLAST-WarpX/warpx/issues/4234",
         "STEP 120 ends. TIME = 1.1e-14 DT = 9.1e-17\nMPICH ERROR [Rank 8281] [job id 1410467.0] [Wed Aug 23 06:05:55 2023] [frontier01982] - Abort(136982671) (rank 8281 in comm 0):"
         " Fatal error in PMPI_Waitall: Other MPI error, error stack:\nPMPI_Waitall(339)..............: MPI_Waitall(count=26, req_array=0x1006e9b0) failed\nMPIR_Waitall(167)"
         "..............: \nMPIDI_OFI_handle_cq_error(1062): OFI poll failed (ofi_events.c:1064:MPIDI_OFI_handle_cq_error:Input/output error - UNDELIVERABLE)\n",
         "of rank 8281", COST),
    Case("vasp-is-ended", GITHUB + "materialsproject/custodian/issues/43", "forrtl: error (78): process killed (SIGTERM)\n" + IFORT, "process killed (SIGTERM)", COST),
    Case("an-initialization-error-of-cuda", GITHUB + "ecmwf/WeatherGenerator/issues/1572",
         "0: terminate called after throwing an instance of 'c10::AcceleratorError'\n0:   what():  CUDA error: initialization error\n0: CUDA kernel errors might be asynchronously"
         " reported at some other API call, so the stacktrace below might be incorrect.\n0: \n0: Exception raised from c10_cuda_check_implementation at"
         " /pytorch/c10/cuda/CUDAException.cpp:43 (most recent call first):\nsrun: error: nid005018: tasks 1,3: Aborted\nsrun: Terminating StepId=527812.0\n0: slurmstepd: error: ***"
         " STEP 527812.0 ON nid005018 CANCELLED AT 2026-01-08T21:23:49 ***\nsrun: error: nid005018: task 2: Terminated\nsrun: Force Terminated StepId=527812.0\n",
         "CUDA error of rank 0", COST),
    Case("a-task-of-roms-faults", GITHUB + "DOI-USGS/COAWST/issues/150",
         "Due to MODULEPATH changes, the following have been reloaded:\n  1) intel-classic/2022.2.1\n\nsrun: error: nid00251: task 0: Segmentation fault\nsrun: Terminating"
         " StepId=206558137.0\n", "segmentation fault of rank 0 on nid00251", COST),
    Case("a-launcher-that-only-echoes", GITHUB + "Linaqruf/kohya-trainer/issues/116", "loading u-net: <All keys matched successfully>\nloading vae: <All keys matched successfully>\n"
         + LAUNCH + "1.\n", "returned non-zero exit status 1", COST),
    Case("a-violation-on-windows", GITHUB + "huggingface/diffusers/issues/8576", LAUNCH + "3221225477.\n",
         # Written down was the whole number. The line is told, and cut within it: arguable.
         "returned non-zero exit status 322", COST),
    Case("a-process-that-nextflow-runs-again", GITHUB + "sanger-tol/readmapping/issues/152",
         "executor >  local (31)\n[b8/e9892b] NOTE: Process `READMAPPING:CONVERT_STATS:CRUMBLE (Macahu1)` terminated with an error exit status (137) -- Execution is retried (1)\n",
         "", COST),
    Case("an-option-that-orterun-does-not-have", GITHUB + "radical-cybertools/radical.pilot/issues/1227",
         '/home/ann/openmpi/bin/orterun: Error: unknown option "--hnp"\nType \'/home/ann/openmpi/bin/orterun --help\' for usage.\n', 'unknown option "--hnp"', COST),
)  # fmt: skip

ABORT = (
    "-"
    * 74
    + "\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 6.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
    "You may or may not see output from other processes, depending on\nexactly when Open MPI kills them.\n"
    + "-" * 74
    + "\n"
)

# Seed 4219, from the 49 of the 80 that were left.
DRAWN_14 = (
    Case("a-callback-of-python-2", GITHUB + "makson96/Dynamics/issues/97",
         "Running command: gmx_mpi_d pdb2gmx -f test_gromacs.pdb; STDIN: gromacs_stdin.txt\n<type 'exceptions.IndexError'> Exception in Tk callback\n  Function: <function <lambda>"
         " at 0x7faee124cb90> (type: <type 'function'>)\n  Args: ()\nTraceback (innermost last):\n  File \"/w/PmwBase.py\", line 1747, in __call__\n    return apply(self.func,"
         " args)\n<type 'exceptions.IndexError'>: list index out of range\n", "IndexError", COST),
    Case("a-rank-of-fds-faults", GITHUB + "firemodels/fds/issues/1719",
         " Time Step:    100,    Simulation Time:      1.20 s\nmpirun noticed that process rank 5 with PID 6637 on node bc01-07 exited on signal 11\n(segmentation fault)\n",
         "segmentation fault of rank 5 on bc01-07", COST),
    Case("a-rank-that-exits-improperly", GITHUB + "open-mpi/ompi/issues/9389",
         "Dangerous builds = 0\nTotal wall time: 0:00:25\n" + "-" * 74 + "\nmpirun has exited due to process rank 1 with PID 0 on\nnode c5n-3 exiting improperly. There are three"
         " reasons this could occur:\n\n1. this process did not call \"init\" before exiting, but others in\nthe job did.\n" + "-" * 74 + "\n", "rank 1", COST),
    Case("paddle-s-own-libc", GITHUB + "PaddlePaddle/Paddle/issues/17558",
         FRAME.replace("trainer.fit()", "import paddle.fluid as fluid") + "ImportError: NOTE: You may need to run \"export LD_LIBRARY_PATH=/usr/local/lib:$LD_LIBRARY_PATH\"\n        if"
         " you encounters \"libmkldnn.so not found\" errors. The original error is: \n/lib64/libc.so.6: version `GLIBC_2.14' not found (required by /v/paddle/fluid/core.so)\n",
         # Written down was the line below it, which stands in the details: wrong at first try, and still so.
         "ImportError: NOTE: You may need", COST),
    Case("star-is-killed", GITHUB + "TheJacksonLaboratory/splicing-pipelines-nf/issues/119",
         "..... started sorting BAM\n/var/spool/slurmd/job1/slurm_script: line 72: 285848 Killed                  STAR --runThreadN 12 --genomeDir star\n", "host out of memory", COST),
    Case("a-hangup-while-epochs-go-on", GITHUB + "jingyaogong/minimind/issues/462",
         "".join(f"Epoch:[1/3]({n}/106257) loss:1.696 lr:0.000000606225 epoch_Time:136.0min:\n" for n in range(61700, 62000, 100))
         + "W0712 21:41:30.388961 61592 site-packages/torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGHUP death signal, shutting down workers\n"
         "W0712 21:41:30.391399 61592 site-packages/torch/distributed/elastic/multiprocessing/api.py:897] Sending process 61660 closing signal SIGHUP\n"
         + "".join(f"Epoch:[1/3]({n}/106257) loss:1.959 lr:0.000000605717 epoch_Time:134.0min:\n" for n in (62000, 62100))
         + "W0712 21:42:00.392091 61592 site-packages/torch/distributed/elastic/multiprocessing/api.py:916] Unable to shutdown process 61660 via Signals.SIGHUP, forcefully exiting via"
         " Signals.SIGKILL\n" + HANGUP, "signal to the launcher", COST),
    Case("an-interrupt-within-an-interrupt", GITHUB + "ultralytics/ultralytics/issues/23498",
         HANGUP.replace("signal: 1", "signal: 2") + "\nDuring handling of the above exception, another exception occurred:\n\n" + FRAME.replace("trainer.fit()",
         "handler.proc.wait(time_to_wait)") + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 3449727 got signal: 2\n", "signal to the launcher", COST),
    Case("lines-of-aborted-runs", GITHUB + "luancarvalhomartins/PyAutoFEP/issues/112",
         "".join(f"FXR_12-FXR_7{n}/runall_water.sh: line 8: 24768{n} Aborted                 /pdc/bin/gmx_mpi mdrun --deffnm min01 > min01_mdrun_log.log 2>&1\n" for n in range(4)),
         "rank died", COST),
    Case("a-port-of-infiniband-gives-up", GITHUB + "hemelb-codes/hemelb/issues/813",
         "![1.5s]Processing sites assigned to each MPI process\n[r1i6n33:1546795:0:1546795] ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81"
         " hw_synd 0/0)\n[r1i6n33:1546795:0:1546795] ib_mlx5_log.c:139  DCI QP 0x313a7 wqe[74]: SEND s-e [rqpn 0x26c09 rlid 51]\n=================================\nsrun: error:"
         " r1i6n33: task 544: Aborted (core dumped)\nsrun: launch/slurm: _step_signal: Terminating StepId=5443693.0\nslurmstepd: error: *** STEP 5443693.0 ON r1i0n2 CANCELLED AT"
         " 2024-02-22T17:28:33 ***\nsrun: error: r1i0n2: tasks 0,9: Terminated\n", "NCCL network on r1i6n33", COST),
    Case("a-small-gpu-and-amrex", GITHUB + "AMReX-Codes/amrex/issues/3300",
         "CUDA initialized with 1 device.\namrex::Abort::0::CUDA error 2 in file ../Src/Base/AMReX_Arena.cpp line 173: out of memory !!!\nSIGABRT\nSee Backtrace.0 file for"
         " details\n" + ABORT, "CUDA out of memory", COST),
    Case("ranks-of-mmpbsa", GITHUB + "Valdes-Tresanco-MS/gmx_MMPBSA/issues/252",
         '  File "/v/GMXMMPBSA/calculation.py", line 479, in run\n    GMXMMPBSA_ERROR(\'%s failed with prmtop %s!\')\nMMPBSA_Error: /v/bin/sander failed with prmtop COM.prmtop!\n'
         "Check the gmx_MMPBSA.log file to report the problem.\nError occurred on rank 14.\nExiting. All files have been retained.\napplication called MPI_Abort(MPI_COMM_WORLD, 1) -"
         " process 14\n", "sander failed with prmtop", COST),
    Case("slurmstepd-tells-of-a-signal", GITHUB + "kreshuklab/panseg/issues/465",
         "".join(f"\rPredicting: {n}%|█████| {n}/100 [00:10<00:00, 9.1it/s]" for n in range(90, 101)) + "\nslurmstepd: get_exit_code task 0 died by signal\n", "died by signal", COST),
    Case("an-arena-that-says-more", GITHUB + "AMReX-Codes/amrex/pull/4831",
         "00:00:23 Rank 3 started step 7 at time = 138.8814603 with dt = 19.7\namrex::Abort::0::Arena out of memory!!!\nBytes to allocate: 1449379584 (1382 MiB)\nMemory type: GPU"
         " device memory\nMPI rank: 0\nError: cudaMalloc returned 2 out of memory\n" + ABORT, "out of memory", COST),
    Case("a-gpu-is-left-behind-the-end", GITHUB + "AMReX-Codes/amrex/issues/4679",
         "AMReX (25.07) finalized\namrex::Abort::0::CUDA error 709 in file /w/Src/Base/AMReX_GpuDevice.cpp line 689: context is destroyed !!!\nSIGABRT\nSee Backtrace.0.0 file for"
         " details\n*** The MPI_Abort() function was called after MPI_FINALIZE was invoked.\n*** This is disallowed by the MPI standard.\n*** Your MPI job will now abort.\n",
         "context is destroyed", COST),
    Case("an-image-that-is-not-named", GITHUB + "areal-project/AReaL/issues/328",
         "FATAL:   While checking container encryption: could not open image /home/ann/AReaL/python3: failed to retrieve path for /home/ann/AReaL/python3: lstat"
         " /home/ann/AReaL/python3: no such file or directory\n", "could not open image", COST),
)  # fmt: skip


@each(*HUNTED_3, *DRAWN_13, *DRAWN_14)
def test_the_cause_in_a_log_that_was_hunted_later(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
