"""How many workers grade, and where: on this machine (see `pool`), or on a Dask cluster (see `cluster`)."""

import argparse
import contextlib
from contextlib import AbstractContextManager

from autograder.grade.fork_server import ForkServer
from autograder.grade.messages import Batch
from autograder.grade.options import Options
from autograder.grade.pool import Pool
from transformer_ref.processors import usable_processors


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose the workers."""
    parser.add_argument(
        "--workers",
        type=_positive,
        default=usable_processors(),
        metavar="N",
        help="number of worker processes (default: one for each processor that may be used)",
    )
    parser.add_argument("--dask", default="", metavar="SCHEDULER", help="use a Dask cluster, such as tcp://host:8786")


def fork_server_for(assignment: str, options: Options) -> AbstractContextManager[ForkServer | None]:
    """Start the fork server for this machine's workers; a cluster has its own."""
    return contextlib.nullcontext() if options.scheduler else ForkServer(options.environment, assignment)


def workers_for(
    batch: Batch, options: Options, students: int, fork_server: ForkServer | None
) -> AbstractContextManager:
    """The workers; on this machine no more than there are students."""
    if options.scheduler:
        from autograder.grade.cluster import Cluster

        return Cluster(batch, options.scheduler)
    return Pool(batch, min(options.workers, students), fork_server)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number
